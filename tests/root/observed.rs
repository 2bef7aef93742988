//! `run --observe-drops`: the kernel's reasons say the same as the counters that own the places.

use rxpath_record::ledger::Place;

use crate::bed::may_run;
use crate::experiment;
use crate::skip::skip;

#[test]
fn reasons_agree_with_the_counters_that_own_the_place() {
    if !may_run() {
        return;
    }
    if let Err(reason) =
        rxpath_bpf::can_run(&rxpath_host::Root::host()).require("load BPF programs")
    {
        skip("bpf_programs", &reason.to_string());
        return;
    }
    for (scenario, place, reason) in [
        ("loss-socket-buffer", Place::SocketBuffer, "SOCKET_RCVBUFF"),
        ("loss-no-listener", Place::NoListener, "NO_SOCKET"),
    ] {
        let run = experiment::observed(scenario);
        let trial = run.manifest.trials.iter().find(|trial| trial.variant == "plain").unwrap();
        let of = trial.ledger.reasons.iter().filter(|found| found.reason == reason);
        let packets: u64 = of.filter(|found| found.side == "rx").map(|found| found.packets).sum();
        assert_eq!(packets, trial.ledger.lost_at(place), "{:?}", trial.ledger);
        assert!(packets > 0, "{:?}", trial.ledger);
    }
    let unobserved = experiment::run("loss-none", &[]);
    assert!(unobserved.iter().all(|trial| trial.ledger.reasons.is_empty()));
}
