//! Logins of an ordinary user, without root and with the real sudo.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rxpath_record::run::RunReader;

use super::site::Site;
use super::site::accounts::{OWN_NETNS, USER};
use super::{QUICK, SOON, secrets, site};
use crate::skip::skip;

/// The site, where there is a sudo.
fn site_with_sudo() -> Option<Site> {
    if !Path::new("/usr/bin/sudo").exists() {
        skip("sudo", "there is no sudo");
        return None;
    }
    site()
}

/// The words of a run of one trial for each variant.
fn words<'a>(inventory: &'a str, out: &'a str) -> Vec<&'a str> {
    let run = ["run", "udp-pinning", "--hosts", inventory, "--out", out, "--trials", "1"];
    let quick = QUICK.iter().flat_map(|set| ["--set", *set]);
    run.into_iter().chain(["--keep-noisy"]).chain(quick).collect()
}

fn only_run(out: &str) -> PathBuf {
    std::fs::read_dir(out).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn an_ordinary_user_measures_between_hosts_without_root() {
    let Some(site) = site() else { return };
    let inventory = site.of_user(["sudo = \"never\"", "sudo = \"never\""]);
    let out = site.path("runs");
    let all = words(&inventory, &out);
    let run = site.rxpath(&all);
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let directory = only_run(&out);
    let trials = RunReader::open(&directory).unwrap().manifest.trials;
    for trial in &trials {
        assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    }
    // On a busy machine the sender of one trial may get no CPU.
    let offered: u64 = trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    assert!(offered > 100, "{trials:#?}");
    secrets::are_kept(&site, &directory);
    site.holds_nothing(SOON);
    // What needs root is refused by name, with a command that ssh understands.
    let observed = [&all[..], &["--set", "observe.drops=true"]].concat();
    let refused = site.rxpath(&observed).ends(3);
    let hint = format!("hint: rxpath doctor --host {USER}@sut.lab says what is missing there");
    assert!(refused.err.contains(&hint), "{refused:?}");
}

#[test]
fn an_endpoint_by_sudo_ends_with_its_coordinator_and_with_sudo() {
    let Some(site) = site_with_sudo() else { return };
    let inventory = site.of_user(["sudo = \"always\"", "sudo = \"always\""]);
    let out = site.path("runs");
    let mut all = words(&inventory, &out);
    all.extend(["--set", "trials.measure=60s", "--set", "trials.time_limit=5min"]);
    let start = || {
        let run = site.start(&all);
        site.wait_for("gen1", " load udp ");
        assert_eq!(site.are_of_root("gen1", " load udp "), [true]);
        site.wait_for("sut", "sudo -n -- ");
        run
    };
    // The end of the input passes through sudo.
    start().kill();
    site.holds_nothing(SOON);
    // Nobody is left between sshd and the endpoint.
    let run = start();
    site.kill_in("gen1", "sudo -n -- ");
    let ended = run.wait().ends(5);
    // sudo takes its programs with it: which end is heard of first is a race.
    let known = ["gen1 was lost in the ", "load died during "];
    assert!(known.iter().any(|how| ended.err.contains(how)), "{ended:?}");
    site.holds_nothing(Duration::from_secs(25));
}

#[test]
fn a_network_namespace_is_entered_by_sudo_that_wants_no_password() {
    let Some(site) = site_with_sudo() else { return };
    let netns = format!("netns = \"{OWN_NETNS}\"");
    let inventory = site.of_user(["", &netns]);
    let out = site.path("runs");
    let run = site.rxpath(&words(&inventory, &out));
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let manifest = RunReader::open(&only_run(&out)).unwrap().manifest;
    let has_own = ["gen1", "sut"].map(|alias| manifest.hosts[alias].has_own_namespace);
    assert_eq!(has_own, [false, true], "{:?}", manifest.hosts);
    for trial in &manifest.trials {
        assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    }
    site.holds_nothing(SOON);
}

/// The words of the real sudo.
#[test]
fn a_network_namespace_that_sudo_does_not_enter_is_named_with_the_reason() {
    let Some(site) = site_with_sudo() else { return };
    let netns = format!("netns = \"{OWN_NETNS}\"");
    let inventory = site.of_user(["", &netns]);
    let all = format!("{USER} ALL=(ALL) NOPASSWD: ALL");
    let another = format!("Defaults:{USER} !authenticate\n{USER} ALL=(root) /usr/bin/true");
    let sorry = format!("Sorry, user {USER} is not allowed to execute '");
    for (rules, what, hint) in [
        (String::new(), "sudo -n wants a password".to_owned(), "(NOPASSWD; "),
        (
            format!("Defaults requiretty\n{all}"),
            "sudo wants a terminal (requiretty)".to_owned(),
            "!requiretty in sudoers on that host",
        ),
        (another, format!("sudoers does not allow it ({sorry}"), "/usr/bin/rxpath endpoint"),
    ] {
        site.sudoers(&rules);
        site.rxpath(&["hosts", "check", &inventory])
            .ends(3)
            .warns(&format!("sut: hosts.sut.netns needs root there, and {what}"))
            .warns(hint);
    }
    // Without sudo: one that is not the host's own.
    site.inside("sut", &["ip", "netns", "add", "other"]);
    let entry = "netns = \"other\"\nsudo = \"never\"";
    let never = std::fs::read_to_string(&inventory).unwrap().replace(&netns, entry);
    site.rxpath(&["hosts", "check", &site.write("never.toml", &never)])
        .ends(3)
        .warns("sut: hosts.sut.netns needs root there; sudo = \"if-needed\" for that host");
}
