//! Whether the third-party programs of a run are installed, checked before anything is created.

use rxpath_host::read::installed;

use crate::error::{LabError, cannot};
use crate::hosts::Hosts;
use crate::scenario::spec::{OnHosts, Resolved, Variant};

/// Fails with what to install when a variant's program is not found the way a shell finds it.
///
/// # Errors
/// [`LabError::CannotRun`] that names the variant, the program and what to install.
pub fn check(resolved: &Resolved, hosts: Option<&Hosts>) -> Result<(), LabError> {
    for variant in resolved.available() {
        for (on, program) in programs(variant) {
            let missing = match hosts {
                Some(hosts) => hosts.without(&on, program)?.map(|host| format!(" on {host}")),
                None => (!found(program)).then(String::new),
            };
            if let Some(place) = missing {
                let name = &variant.name;
                return Err(cannot(
                    format!("variant {name} runs `{program}`, which is not installed{place}"),
                    format!("install {program} (Debian: apt-get install {})", package(program)),
                ));
            }
        }
    }
    Ok(())
}

/// What a variant starts and on which hosts, `taskset` for pinning included.
fn programs(variant: &Variant) -> impl Iterator<Item = (OnHosts, &str)> {
    use OnHosts::{Receivers, Senders};
    let external = [(Receivers, variant.serve.external()), (Senders, variant.load.external())];
    let external = external.into_iter().filter_map(|(on, it)| Some((on, it?)));
    let sides = external.map(|(on, it)| (on, !it.cpus.is_empty(), &it.command));
    let background = &variant.background;
    let beside = [
        (background.on.clone(), !background.cpus.is_empty(), &background.command),
        (Receivers, true, &background.victim_command),
    ];
    sides
        .chain(beside)
        .filter_map(|(on, is_pinned, command)| Some((on, is_pinned, command.first()?)))
        .flat_map(|(on, is_pinned, program)| {
            let both = [is_pinned.then_some("taskset"), Some(program.as_str())];
            both.into_iter().flatten().map(move |program| (on.clone(), program))
        })
}

fn package(program: &str) -> &str {
    match program {
        "taskset" => "util-linux",
        named => named.rsplit('/').next().unwrap_or(named),
    }
}

/// Whether a program is where a shell would find it. One that holds `{dir}` is only known when its trial begins.
pub fn found(program: &str) -> bool {
    program.contains('{') || installed::found(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    fn checked(command: &str) -> Result<(), LabError> {
        let text = format!("question = \"?\"\n[serve]\ncommand = \"{command}\"\n");
        check(&resolve(&parse(&text, "t", "t").unwrap(), &[], &HostShape::flat(2)).unwrap(), None)
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        checked("true {port}").unwrap();
        checked("/bin/true").unwrap();
        checked("{dir}/made-later").unwrap();
    }

    #[test]
    fn a_missing_program_is_told_with_what_to_install() {
        let error = checked("no-such-server -p 1").unwrap_err();
        let LabError::CannotRun { what, hint } = error else { panic!("{error}") };
        assert!(what.contains("base") && what.contains("`no-such-server`"), "{what}");
        assert!(hint.contains("apt-get install no-such-server"), "{hint}");
        assert!(checked("/etc/passwd").is_err(), "no program");
    }
}
