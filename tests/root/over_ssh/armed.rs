//! Instants that hosts got ahead: a load ends by itself, though nobody orders it to, and later its endpoint does. A start that
//! a sender misses is noticed.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::site::Site;
use super::steady::events;
use super::{site, until};

/// The counters of UDP of the sender.
fn udp(site: &Site) -> Vec<String> {
    let table = site.sysctl("gen1", "/proc/thread-self/net/snmp");
    table.lines().filter(|line| line.starts_with("Udp:")).map(str::to_owned).collect()
}

/// Whether it sends.
fn sends(site: &Site) -> bool {
    let before = udp(site);
    // why: at 2k/s two readings so far apart differ by hundreds of datagrams.
    std::thread::sleep(Duration::from_millis(300));
    before != udp(site)
}

/// Whether it stays quiet: a busy machine may starve a sender for one reading.
fn is_quiet(site: &Site) -> bool {
    (0..4).all(|_| !sends(site))
}

#[test]
fn a_load_ends_at_its_instant_though_its_coordinator_is_silent() {
    let Some(site) = site() else { return };
    let file = site.write(
        "s.toml",
        "question = \"?\"\n[load]\nrate = \"2k\"\n[trials]\nblocks = 1\nmax_blocks = 1\naa = false\n\
         ramp = \"100ms\"\nsettle = \"100ms\"\nmeasure = \"2s\"\n",
    );
    let out = site.path("runs");
    let run = site.start(&["run", &file, "--hosts", &site.inventory, "--out", &out]);
    // Probes are sent before it is there.
    site.wait_for("gen1", " load udp ");
    until(Duration::from_secs(60), "the load", || sends(&site));
    run.hold();
    // Long before the endpoint ends for want of a sign of life: its lease begins with the latest end of the load.
    until(Duration::from_secs(12), "the end of the load", || is_quiet(&site));
    site.wait_for("gen1", " load udp ");
    // Nor does anybody end the endpoints: their lease does.
    site.holds_nothing(Duration::from_secs(40));
    run.kill();
}

#[test]
fn a_start_that_a_sender_missed_voids_the_trial_and_names_the_host() {
    let Some(site) = site() else { return };
    let file = site.write(
        "s.toml",
        "question = \"?\"\n[load]\nrate = \"2k\"\n[trials]\nblocks = 90\nmax_blocks = 90\naa = false\n\
         ramp = \"100ms\"\nsettle = \"0s\"\nmeasure = \"200ms\"\n",
    );
    let out = site.path("runs");
    // A missed start is no noise: it is not forgiven.
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let run = site.start(&words);
    until(Duration::from_secs(60), "a trial", || events(&out).contains("\"measure\""));
    let deadline = Instant::now() + Duration::from_secs(120);
    while !events(&out).contains("start missed by gen1: ") {
        assert!(Instant::now() < deadline, "{}", events(&out));
        site.signal_in("gen1", " load udp ", Signal::SIGSTOP);
        // why: a start in this time is missed by more than 5 ms, but for its end.
        std::thread::sleep(Duration::from_millis(60));
        site.signal_in("gen1", " load udp ", Signal::SIGCONT);
        // why: the program must get ready and take its order.
        std::thread::sleep(Duration::from_millis(40));
    }
    run.interrupt();
    run.wait();
}
