//! `rxpath hosts cleanup`: what earlier experiments left on the hosts of an inventory.

use std::collections::BTreeSet;

use rxpath_core::number::si;
use rxpath_lab::LabError;
use rxpath_lab::endpoint::client::{Client, PROMPT};
use rxpath_lab::endpoint::leftovers::Leftover;
use rxpath_lab::endpoint::settings::SettingsAsk;
use rxpath_lab::endpoint::strays::{StrayProgram, StrayPrograms};
use rxpath_lab::endpoint::wire::HostAsk;
use rxpath_lab::hosts::privilege::RootNeeds;
use rxpath_lab::hosts::{client, each_at_once};
use rxpath_remote::Binaries;
use rxpath_remote::inventory::HostEntry;

use crate::cmd::binary_args::{BinaryArgs, binaries_of};
use crate::cmd::hosts_args::{note, read};
use crate::cmd::prelude::*;

/// How long a host may take to end or undo what killed runs left: a link may have to come up for that.
const UNDONE: Duration = Duration::from_secs(60);

/// Options of `rxpath hosts cleanup`.
#[derive(Debug, Args)]
pub struct CleanupHosts {
    /// The inventory, or a scenario with hosts
    inventory: PathBuf,
    /// Name what is there; end, undo and remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    binary: BinaryArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// What became of a host.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct HostCleaned {
    /// Its alias.
    host: String,
    /// Directory of the copies of rxpath: each is `DIR/HASH/rxpath`. None if an installed program was used.
    dir: Option<PathBuf>,
    /// Hash of the copy of this build, which stays.
    kept: Option<String>,
    /// Copies of other builds that were removed, or would be: their hashes.
    copies: Vec<String>,
    /// Size of these copies. **Unit** bytes.
    copies_bytes: u64,
    /// Copies that are running, or are being sent.
    in_use: Vec<String>,
    /// Programs of killed runs that were ended, or would be.
    programs: Vec<StrayProgram>,
    /// Whose process ids these are: equal for aliases of one machine.
    #[serde(skip)]
    ids_of: String,
    /// Numbers of the journals of `rxpath tune` whose changes are in force.
    journals: Vec<u64>,
    /// Numbers of the journals of killed runs that were undone, or would be.
    undone: Vec<u64>,
    /// Journals that could not be read, whose changes may be in force.
    unread: Option<String>,
    /// Why it could not be looked at, or a copy not be removed.
    failure: Option<String>,
}

impl CleanupHosts {
    /// Looks at each host, removes, reports.
    pub fn run(self) -> Outcome {
        let all = self.clean_all()?;
        let is_clean = all.iter().all(|host| {
            let would_end = !host.undone.is_empty() || !host.programs.is_empty();
            let is_left = !host.journals.is_empty() || self.dry_run && would_end;
            host.failure.is_none() && host.unread.is_none() && !is_left
        });
        let inventory = self.inventory.display().to_string();
        let settings = json!({ "inventory": inventory, "dry_run": self.dry_run });
        let answer = Envelope::new("hosts-cleanup", settings, all, Vec::new());
        output::answer(self.format.is_json(), &answer, |all| {
            all.iter().map(|host| host.shown(self.dry_run)).collect()
        })?;
        Ok(if is_clean { Exit::Done } else { Exit::Partial })
    }

    /// Each host, in the order of the aliases. A host that cannot be used keeps no other from it.
    fn clean_all(&self) -> Result<Vec<HostCleaned>, Failure> {
        let inventory = read(&self.inventory, &[])?;
        let binaries = binaries_of(&self.binary.given)?;
        let hosts: Vec<_> = inventory.hosts.iter().collect();
        let at_once = usize::from(inventory.network.connect_at_once);
        let found = each_at_once((&hosts, at_once), &mut note, |(alias, entry), note| {
            Ok(self.clean(alias, connected((alias, entry), &binaries, note)))
        });
        let all = hosts.iter().zip(found).map(|((alias, _), one)| {
            one.unwrap_or_else(|error| HostCleaned {
                failure: Some(error.to_string()),
                ..HostCleaned::of(alias)
            })
        });
        let mut all: Vec<HostCleaned> = all.collect();
        name_once(&mut all);
        Ok(all)
    }

    fn clean(&self, alias: &str, connected: Result<Client, LabError>) -> HostCleaned {
        let mut host = HostCleaned::of(alias);
        let looked = connected.and_then(|client| {
            let found: StrayPrograms =
                client.ask(HostAsk::Strays { end: !self.dry_run }, UNDONE)?;
            (host.ids_of, host.programs) = (found.ids_of, found.programs);
            if !self.dry_run {
                let ask = HostAsk::Settings { what: SettingsAsk::UndoLeft };
                host.undone = client.ask(ask, UNDONE)?;
            }
            for left in client.ask::<Vec<Leftover>>(HostAsk::Leftovers, PROMPT)? {
                match left {
                    Leftover::Own { dir, hash } => {
                        (host.dir, host.kept) = (Some(dir), Some(hash));
                    }
                    Leftover::InUse { hash } => host.in_use.push(hash),
                    Leftover::Settings { journal, is_of_killed_run: true } if self.dry_run => {
                        host.undone.push(journal);
                    }
                    Leftover::Settings { journal, .. } => host.journals.push(journal),
                    Leftover::Unread(unread) => host.unread = Some(unread.text()),
                    Leftover::Copy { hash, bytes } => {
                        let ask = HostAsk::RemoveCopy { hash: hash.clone() };
                        // Another host that shares the directory may have been faster, or a transfer into it may have begun.
                        if self.dry_run || client.ask::<bool>(ask, PROMPT)? {
                            host.copies_bytes += bytes;
                            host.copies.push(hash);
                        }
                    }
                }
            }
            Ok(())
        });
        host.failure = looked.err().map(|error| match error.hint() {
            "" => error.to_string(),
            hint => format!("{error}; {hint}"),
        });
        host
    }
}

impl HostCleaned {
    /// Of a host of which nothing is known yet.
    fn of(alias: &str) -> Self {
        Self { host: alias.to_owned(), ..Self::default() }
    }

    /// The program of a copy, as a path on its host.
    fn path(&self, hash: &str) -> String {
        let dir = self.dir.as_deref().unwrap_or(Path::new(""));
        dir.join(hash).join("rxpath").display().to_string()
    }

    fn shown(&self, is_dry_run: bool) -> String {
        let alias = &self.host;
        let mut text = String::new();
        if !self.copies.is_empty() {
            let count = self.copies.len();
            let what = if is_dry_run { "would remove" } else { "removed" };
            let noun = if count == 1 { "copy" } else { "copies" };
            let size = si(self.copies_bytes as f64);
            let paths: Vec<String> = self.copies.iter().map(|hash| self.path(hash)).collect();
            let paths = paths.join(", ");
            text +=
                &format!("{alias}: {what} {count} {noun} of other builds, {size} bytes: {paths}\n");
        }
        for hash in &self.in_use {
            let path = self.path(hash);
            text += &format!("{alias}: kept {path}: a copy of another build, which is in use\n");
        }
        for StrayProgram { pid, command } in &self.programs {
            let what = if is_dry_run { "would end" } else { "ended" };
            text += &format!("{alias}: {what} process {pid} of a killed run: {command}\n");
        }
        for journal in &self.undone {
            let what = if is_dry_run { "would undo" } else { "undid" };
            text += &format!("{alias}: {what} journal {journal} of a killed run\n");
        }
        for journal in &self.journals {
            text += &format!(
                "{alias}: changes of `rxpath tune` are in force; to undo them there: rxpath tune undo {journal}\n"
            );
        }
        if let Some(unread) = &self.unread {
            text += &format!("{alias}: {unread}\n");
        }
        if let Some(why) = &self.failure {
            let why = why.strip_prefix(&format!("{alias}: ")).unwrap_or(why);
            text += &format!("{alias}: {why}\n");
        }
        if text.is_empty() {
            text = format!("{alias}: nothing was left\n");
        }
        if let Some(hash) = &self.kept {
            text += &format!("{alias}: kept {}: the copy of this build\n", self.path(hash));
        }
        text
    }
}

/// Leaves a program to the first alias that names it: two of them may be logins of one machine, or its namespaces.
fn name_once(all: &mut [HostCleaned]) {
    let mut named = BTreeSet::new();
    for HostCleaned { ids_of, programs, .. } in all {
        programs.retain(|program| named.insert((ids_of.clone(), program.pid)));
    }
}

/// An endpoint as root, if the inventory lets it be: nobody else undoes changes. If sudo is refused, one that removes copies
/// only.
fn connected(
    (alias, entry): (&str, &HostEntry),
    binaries: &Binaries,
    note: &mut dyn FnMut(&str),
) -> Result<Client, LabError> {
    match client(alias, entry, binaries, &RootNeeds::of_cleanup(), note) {
        Err(error) if is_by_sudo(&error) => {
            client(alias, entry, binaries, &RootNeeds::default(), note)
        }
        other => other,
    }
}

/// Whether a host refused to start an endpoint as root. Of a rule of sudoers that does not fit, sudo says `Sorry, user u is
/// not allowed to execute`.
fn is_by_sudo(error: &LabError) -> bool {
    let words = ["sudo", "Sorry, user"];
    let LabError::CannotRun { what, .. } = error else { return false };
    words.iter().any(|word| what.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_that_go_and_stay_are_named_by_their_paths() {
        let mut host = HostCleaned {
            host: "sut".into(),
            dir: Some("/home/u/.cache/rxpath".into()),
            kept: Some("cc".into()),
            ..HostCleaned::default()
        };
        let kept = "sut: kept /home/u/.cache/rxpath/cc/rxpath: the copy of this build\n";
        assert_eq!(host.shown(false), format!("sut: nothing was left\n{kept}"));
        host.copies = vec!["aa".into()];
        host.copies_bytes = 4_000_000;
        host.in_use = vec!["bb".into()];
        let wanted = "sut: would remove 1 copy of other builds, 4M bytes: /home/u/.cache/rxpath/aa/rxpath\n\
                      sut: kept /home/u/.cache/rxpath/bb/rxpath: a copy of another build, which is in use\n";
        assert_eq!(host.shown(true), format!("{wanted}{kept}"));
    }

    #[test]
    fn programs_of_killed_runs_are_named_with_their_process_ids() {
        let programs = vec![StrayProgram { pid: 4711, command: "iperf3 -s -D".into() }];
        let host = HostCleaned { host: "sut".into(), programs, ..HostCleaned::default() };
        let what = "process 4711 of a killed run: iperf3 -s -D\n";
        assert_eq!(host.shown(true), format!("sut: would end {what}"));
        assert_eq!(host.shown(false), format!("sut: ended {what}"));
    }

    #[test]
    fn a_program_of_one_machine_is_named_once_whatever_aliases_it_has() {
        let host = |alias: &str, ids_of: &str, pids: &[i32]| HostCleaned {
            ids_of: ids_of.into(),
            programs: pids.iter().map(|&pid| StrayProgram { pid, command: "x".into() }).collect(),
            ..HostCleaned::of(alias)
        };
        // A container there has process ids of its own.
        let mut all = [
            host("gen1", "boot 1", &[7, 8]),
            host("gen2", "boot 1", &[8, 9]),
            host("gen3", "boot 2", &[7]),
            host("sut", "other 1", &[7]),
        ];
        name_once(&mut all);
        let left = all.map(|host| host.programs.iter().map(|it| it.pid).collect::<Vec<_>>());
        assert_eq!(left, [vec![7, 8], vec![9], vec![7], vec![7]]);
    }

    #[test]
    fn only_a_host_that_refuses_sudo_is_tried_without_it() {
        let of = |what: &str| {
            is_by_sudo(&LabError::CannotRun { what: what.into(), hint: String::new() })
        };
        assert!(of("sut: observe.steal needs root there, and sudo -n wants a password"));
        assert!(of("sut: the shell there said: Sorry, user u is not allowed to execute"));
        assert!(!of("sut: no answer to ssh (Connection timed out)"));
        assert!(!is_by_sudo(&LabError::Interrupted));
    }
}
