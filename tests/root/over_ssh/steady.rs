//! Windows in which a link went away do not count.

use std::path::Path;
use std::time::Duration;

use super::site::Site;
use super::{site, until};

/// Everything that the events of the one run in a directory hold.
fn events(out: &str) -> String {
    let Some(run) = std::fs::read_dir(Path::new(out)).ok().and_then(|mut all| all.next()) else {
        return String::new();
    };
    std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap_or_default()
}

#[test]
fn a_link_that_goes_away_in_the_window_voids_the_trial_and_is_named() {
    let Some(site) = site() else { return };
    goes_away(&site, &site.inventory, ("sut", "data"));
}

#[test]
fn a_link_that_goes_away_at_one_of_two_receivers_voids_the_trial_and_is_named() {
    let Some(mut site) = site() else { return };
    let inventory = site.add_receiver();
    goes_away(&site, &inventory, ("sut2", "lan"));
}

fn goes_away(site: &Site, inventory: &str, (alias, device): (&str, &str)) {
    let file = site.write(
        "s.toml",
        "question = \"?\"\n[load]\nrate = \"2k\"\n[trials]\nblocks = 1\nmax_blocks = 1\naa = false\n\
         ramp = \"100ms\"\nsettle = \"100ms\"\nmeasure = \"3s\"\n",
    );
    let out = site.path("runs");
    let run = site.start(&["run", &file, "--hosts", inventory, "--out", &out]);
    let measures = || events(&out).contains("\"measure\"");
    until(Duration::from_secs(60), "the window", measures);
    // why: the window begins a moment after its instants were sent.
    std::thread::sleep(Duration::from_secs(1));
    site.flap(alias, device);
    let what = format!("{alias}: {device} lost its carrier in the window");
    let is_void = || events(&out).contains(&what);
    until(Duration::from_secs(60), "the end of the trial", is_void);
    run.interrupt();
    run.wait();
}
