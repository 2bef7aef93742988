//! `run --observe`: the kernel's reasons say the same as the counters that own the places; softirqs, polls and stages of
//! the measured window are in the record.

use rxpath_core::measured::StageName;
use rxpath_record::ledger::Place;
use rxpath_record::manifest::Trial;
use rxpath_record::run::RunReader;
use rxpath_record::traced::Traced;

use crate::bed::{may_run, tried};
use crate::bundled::{self, SMALLEST};
use crate::experiment;
use crate::over_tcp::closes;
use crate::skip::skip;

/// Packets are followed in turns, with up to a second between two of them: in a short window on a busy machine none may meet a packet.
const LONG: &str = "trials.measure=2s";

fn has_bpf() -> bool {
    let can = rxpath_bpf::can_run(&rxpath_host::Root::host()).require("load BPF programs");
    if let Err(reason) = &can {
        skip("bpf_programs", &reason.to_string());
    }
    can.is_ok()
}

#[test]
fn reasons_agree_with_the_counters_that_own_the_place() {
    if !may_run() {
        return;
    }
    if !has_bpf() {
        return;
    }
    for (scenario, place, reason) in [
        ("loss-socket-buffer", Place::SocketBuffer, "SOCKET_RCVBUFF"),
        ("loss-no-listener", Place::NoListener, "NO_SOCKET"),
    ] {
        let run = experiment::observed(scenario, &[], "drops");
        let trial = run.manifest.trials.iter().find(|trial| trial.variant == "plain").unwrap();
        let of = trial.ledger.reasons.iter().filter(|found| found.reason == reason);
        let packets: u64 = of.filter(|found| found.side == "rx").map(|found| found.packets).sum();
        assert_eq!(packets, trial.ledger.lost_at(place), "{:?}", trial.ledger);
        assert!(packets > 0, "{:?}", trial.ledger);
    }
    let unobserved = experiment::run("loss-none", &[]);
    assert!(unobserved.iter().all(|trial| trial.ledger.reasons.is_empty()));
}

#[test]
fn a_traced_trial_has_the_polls_and_stages_of_its_window() {
    if !may_run() || !has_bpf() {
        return;
    }
    // A calibration would take both CPUs for seconds, from the other tests too.
    let sets = [LONG, "observe.irq_entry=3us"];
    let run = tried(|| experiment::observed("loss-none", &sets, "trace,steal"), is_whole);
    for trial in &run.manifest.trials {
        let traced = trial.traced.as_ref().unwrap();
        let window = (trial.window_ns[1] - trial.window_ns[0]) as f64 / 1e9;
        assert!(traced.window_s > 0.0 && traced.window_s < 2.0 * window, "{}", traced.window_s);
        let received = traced.stages.iter().find(|stage| stage.stage == StageName::ReceiveToSocket);
        let received = received.unwrap();
        // The programs were in the kernel for a part of the trial, and counted nobody else's packets.
        let delivered = trial.ledger.delivered_packets;
        assert!((1..=delivered).contains(&received.latencies_count), "{received:?}");
        // Read while packets came: a CPU may have counted one and not yet put it into its bucket.
        assert!(received.latency_ns.count().abs_diff(received.latencies_count) <= 64);
        let polled: u64 = traced.napis.iter().map(|napi| napi.row.packets).sum();
        // A poll counts its packets at its end, 64 at most, and one is always in progress. A socket without GRO takes the
        // aggregates of `gso` apart: 20 datagrams each.
        let each = if trial.variant == "gso" { 20 } else { 1 };
        assert!(
            (polled + 64) * each >= received.latencies_count,
            "{polled} of {}",
            received.latencies_count
        );
        assert!(traced.cpus.iter().any(|cpu| cpu.net_rx_runs_count > 0), "{:?}", traced.cpus);
        adds_up(&trial.variant, traced);
        let stolen = trial.stolen.as_ref().unwrap();
        assert!(stolen.victim.is_none() && !stolen.cpus.is_empty(), "{stolen:?}");
        assert!(trial.metrics.contains_key("network_cpu_s_per_mpacket"), "{:?}", trial.metrics);
    }
}

/// Segments instead of datagrams, of ours: the same rows, and the ledger still closes.
#[test]
fn trials_over_tcp_and_http_are_traced_as_well() {
    if !may_run() || !has_bpf() {
        return;
    }
    for (scenario, variants) in [("tcp-clean", 5), ("http-clean", 1)] {
        let run = tried(|| experiment::observed(scenario, &[LONG], "trace,drops"), is_whole);
        assert_eq!(run.manifest.trials.len(), variants);
        for trial in &run.manifest.trials {
            closes(trial);
            looked_at(trial);
        }
        // With GRO the receiver's device polls by itself; the others leave it to the backlog.
        for trial in run.manifest.trials.iter().filter(|trial| trial.variant == "napi") {
            let devices = &trial.traced.as_ref().unwrap().devices;
            let veth = devices.iter().find(|device| device.side == "rx").unwrap();
            assert!(veth.packets > 0 && veth.dev != "backlog", "{devices:?}");
        }
    }
}

#[test]
fn a_program_of_others_is_traced_as_well() {
    const SCENARIO: &str = "tcp-iperf3";
    if !may_run() || !has_bpf() {
        return;
    }
    if let Some(peer) = bundled::lacks(SCENARIO) {
        skip("bundled_peers", &format!("{SCENARIO} needs {peer}"));
        return;
    }
    let sets = [&SMALLEST[..], &[LONG]].concat();
    let run = || experiment::observed_bundled(SCENARIO, &sets, "trace,drops");
    let manifest = tried(run, |manifest| are_whole(&manifest.trials));
    bundled::holds(&manifest);
    manifest.trials.iter().for_each(looked_at);
}

/// All that observers put into a trial is there.
fn looked_at(trial: &Trial) {
    let which = &trial.variant;
    let missing = trial.warnings.iter().find(|warning| warning.code == "probe-missing");
    assert!(missing.is_none(), "{which}: {missing:?}");
    let traced = trial.traced.as_ref().unwrap();
    adds_up(which, traced);
    assert!(is_followed(traced), "{which}: {:?}", traced.stages);
    assert_eq!(traced.stages.len(), 2, "{which}");
}

/// Whether packets were followed through each stage: of a window with few turns none may meet one.
fn is_followed(traced: &Traced) -> bool {
    traced.stages.iter().all(|stage| stage.latencies_count > 0)
}

/// Whether no observer was without a CPU: when it is, packets go on between its readings of what must add up.
fn are_whole(trials: &[Trial]) -> bool {
    let traced = || trials.iter().filter_map(|trial| trial.traced.as_ref());
    traced().all(|traced| is_followed(traced) && sums(traced).into_iter().all(near))
}

fn is_whole(run: &RunReader) -> bool {
    are_whole(&run.manifest.trials)
}

/// An aggregate that a queue drops is one for the kernel and many segments for the ledger.
#[test]
fn segments_that_a_queue_drops_have_the_kernels_reason() {
    if !may_run() || !has_bpf() {
        return;
    }
    let run = experiment::observed("tcp-qdisc", &[], "drops");
    let ledger = &run.manifest.trials[0].ledger;
    closes(&run.manifest.trials[0]);
    let of = ledger.reasons.iter().filter(|found| found.reason.starts_with("QDISC"));
    let packets: u64 = of.filter(|found| found.side == "tx").map(|found| found.packets).sum();
    assert!((1..=ledger.lost_at(Place::Qdisc)).contains(&packets), "{ledger:?}");
}

/// Packets by CPU and by NAPI, interrupts by CPU and by line; then of each CPU the intervals between interrupts, which are one less
/// than these.
fn sums(traced: &Traced) -> Vec<[u64; 2]> {
    let cpus = || traced.cpus.iter();
    let polled: u64 = cpus().map(|cpu| cpu.packets).sum();
    let of_napis: u64 = traced.napis.iter().map(|napi| napi.row.packets).sum();
    let interrupts: u64 = cpus().map(|cpu| cpu.device_interrupts_count).sum();
    let of_lines: u64 = traced.irqs.iter().map(|irq| irq.interrupts_count).sum();
    let each = cpus().map(|cpu| [cpu.interrupt_interval_ns.count(), cpu.device_interrupts_count]);
    [[polled, of_napis], [interrupts, of_lines]].into_iter().chain(each).collect()
}

/// Rows are read one after the other while polls and interrupts go on.
fn near([a, b]: [u64; 2]) -> bool {
    a.abs_diff(b) <= a.max(b) / 10 + 64
}

/// NAPIs are what the CPUs polled, interrupts of lines those of the CPUs; each NAPI is in a device.
fn adds_up(which: &str, traced: &Traced) {
    let of_devices: u64 = traced.devices.iter().map(|device| device.packets).sum();
    let sums = sums(traced);
    assert!(sums.iter().all(|pair| near(*pair)), "{which}: {sums:?}");
    let [_, of_napis] = sums[0];
    assert!(of_devices > 0 && of_devices == of_napis, "{which}: {of_devices} {of_napis}");
    for cpu in &traced.cpus {
        assert!(cpu.time_squeeze_count.is_some(), "{which}: CPU {}", cpu.cpu);
    }
}
