//! Each stage has a neighbour of its scene in which it must not be named.

use rxpath_diagnose::diagnose;
use rxpath_record::evidence::{Evidence, SoftirqPlace};
use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, Stage};

use crate::made::{cpu, livelock, lost, nothing, rps, scenes, slow_reader, socket, thread, trial};

fn stage(evidence: &Evidence) -> Stage {
    diagnose(evidence).stage
}

fn scene(name: &str) -> Evidence {
    scenes().into_iter().find(|(scene, _)| *scene == name).expect("a scene of that name").1
}

#[test]
fn a_trace_of_loss_is_no_limit_for_any_place() {
    let places = [
        Place::SendCall,
        Place::Qdisc,
        Place::Ring,
        Place::Backlog,
        Place::IngressHook,
        Place::Ip,
        Place::ReversePath,
        Place::Netfilter,
        Place::NoListener,
        Place::Checksum,
        Place::SocketBuffer,
        Place::UdpMemory,
        Place::UdpMemoryUncounted,
        Place::UdpOther,
    ];
    for place in places {
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
    let e = Evidence { asked_pps: Some(102_000.0), ..nothing() };
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
        stage(&Evidence { softirq: napi, ..trial(300_000, vec![]) }),
        Stage::SenderOrSoftirq
    );
    let thread = SoftirqPlace::NapiThread { cpus: vec![1] };
    assert_eq!(stage(&Evidence { softirq: thread, ..trial(300_000, vec![]) }), Stage::Sender);
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
    assert_ne!(stage(&Evidence { softirq: napi, ..livelock() }), Stage::Livelock);
}

#[test]
fn an_even_group_is_not_called_uneven() {
    let mut e = scene("uneven");
    assert!(diagnose(&e).sentence.contains("one receiving thread"));
    e.receiver_threads.iter_mut().for_each(|t| t.running_ratio = 0.99);
    assert!(!diagnose(&e).sentence.contains("one receiving thread"));
    let mut e = scene("uneven");
    e.sockets = (0..3).map(|i| socket(i, 266_666, 66_666)).collect();
    assert!(!diagnose(&e).sentence.contains("one receiving thread"));
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
    assert!(
        verdict
            .evidence
            .iter()
            .any(|l| l.text.starts_with("next:") && l.text.contains("netfilter"))
    );
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
