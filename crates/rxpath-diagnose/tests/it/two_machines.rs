//! Sender and receiver on machines of their own: CPU numbers of one say nothing of the other.

use rxpath_diagnose::diagnose;
use rxpath_record::evidence::{
    CpuDistribution, CpuPackets, CpuUse, SenderHost, SoftirqPlace, WindowEvidence,
};
use rxpath_record::ledger::{Drop, LedgerUnit, PacketBounds, Place};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, Stage};

use crate::made::{cpu, lost, slow_reader, text, thread, trial};

/// The same with the sender on a machine of its own, `gen1`, whose CPU 0 is full. Of the receiver's, CPU 0 has nothing to
/// do and CPU 2 takes all packets.
fn apart(mut evidence: WindowEvidence) -> WindowEvidence {
    evidence.sender_threads.iter_mut().for_each(|thread| thread.host = "gen1".into());
    evidence.sender_hosts =
        vec![SenderHost { name: "gen1".into(), cpus: vec![cpu(0, 0.0, 0.01), cpu(1, 0.0, 1.0)] }];
    evidence.softirq = SoftirqPlace::Napi { cpus: Vec::new() };
    evidence.cpus = vec![cpu(0, 0.0, 1.0), evidence.cpus[1].clone(), cpu(2, 0.3, 0.7)];
    let packets = evidence.ledger.offered_packets;
    let packets = vec![CpuPackets { cpu: 2, packets, ..CpuPackets::default() }];
    evidence.spread =
        Some(CpuDistribution { packets, flows: Some(1), ..CpuDistribution::default() });
    evidence
}

fn full_sender() -> WindowEvidence {
    apart(trial(300_000, vec![]))
}

fn paused_sender() -> WindowEvidence {
    let mut e = apart(trial(150_000, vec![]));
    e.sender_threads[0].running_ratio = 0.3;
    e
}

fn blocked_sender() -> WindowEvidence {
    let mut e = apart(trial(150_000, vec![]));
    e.sender_threads[0].running_ratio = 0.3;
    e.sender_blocked_s = 0.6;
    e
}

fn full_softirq() -> WindowEvidence {
    let drops = vec![lost(Place::Ring, "rx/ethtool.ens1.rx_missed_errors", 90_000)];
    let mut e = apart(trial(300_000, drops));
    e.cpus[2] = cpu(2, 0.97, 0.0);
    e
}

fn of_segments() -> WindowEvidence {
    let mut e = full_sender();
    e.ledger.unit = LedgerUnit::Segment;
    e.sockets.clear();
    e
}

/// Each with the stage that limits.
pub fn scenes() -> Vec<(Stage, WindowEvidence)> {
    let network = "tx/ethtool.eth0.tx_packets - rx/ethtool.eth1.rx_packets";
    let qdisc = "tx/qdisc.eth0.root.drops";
    vec![
        (Stage::Sender, full_sender()),
        (Stage::Sender, paused_sender()),
        (Stage::Sender, blocked_sender()),
        (Stage::Sender, of_segments()),
        (Stage::Sender, apart(trial(300_000, vec![lost(Place::Qdisc, qdisc, 90_000)]))),
        (Stage::Network, apart(trial(300_000, vec![lost(Place::Network, network, 90_000)]))),
        (Stage::Softirq, full_softirq()),
        (Stage::Application, apart(slow_reader(0.99, 0.005))),
        (Stage::SocketQueue, apart(slow_reader(0.4, 0.01))),
    ]
}

fn said(evidence: &WindowEvidence) -> (DiagnosisVerdict, String) {
    let verdict = diagnose(evidence);
    let text = text(&verdict);
    (verdict, text)
}

#[test]
fn each_cause_is_found_between_two_machines() {
    for (stage, evidence) in scenes() {
        let (verdict, text) = said(&evidence);
        assert_eq!(verdict.stage, stage, "{text}");
        assert_eq!(verdict.paired_trial, None, "no trial of the lab's link decides: {text}");
        assert!(verdict.confidence > Confidence::Weak, "{text}");
        assert!(!text.contains("missing: "), "{text}");
    }
}

#[test]
fn a_sender_that_is_the_limit_is_named_with_the_cpu_of_its_own_machine() {
    let (verdict, text) = said(&full_sender());
    assert_eq!((verdict.confidence, verdict.cpu), (Confidence::Strong, None), "{text}");
    let sentence = "the sender gen1 is the limit: CPU 0 is 99 % busy";
    assert!(verdict.sentence.starts_with(sentence), "{text}");
    assert!(text.contains("[gen1: /proc/stat cpu0]"), "{text}");
    for evidence in [paused_sender(), blocked_sender()] {
        let (verdict, text) = said(&evidence);
        assert!(verdict.sentence.starts_with("the sender gen1 is the limit: "), "{text}");
    }
    let (verdict, text) = said(&of_segments());
    assert!(verdict.sentence.contains("CPU 0 of gen1 was 99 % busy"), "{text}");
    let drops = vec![lost(Place::Qdisc, "tx/qdisc.eth0.root.drops", 9_000)];
    let (verdict, text) = said(&apart(trial(300_000, drops)));
    assert!(verdict.sentence.starts_with("the sender gen1's queueing discipline"), "{text}");
}

#[test]
fn the_softirq_s_cpus_are_those_of_the_receiver_that_took_packets() {
    let (verdict, text) = said(&full_softirq());
    assert_eq!((verdict.cpu, verdict.confidence), (Some(2), Confidence::Strong), "{text}");
    // The sender's CPU of that number says nothing of it.
    let mut e = full_softirq();
    e.sender_threads = vec![thread("load", 2, 0.99, 0.0, 300_000)];
    e.sender_threads[0].host = "gen1".into();
    e.sender_hosts[0].cpus.push(cpu(2, 0.0, 0.0));
    assert_eq!(said(&e).0.stage, Stage::Softirq);
}

#[test]
fn a_sender_with_the_number_of_the_reader_s_cpu_does_not_share_it() {
    // Waits that nobody on the receiver's machine explains.
    let mut e = slow_reader(0.5, 0.45);
    e.receiver_threads[0].seen_cpus = vec![0];
    e.receiver_threads[0].asked_cpu = Some(0);
    let here = diagnose(&e);
    assert_eq!((here.stage, here.confidence), (Stage::ApplicationDescheduled, Confidence::Strong));
    let mut e = apart(e);
    e.cpus[0] = CpuUse { foreign_ratio: Some(0.0), ..cpu(0, 0.0, 0.0) };
    let (verdict, text) = said(&e);
    assert_eq!(verdict.stage, Stage::ApplicationDescheduled, "{text}");
    assert_eq!(verdict.confidence, Confidence::Fair, "{text}");
    assert!(!text.contains("the sender runs on"), "{text}");
}

#[test]
fn cpus_of_the_sender_s_machine_that_were_not_read_are_a_gap() {
    let mut e = full_sender();
    e.sender_hosts[0].cpus.clear();
    let (verdict, text) = said(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Sender, Confidence::Weak), "{text}");
    assert!(text.contains("missing: CPU time of CPU 0 of gen1"), "{text}");
}

#[test]
fn a_loss_within_bounds_is_shown_without_a_share() {
    let bounds = Some(PacketBounds { least_packets: 10_000, most_packets: Some(90_000) });
    let network = lost(Place::Network, "tx - rx", 50_000);
    let (_, text) =
        said(&apart(trial(300_000, vec![Drop { exact: false, bounds, ..network.clone() }])));
    let wanted = "50,000 (between 10,000 and 90,000) of 300,000 offered lost at ";
    assert!(text.contains(wanted), "{text}");
    let (_, text) = said(&apart(trial(300_000, vec![network])));
    assert!(text.contains("50,000 of 300,000 offered (17 %) lost at "), "{text}");
}

/// Counters of all programs, of which up to `most` may be segments of the workload.
fn maybe_lost(most: u64) -> WindowEvidence {
    let bounds = Some(PacketBounds { least_packets: 0, most_packets: Some(most) });
    let at_backlog = lost(Place::SocketBacklog, "rx/TcpExt.TCPBacklogDrop", 0);
    let mut e = apart(trial(
        300_000,
        vec![Drop { exact: false, bounds, cross_checks: Vec::new(), ..at_backlog }],
    ));
    e.ledger.unit = LedgerUnit::Segment;
    e.sockets.clear();
    e.sender_threads[0].running_ratio = 0.5;
    e
}

#[test]
fn segments_that_may_have_been_lost_are_a_weak_verdict() {
    let (verdict, text) = said(&maybe_lost(40_000));
    assert_eq!(
        (verdict.stage, verdict.confidence),
        (Stage::TcpRetransmit, Confidence::Weak),
        "{text}"
    );
    let sentence = "segments may be lost at the socket's backlog: up to 40,000 of 300,000 that both sides sent";
    assert_eq!(verdict.sentence, sentence);
    assert_eq!(text.matches("up to 40,000 of 300,000 offered lost at ").count(), 1, "{text}");
    // A sure loss is the verdict, be it the smaller one.
    let mut sure = maybe_lost(40_000);
    sure.ledger.drops.push(lost(Place::Ring, "rx/ethtool.ens1.rx_missed_errors", 9_000));
    let (verdict, text) = said(&sure);
    assert_eq!(
        (verdict.stage, verdict.confidence),
        (Stage::TcpRetransmit, Confidence::Fair),
        "{text}"
    );
    assert!(verdict.sentence.contains("3.0 %") && !text.contains("may be lost"), "{text}");
    // The other place is named in the evidence.
    let last = verdict.evidence.iter().rev().find(|line| line.text.contains("up to 40,000 of "));
    assert_eq!(last.map(|line| line.source.as_str()), Some("rx/TcpExt.TCPBacklogDrop"), "{text}");
    // A thread without time left is the limit for sure.
    let mut full = maybe_lost(40_000);
    full.sender_threads[0].running_ratio = 0.99;
    let (verdict, text) = said(&full);
    assert_eq!(
        (verdict.stage, verdict.next.as_slice()),
        (Stage::Sender, &[sentence.to_owned()][..]),
        "{text}"
    );
}

/// Datagrams of a host that others use: its ring may have lost up to `most` of 300,000.
fn ring_may_have_lost(most: u64) -> WindowEvidence {
    let bounds = Some(PacketBounds { least_packets: 0, most_packets: Some(most) });
    let at_ring = lost(Place::Ring, "rx/ethtool.ens1.rx_missed_errors", 0);
    apart(trial(300_000, vec![Drop { exact: false, bounds, cross_checks: Vec::new(), ..at_ring }]))
}

#[test]
fn a_place_that_may_have_lost_datagrams_is_named_in_every_verdict() {
    let up_to = "up to 40,000 of 300,000 offered lost at the device ring";
    // The sender is full, and nothing surely was lost.
    let (verdict, text) = said(&ring_may_have_lost(40_000));
    assert_eq!(verdict.stage, Stage::Sender, "{text}");
    assert!(text.contains("nothing surely was lost of 300,000 offered"), "{text}");
    assert!(verdict.sentence.ends_with(" and no significant loss is sure"), "{text}");
    assert!(verdict.evidence.iter().any(|line| line.text == up_to), "{text}");
    // A few surely were.
    let mut few = ring_may_have_lost(40_000);
    few.ledger.drops.push(lost(Place::Qdisc, "tx/qdisc.ens1.root.drops", 100));
    let (verdict, text) = said(&few);
    assert!(verdict.sentence.ends_with(" and no significant loss is sure"), "{text}");
    assert!(text.contains(") surely lost: too few to be the limit"), "{text}");
    // The target rate was reached.
    let mut reached = ring_may_have_lost(40_000);
    reached.sender_threads[0].running_ratio = 0.5;
    reached.target_pps = Some(300_000.0);
    let (verdict, text) = said(&reached);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Nothing, Confidence::Fair), "{text}");
    let without = " without significant loss that is sure";
    assert!(verdict.sentence.ends_with(without), "{text}");
    assert!(verdict.evidence.iter().any(|line| line.text == up_to), "{text}");
    // A few lost for sure elsewhere: the sentence must not deny them.
    reached.ledger.drops.push(lost(Place::Qdisc, "tx/qdisc.ens1.root.drops", 9));
    let (verdict, text) = said(&reached);
    assert!(text.contains("9 of 300,000 offered"), "{text}");
    assert!(verdict.sentence.ends_with(without), "{text}");
    // A sure loss elsewhere is the verdict.
    let mut sure = ring_may_have_lost(40_000);
    sure.ledger.drops.push(lost(Place::Qdisc, "tx/qdisc.ens1.root.drops", 9_000));
    let (verdict, text) = said(&sure);
    assert!(verdict.sentence.contains("queueing discipline is the limit"), "{text}");
    assert!(verdict.evidence.iter().any(|line| line.text == up_to), "{text}");
    // Too few to matter.
    let (_, text) = said(&ring_may_have_lost(200));
    assert!(text.contains("nothing was lost of 300,000 offered"), "{text}");
    assert!(!text.contains("up to 200"), "{text}");
}

#[test]
fn a_limit_that_is_not_known_is_the_place_that_may_have_lost_most() {
    let mut e = ring_may_have_lost(40_000);
    e.sender_threads.clear();
    let (verdict, text) = said(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Unknown, Confidence::Weak), "{text}");
    let sentence = "the limit is not known: up to 40,000 of 300,000 offered datagrams may be lost at the device ring";
    assert_eq!(verdict.sentence, sentence, "{text}");
    assert!(verdict.remedies[0].contains("`rx/ethtool.ens1.rx_missed_errors`"), "{text}");
}

#[test]
fn few_segments_that_may_have_been_lost_are_shown_as_an_interval() {
    let (verdict, text) = said(&maybe_lost(200));
    assert_eq!(verdict.stage, Stage::Nothing, "{text}");
    assert!(text.contains("between 0 and 200 of 300,000 segments were lost"), "{text}");
}
