//! Every observer on the receiver's host: what it saw of a trial, and that it ends with it.

use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunReader;

use super::{SOON, site};
use crate::bed::tried;
use crate::bypass::has_bpf;

/// A small socket under load, known work next to it, and every observer. Packets are followed in turns, with up to a second between
/// two of them: some meet packets also on a busy machine.
const OBSERVED: &str = r#"
    question = "?"
    [load]
    rate = "50k"
    [serve]
    rcvbuf = "4KiB"
    cpu = 0
    [background]
    victim = 0
    [observe]
    drops = true
    trace = true
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    ramp = "100ms"
    settle = "100ms"
    measure = "3s"
"#;

#[test]
fn drops_stages_and_taken_time_are_observed_on_the_receiver_s_host_and_end_with_the_trial() {
    if !has_bpf() {
        return;
    }
    let Some(site) = site() else { return };
    let file = site.write("s.toml", OBSERVED);
    let out = site.path("runs");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let attempt = || {
        let _ = std::fs::remove_dir_all(&out);
        let run = site.rxpath(&words);
        // Shown where the test fails.
        eprintln!("{run:?}");
        let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
        (run.code, RunReader::open(&directory).unwrap().manifest)
    };
    // A trial may be void, and where the sender has no CPU in the turns no packet is followed. 4: the machine was busy, which is no
    // matter here.
    let is_whole = |(code, manifest): &(Option<i32>, Manifest)| {
        let traced = manifest.trials.first().and_then(|trial| trial.traced.as_ref());
        matches!(code, Some(0 | 4))
            && traced.is_some_and(|traced| traced.stages.iter().all(|it| it.latencies_count > 0))
    };
    let observed = tried(attempt, is_whole);
    assert!(is_whole(&observed), "{observed:?}");
    let trial = &observed.1.trials[0];
    let (stolen, traced) = (trial.stolen.as_ref().unwrap(), trial.traced.as_ref().unwrap());
    let victim = stolen.victim.as_ref().unwrap();
    assert_eq!(victim.cpu, 0);
    assert!(victim.row.asked_s > 1.5 && victim.row.time.on_cpu_s > 0.0, "{victim:?}");
    assert!(!stolen.interrupt.source.contains("not measured"), "{:?}", stolen.interrupt);
    // Packets of a veth without GRO come by the backlog.
    let polled: u64 = traced.devices.iter().map(|device| device.packets).sum();
    assert!(polled > 1_000, "{:?}", traced.devices);
    let stages: Vec<_> = traced.stages.iter().map(|stage| stage.latencies_count).collect();
    assert!(stages.len() == 2 && stages.iter().all(|count| *count > 0), "{stages:?}");
    // The kernel's reasons and the ledger's counters are of the same packets.
    let ledger = &trial.ledger;
    let lost: u64 = ledger.drops.iter().map(|drop| drop.packets).sum();
    // The host's other sockets drop as they please.
    let ours = ledger.reasons.iter().filter(|one| one.side == "rx" && one.port == 4321);
    let explained: u64 = ours.map(|one| one.packets).sum();
    assert!(lost > 0 && explained == lost, "{ledger:?}");
    // The end of the coordinator is that of the victim there.
    let words: Vec<&str> = words
        .into_iter()
        .chain(["--set", "background.victim_command=sleep 4444", "--set", "trials.measure=60s"])
        .chain(["--set", "observe.irq_entry=1us"])
        .collect();
    let run = site.start(&words);
    site.wait_for("sut", "sleep 4444");
    run.kill();
    site.holds_nothing(SOON);
    site.wait_for_none("sut", "sleep 4444");
}
