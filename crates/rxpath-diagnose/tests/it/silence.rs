//! Each stage has a neighbour of its scene in which it must not be named.

use rxpath_diagnose::diagnose;
use rxpath_record::evidence::{Probed, ProbedTask, SoftirqPlace, WindowEvidence};
use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, Stage};

use crate::arbitrary::LOSSES;
use crate::made::{
    conntrack, cpu, hashed, livelock, lost, nothing, packed, rps, scenes, slow_reader, socket,
    socket_lock, thread, ticks_err, trial, victim,
};

fn stage(evidence: &WindowEvidence) -> Stage {
    diagnose(evidence).stage
}

fn scene(name: &str) -> WindowEvidence {
    scenes().into_iter().find(|(scene, _)| *scene == name).expect("a scene of that name").1
}

#[test]
fn a_trace_of_loss_is_no_limit_for_any_place() {
    for place in LOSSES {
        let mut e = nothing();
        e.ledger.drops = vec![lost(place, "counter", 99)];
        e.ledger.delivered_packets -= 99;
        let verdict = diagnose(&e);
        assert_eq!(
            (verdict.stage, verdict.confidence),
            (Stage::Nothing, Confidence::Fair),
            "{place:?}"
        );
        assert!(
            verdict.evidence.iter().any(|line| line.text.contains("99 of 100,000")),
            "{place:?}"
        );
        e.ledger.drops = vec![lost(place, "counter", 100)];
        assert_ne!(stage(&e), Stage::Nothing, "{place:?}");
    }
}

#[test]
fn nothing_is_not_said_below_the_asked_rate() {
    let e = WindowEvidence { target_pps: Some(102_000.0), ..nothing() };
    assert_eq!(stage(&e), Stage::Sender);
}

#[test]
fn the_sender_is_not_blamed_while_the_receive_softirq_runs_in_its_calls() {
    assert_eq!(stage(&scene("sender")), Stage::Sender);
    assert_eq!(stage(&trial(300_000, vec![])), Stage::SenderOrSoftirq);
    // RPS to the sender's own CPU moves nothing.
    assert_eq!(stage(&rps(trial(300_000, vec![]), 0)), Stage::SenderOrSoftirq);
    let napi = SoftirqPlace::Napi { cpus: vec![0] };
    assert_eq!(
        stage(&WindowEvidence { softirq: napi, ..trial(300_000, vec![]) }),
        Stage::SenderOrSoftirq
    );
    let thread = SoftirqPlace::NapiThread { cpus: vec![1] };
    assert_eq!(stage(&WindowEvidence { softirq: thread, ..trial(300_000, vec![]) }), Stage::Sender);
}

#[test]
fn a_full_sender_is_not_the_limit_when_its_datagrams_are_lost() {
    assert_eq!(stage(&rps(slow_reader(0.99, 0.0), 2)), Stage::Application);
}

#[test]
fn no_paired_trial_is_proposed_where_none_can_help() {
    assert!(diagnose(&trial(300_000, vec![])).paired_trial.is_some());
    assert_eq!(diagnose(&scene("sender_or_softirq_one_cpu")).paired_trial, None);
    assert_eq!(diagnose(&scene("sender")).paired_trial, None);
}

#[test]
fn a_sender_with_time_left_is_not_full() {
    let verdict = diagnose(&scene("sender_pauses"));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Sender, Confidence::Fair));
    assert!(verdict.sentence.contains("paused"), "{}", verdict.sentence);
}

#[test]
fn a_short_hiccup_of_the_send_buffer_is_no_closed_loop() {
    let mut e = scene("blocked_by_softirq");
    assert_eq!(stage(&e), Stage::Softirq);
    e.sender_blocked_s = 0.04;
    assert_eq!(stage(&e), Stage::Sender);
}

#[test]
fn a_blocked_sender_is_not_explained_by_an_idle_softirq() {
    assert_eq!(stage(&scene("blocked_by_something")), Stage::Unknown);
}

#[test]
fn backlog_drops_name_the_softirq_only_when_softirqs_fill_the_cpu() {
    let mut e = scene("softirq_backlog");
    assert_eq!(stage(&e), Stage::Softirq);
    // As full, but with something else.
    e.cpus[1] = cpu(1, 0.1, 0.0);
    assert_eq!(stage(&e), Stage::Backlog);
    assert_eq!(stage(&scene("backlog")), Stage::Backlog);
}

#[test]
fn ring_drops_name_the_softirq_only_when_it_fills_the_cpu() {
    assert_eq!(stage(&scene("softirq_ring")), Stage::Softirq);
    let mut e = scene("softirq_ring");
    let spinner = &mut e.cpus[2];
    (spinner.user_ratio, spinner.softirq_ratio, spinner.system_ratio) = (0.9, 0.1, 0.0);
    assert_eq!(stage(&e), Stage::Ring);
}

#[test]
fn the_application_is_not_blamed_for_time_it_did_not_get_or_had_left() {
    assert_eq!(stage(&slow_reader(0.99, 0.005)), Stage::Application);
    assert_eq!(stage(&slow_reader(0.60, 0.39)), Stage::ApplicationDescheduled);
    assert_eq!(stage(&slow_reader(0.60, 0.02)), Stage::SocketQueue);
}

#[test]
fn a_waiting_reader_that_loses_nothing_is_not_named() {
    let mut e = nothing();
    e.receiver_threads = vec![thread("serve", 1, 0.4, 0.3, 100_000)];
    assert_eq!(stage(&e), Stage::Nothing);
}

#[test]
fn livelock_needs_softirqs_on_the_readers_cpu_and_most_of_the_traffic_lost() {
    assert_eq!(stage(&livelock()), Stage::Livelock);
    // Another CPU carries the softirqs.
    assert_ne!(stage(&rps(livelock(), 0)), Stage::Livelock);
    // The reader gets through more than half.
    let mut most = livelock();
    most.delivered_pps = 900_000.0;
    most.receiver_threads[0].packets = 900_000;
    assert_eq!(stage(&most), Stage::Application);
    // Softirqs take little of the CPU.
    let mut little = livelock();
    little.cpus[1] = cpu(1, 0.2, 0.0);
    assert_eq!(stage(&little), Stage::Application);
    // What the same softirqs have no time to take from the backlog does not make it another limit.
    let mut both = livelock();
    both.ledger.offered_packets += 9_000_000;
    both.offered_pps *= 7.0;
    both.ledger.drops.push(lost(Place::Backlog, "machine/softnet.dropped", 9_000_000));
    assert_eq!(stage(&both), Stage::Livelock);
    // A NAPI thread takes turns with the reader.
    let napi = SoftirqPlace::NapiThread { cpus: vec![1] };
    assert_ne!(stage(&WindowEvidence { softirq: napi, ..livelock() }), Stage::Livelock);
}

#[test]
fn an_even_group_is_not_called_uneven() {
    let mut e = scene("uneven");
    assert_eq!(stage(&e), Stage::ReuseportImbalance);
    e.receiver_threads.iter_mut().for_each(|t| t.running_ratio = 0.99);
    assert!(!diagnose(&e).sentence.contains("one receiving thread"));
    let mut e = scene("uneven");
    e.sockets = (0..3).map(|i| socket(i, 266_666, 66_666)).collect();
    assert!(!diagnose(&e).sentence.contains("one receiving thread"));
}

#[test]
fn a_shared_socket_is_blamed_only_for_the_lock_that_was_waited_for() {
    assert_eq!(stage(&socket_lock(0.3)), Stage::SocketLock);
    // Watched, and hardly waited for: the readers are slow by themselves.
    let verdict = diagnose(&socket_lock(0.01));
    assert_eq!(verdict.stage, Stage::Application);
    assert!(!verdict.sentence.contains("share one socket"), "{}", verdict.sentence);
    // Not watched: likely, not sure.
    let mut blind = socket_lock(0.3);
    blind.probed = Some(Probed { gaps: vec!["no BPF".into()], ..Probed::default() });
    let verdict = diagnose(&blind);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Application, Confidence::Fair));
    // A lock that its readers wait for costs nothing while nothing is lost.
    let mut lossless = nothing();
    lossless.probed = socket_lock(0.3).probed;
    assert_eq!(stage(&lossless), Stage::Nothing);
}

#[test]
fn a_load_is_called_packed_only_while_it_could_be_spread() {
    assert_eq!(stage(&packed(Some(16), 1, vec![1])), Stage::OneCpu);
    assert_eq!(stage(&packed(Some(16), 4, vec![])), Stage::OneCpu);
    assert_eq!(stage(&packed(Some(16), 1, vec![])), Stage::RpsMissing);
    assert_eq!(stage(&packed(Some(1), 1, vec![0, 1])), Stage::RpsPointless);
    // One flow and nothing that tried to spread it: the softirq is the limit, and no setting helps.
    assert_eq!(stage(&packed(Some(1), 1, vec![1])), Stage::Softirq);
    // Flows that nobody counted: it may be one.
    let verdict = diagnose(&packed(None, 1, vec![1]));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::OneCpu, Confidence::Fair));
    // The other CPU has no time.
    let mut busy = packed(Some(16), 1, vec![1]);
    busy.cpus[0] = cpu(0, 0.0, 0.2);
    assert_eq!(stage(&busy), Stage::Softirq);
    busy.cpus[0] = cpu(0, 0.0, 0.3);
    assert_eq!(stage(&busy), Stage::OneCpu);
    // The load is spread.
    let mut spread = packed(Some(16), 1, vec![0, 1]);
    spread.spread.as_mut().unwrap().packets[0].packets = 5_000;
    assert_eq!(stage(&spread), Stage::Softirq);
}

#[test]
fn flows_that_nobody_counted_are_one_if_their_packets_have_one_hash() {
    let verdict = diagnose(&hashed(0.95, vec![0, 1]));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::RpsPointless, Confidence::Strong));
    for (rps_cpus, many) in [(vec![], Stage::RpsMissing), (vec![1], Stage::OneCpu)] {
        assert_eq!(stage(&hashed(0.95, rps_cpus.clone())), Stage::Softirq, "RPS {rps_cpus:?}");
        assert_eq!(stage(&hashed(0.94, rps_cpus.clone())), many, "RPS {rps_cpus:?}");
    }
    let verdict = diagnose(&hashed(0.94, vec![0, 1]));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::OneCpu, Confidence::Fair));
    // The flow of another CPU.
    let mut other = hashed(0.98, vec![0, 1]);
    let cpus = &mut other.spread.as_mut().unwrap().packets;
    cpus[0].one_flow_ratio = cpus[1].one_flow_ratio.take();
    assert_eq!(stage(&other), Stage::OneCpu);
    // What the sender says of its flows counts more.
    let mut counted = hashed(0.98, vec![0, 1]);
    counted.spread.as_mut().unwrap().flows = Some(16);
    assert_eq!(stage(&counted), Stage::OneCpu);
}

#[test]
fn one_flow_is_named_where_it_slows_the_sender_instead_of_being_lost() {
    let mut e = packed(Some(1), 1, vec![0, 1]);
    e.ledger = trial(25_000, vec![]).ledger;
    (e.offered_pps, e.delivered_pps) = (25_000.0, 25_000.0);
    e.softirq = SoftirqPlace::Rps { cpus: vec![0, 1] };
    assert_eq!(stage(&e), Stage::RpsPointless);
    e.target_pps = Some(25_000.0);
    assert_eq!(stage(&e), Stage::Nothing);
}

#[test]
fn a_full_table_and_a_filter_share_what_netfilter_lost() {
    assert_eq!(stage(&conntrack(5_000)), Stage::ConntrackFull);
    let verdict = diagnose(&conntrack(4_000));
    assert_eq!(verdict.stage, Stage::ConntrackFull);
    assert!(verdict.next[0].contains("1,000 datagrams"), "{:?}", verdict.next);
    assert_eq!(stage(&conntrack(1_000)), Stage::Filter);
    assert_eq!(stage(&conntrack(0)), Stage::Filter);
    // Entries expired before they were counted.
    let mut e = conntrack(5_000);
    e.conntrack.as_mut().unwrap().entries_count = 1000;
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::ConntrackFull, Confidence::Fair));
}

#[test]
fn a_task_is_a_victim_only_while_the_path_is_well_and_the_task_is_no_part_of_it() {
    assert_eq!(stage(&victim(0.4)), Stage::Victim);
    assert_eq!(stage(&victim(0.1)), Stage::Nothing);
    let change = |change: &dyn Fn(&mut ProbedTask)| {
        let mut e = victim(0.4);
        change(&mut e.probed.as_mut().unwrap().tasks[0]);
        stage(&e)
    };
    assert_eq!(change(&|task| task.part_of_path = true), Stage::Nothing);
    // It hardly wants its CPU.
    assert_eq!(change(&|task| (task.on_cpu_ratio, task.taken_ratio) = (0.1, 0.05)), Stage::Nothing);
    let mut loses = victim(0.4);
    loses.ledger = slow_reader(0.99, 0.0).ledger;
    assert_ne!(stage(&loses), Stage::Victim);
}

#[test]
fn ticks_are_called_wrong_only_beside_a_measurement_that_differs_much() {
    assert_eq!(stage(&ticks_err(0.0, 0.4)), Stage::TickArtefact);
    assert_eq!(stage(&ticks_err(0.9, 0.4)), Stage::TickArtefact);
    assert_eq!(stage(&ticks_err(0.3, 0.4)), Stage::Nothing);
    let mut blind = ticks_err(0.9, 0.4);
    blind.probed.as_mut().unwrap().cpus.clear();
    assert_eq!(stage(&blind), Stage::Nothing);
    // Who pays comes before how it is shown.
    let mut both = victim(0.4);
    both.cpus[1] = cpu(1, 0.0, 0.0);
    assert_eq!(stage(&both), Stage::Victim);
}

#[test]
fn what_was_measured_counts_and_not_the_ticks() {
    // By ticks softirqs own the reader's CPU; they do not.
    let mut e = livelock();
    e.probed = ticks_err(0.0, 0.1).probed;
    assert_eq!(stage(&e), Stage::Application);
}

#[test]
fn a_thread_that_reads_nothing_shares_no_socket() {
    let mut e = scene("shared_socket");
    assert!(diagnose(&e).sentence.contains("share one socket"));
    e.receiver_threads[0].packets = 200_000;
    e.receiver_threads[1].packets = 0;
    assert!(!diagnose(&e).sentence.contains("share one socket"));
}

#[test]
fn an_unconfirmed_derived_drop_is_less_sure() {
    let mut e = scene("netfilter");
    assert_eq!(diagnose(&e).confidence, Confidence::Strong);
    e.ledger.drops[0].cross_checks.clear();
    assert_eq!(diagnose(&e).confidence, Confidence::Fair);
}

#[test]
fn the_larger_loss_decides_and_the_other_is_named() {
    let verdict = diagnose(&scene("several_limits"));
    assert_eq!(verdict.stage, Stage::Application);
    assert!(verdict.next.iter().any(|next| next.contains("netfilter")), "{:?}", verdict.next);
    let mut e = scene("several_limits");
    e.ledger.drops[0].packets = 150_000;
    assert_eq!(stage(&e), Stage::Filter);
}

#[test]
fn an_observed_stall_sizes_the_buffer() {
    // 300k/s for 0.34 s are 102,000 datagrams of 768 bytes: 78 MB, so 128 MiB hold them and 64 MiB do not.
    let verdict = diagnose(&scene("socket_queue_stall"));
    assert!(verdict.remedies[0].contains("--rcvbuf 128MiB"), "{}", verdict.remedies[0]);
}
