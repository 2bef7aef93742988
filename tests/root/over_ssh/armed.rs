//! Instants that hosts got ahead: a load ends by itself, though nobody orders it to, and later its endpoint does. A start that
//! a sender misses is noticed, and so is a window that an observer of a host misses.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::site::Site;
use super::steady::events;
use super::{SOON, site, until};
use crate::bypass::has_bpf;

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
         ramp = \"100ms\"\nsettle = \"100ms\"\nmeasure = \"5s\"\n",
    );
    let out = site.path("runs");
    let run = site.start(&["run", &file, "--hosts", &site.inventory, "--out", &out]);
    // Probes are sent before it is there.
    site.wait_for("gen1", " load udp ");
    until(Duration::from_secs(60), "the load", || sends(&site));
    run.hold();
    // Long before the endpoint ends for want of a sign of life: its lease begins with the latest end of the load.
    until(Duration::from_secs(18), "the end of the load", || is_quiet(&site));
    site.wait_for("gen1", " load udp ");
    // Nor does anybody end the endpoints: their lease does.
    site.holds_nothing(Duration::from_secs(40));
    run.kill();
}

/// Some 0.3 s a trial, for long enough.
const TRIALS: &str = "[trials]\nblocks = 90\nmax_blocks = 90\naa = false\nramp = \"100ms\"\nsettle = \"0s\"\nmeasure = \"200ms\"\n";

/// Holds processes of the sender's host now and then, each time so long, until a start is missed. The trial is void, and the run
/// goes on.
fn misses_a_start(scenario: &str, held_program: &str, held: Duration) {
    let Some(site) = site() else { return };
    let file = site.write("s.toml", &format!("question = \"?\"\n{scenario}{TRIALS}"));
    let out = site.path("runs");
    // A missed start is no noise: it is not forgiven.
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let run = site.start(&words);
    until(Duration::from_secs(60), "a trial", || events(&out).contains("\"measure\""));
    let deadline = Instant::now() + Duration::from_secs(120);
    while !events(&out).contains("start missed by gen1: ") {
        assert!(Instant::now() < deadline, "{}", events(&out));
        site.signal_in("gen1", held_program, Signal::SIGSTOP);
        // why: a start in this time is missed by more than 5 ms, but for its end.
        std::thread::sleep(held);
        site.signal_in("gen1", held_program, Signal::SIGCONT);
        // why: what is held must get ready and take its order.
        std::thread::sleep(Duration::from_millis(40));
    }
    let starts = || events(&out).matches("\"ramp\"").count();
    let missed = starts();
    until(Duration::from_secs(60), "the trial is repeated", || starts() > missed);
    run.interrupt();
    run.wait();
}

#[test]
fn a_start_that_a_sender_missed_voids_the_trial_and_names_the_host() {
    misses_a_start("[load]\nrate = \"2k\"\n", " load udp ", Duration::from_millis(60));
}

#[test]
fn a_start_that_a_third_party_generator_missed_voids_the_trial_and_names_the_host() {
    const EXE: &str = env!("CARGO_BIN_EXE_rxpath");
    let scenario = format!(
        "[serve]\ncommand = '{EXE} serve udp {{addr}}:{{port}}'\n\
         [load]\ncommand = '{EXE} load udp {{addr}}:{{port}} --rate 2k -d {{duration_s}}s'\n"
    );
    misses_a_start(&scenario, "/rxpath endpoint", Duration::from_millis(300));
}

/// An endpoint does nothing while its window begins: the trial must be void, and what began late named.
fn misses_its_window(observe: &str, what: &str) {
    let Some(site) = site() else { return };
    let text = format!(
        "question = \"?\"\n[load]\nrate = \"2k\"\n[observe]\n{observe}\n[trials]\nblocks = 1\nmax_blocks = 1\naa = false\n\
         ramp = \"3s\"\nsettle = \"100ms\"\nmeasure = \"8s\"\n"
    );
    let (file, out) = (site.write("s.toml", &text), site.path("runs"));
    let run = site.start(&["run", &file, "--hosts", &site.inventory, "--out", &out]);
    until(Duration::from_secs(60), "the ramp", || events(&out).contains("\"ramp\""));
    // why: the orders are answered within a moment.
    std::thread::sleep(Duration::from_secs(2));
    site.signal_in("sut", "/rxpath endpoint", Signal::SIGSTOP);
    // why: until more than a tenth of the window is over, and not all of it: some seconds from either, for a busy machine.
    std::thread::sleep(Duration::from_millis(4_500));
    site.signal_in("sut", "/rxpath endpoint", Signal::SIGCONT);
    until(Duration::from_secs(60), what, || events(&out).contains(what));
    run.interrupt();
    run.wait();
    site.holds_nothing(SOON);
}

#[test]
fn a_sampler_that_begins_late_voids_the_trial_and_is_named() {
    let what = "sut: its sampler missed the begin of its window by ";
    misses_its_window("sample_interval = \"1ms\"", what);
}

#[test]
fn observers_that_begin_late_void_the_trial_and_are_named() {
    if has_bpf() {
        let what = "sut: its observers missed the begin of its window by ";
        misses_its_window("trace = true", what);
    }
}
