//! Windows in which a link went away or changed its speed do not count.

use std::path::Path;
use std::time::Duration;

use super::relay::Trouble;
use super::site::Site;
use super::{site, until};
use crate::skip::skip;

/// Everything that the events of the one run in a directory hold.
pub(super) fn events(out: &str) -> String {
    let Some(run) = std::fs::read_dir(Path::new(out)).ok().and_then(|mut all| all.next()) else {
        return String::new();
    };
    std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap_or_default()
}

#[test]
fn a_link_that_goes_away_in_the_window_voids_the_trial_and_is_named() {
    let Some(site) = site() else { return };
    let whats = ["sut: data lost its carrier ", " s into the window"];
    is_void(&site, &site.inventory, &whats, || site.flap("sut", "data"));
}

#[test]
fn a_link_that_goes_away_at_one_of_two_receivers_voids_the_trial_and_is_named() {
    let Some(mut site) = site() else { return };
    let inventory = site.add_receiver();
    let whats = ["sut2: lan lost its carrier ", " s into the window"];
    is_void(&site, &inventory, &whats, || site.flap("sut2", "lan"));
}

/// The bond itself keeps its carrier by the other member.
#[test]
fn a_member_of_a_bond_that_goes_away_voids_the_trial_and_is_named() {
    let Some(site) = site() else { return };
    let inventory = match site.bond() {
        Ok(inventory) => inventory,
        Err(why) => return skip("bond", &why),
    };
    let whats = ["sut: member2 (below bond0) lost its carrier ", " s into the window"];
    is_void(&site, &inventory, &whats, || site.flap("sut", "member2"));
}

#[test]
fn a_link_that_changes_its_speed_voids_the_trial_in_which_it_does_and_those_after_it() {
    let Some(site) = site() else { return };
    let (_relay, inventory) = site.wire_with(Trouble::default());
    site.set_speed("sut", "wire", "speed=1000 duplex=full");
    let whats = [
        "sut: wire went from 1Gb/s to 100Mb/s half duplex in the window",
        // The trial that repeats it.
        "sut: wire runs at 100Mb/s half duplex, at 1Gb/s when the run began",
    ];
    let slower = || site.set_speed("sut", "wire", "speed=100 duplex=half");
    is_void(&site, &inventory, &whats, slower);
}

/// The window begins no sooner than the hosts have taken its instants, which are sent when the rate has settled.
#[test]
fn a_link_that_goes_away_before_the_window_voids_the_trial_and_is_named() {
    let Some(site) = site() else { return };
    let whats = ["sut: data lost its carrier ", " before the window"];
    is_void_in(&site, &site.inventory, ("settle", "10s"), &whats, || site.flap("sut", "data"));
}

/// Starts a run and does something to its hosts in the window of its first trial: the run's events must name it.
fn is_void(site: &Site, inventory: &str, whats: &[&str], happen: impl FnOnce()) {
    is_void_in(site, inventory, ("measure", "100ms"), whats, || {
        // why: the window begins a moment after its instants were sent.
        std::thread::sleep(Duration::from_secs(1));
        happen();
    });
}

/// The same when a phase begins, in trials that settle in so long at most.
fn is_void_in(
    site: &Site,
    inventory: &str,
    (phase, settle): (&str, &str),
    whats: &[&str],
    happen: impl FnOnce(),
) {
    let scenario = format!(
        "question = \"?\"\n[load]\nrate = \"2k\"\n[trials]\nblocks = 1\nmax_blocks = 1\naa = false\n\
         ramp = \"100ms\"\nsettle = \"{settle}\"\nmeasure = \"6s\"\n"
    );
    let file = site.write("s.toml", &scenario);
    let out = site.path("runs");
    let run = site.start(&["run", &file, "--hosts", inventory, "--out", &out]);
    let is_in_it = || events(&out).contains(&format!("\"{phase}\""));
    until(Duration::from_secs(60), phase, is_in_it);
    happen();
    for what in whats {
        until(Duration::from_secs(60), what, || events(&out).contains(what));
    }
    run.interrupt();
    run.wait();
}
