//! The paired trial tells the sender from the receive softirq in its call, or says why it does not.

use rxpath_diagnose::{PAIRS, TrialPair, combine, diagnose};
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, Stage};

use crate::made::{cpu, lost, nothing, rps, slow_reader, text, thread, trial};

fn decide(paired: &WindowEvidence) -> DiagnosisVerdict {
    let primary = trial(270_000, vec![]);
    combine(&diagnose(&primary), &[TrialPair { before: &primary, after: paired }; PAIRS])
}

/// The same with these rates in the paired trials, one pair each.
fn decide_by(rates_pps: &[u64]) -> DiagnosisVerdict {
    let primary = trial(270_000, vec![]);
    let paired: Vec<WindowEvidence> =
        rates_pps.iter().map(|pps| rps(trial(*pps, vec![]), 1)).collect();
    let pairs: Vec<TrialPair> =
        paired.iter().map(|after| TrialPair { before: &primary, after }).collect();
    combine(&diagnose(&primary), &pairs)
}

#[test]
fn every_pair_must_say_the_same() {
    let (open, weak) = (Stage::SenderOrSoftirq, Confidence::Weak);
    let all = decide_by(&[351_000, 340_000, 360_000]);
    assert_eq!((all.stage, all.confidence), (Stage::Softirq, Confidence::Strong));
    assert!(all.evidence.iter().any(|line| line.text.contains("each pair: ")), "{}", text(&all));
    // One pair that shows no rise may be the noise, or the other two are.
    let mixed = decide_by(&[351_000, 272_000, 360_000]);
    assert_eq!((mixed.stage, mixed.confidence), (open, weak));
    let mixed = decide_by(&[272_000, 300_000, 271_000]);
    assert_eq!((mixed.stage, mixed.confidence), (open, weak));
    // What a void trial leaves is not enough to be sure.
    let few = decide_by(&[351_000, 360_000]);
    assert_eq!((few.stage, few.confidence), (Stage::Softirq, Confidence::Fair));
    assert_eq!(decide_by(&[]), diagnose(&trial(270_000, vec![])));
}

#[test]
fn a_rise_makes_the_softirq_a_part_of_the_limit() {
    let verdict = decide(&rps(trial(351_000, vec![]), 1));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Softirq, Confidence::Strong));
    insta::assert_snapshot!("paired_softirq", text(&verdict));
}

#[test]
fn a_sender_that_gains_nothing_and_is_still_full_is_the_limit() {
    let verdict = decide(&rps(trial(272_000, vec![]), 1));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Sender, Confidence::Fair));
    insta::assert_snapshot!("paired_sender", text(&verdict));
}

#[test]
fn more_offered_and_lost_again_is_still_the_softirq() {
    let drops = vec![lost(Place::SocketBuffer, "rx/Udp.RcvbufErrors", 120_000)];
    let mut paired = rps(trial(390_000, drops), 1);
    paired.receiver_threads = vec![thread("serve", 1, 0.99, 0.0, 270_000)];
    paired.cpus[1] = cpu(1, 0.4, 0.0);
    let verdict = decide(&paired);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Softirq, Confidence::Fair));
    assert!(verdict.sentence.contains("another limit"), "{}", verdict.sentence);
    insta::assert_snapshot!("paired_next_limit", text(&verdict));
}

#[test]
fn a_change_within_noise_leaves_it_open() {
    for pps in [290_000, 200_000] {
        let verdict = decide(&rps(trial(pps, vec![]), 1));
        assert_eq!((verdict.stage, verdict.confidence), (Stage::SenderOrSoftirq, Confidence::Weak));
    }
    insta::assert_snapshot!("paired_open", text(&decide(&rps(trial(290_000, vec![]), 1))));
}

#[test]
fn a_softirq_that_did_not_move_leaves_it_open() {
    for paired in [trial(351_000, vec![]), rps(trial(351_000, vec![]), 0)] {
        let verdict = decide(&paired);
        assert_eq!(verdict.stage, Stage::SenderOrSoftirq);
        assert!(verdict.sentence.contains("stayed"), "{}", verdict.sentence);
    }
}

#[test]
fn a_sender_that_is_held_up_in_the_paired_trial_leaves_it_open() {
    let mut paired = rps(trial(272_000, vec![]), 1);
    paired.sender_threads = vec![thread("load", 0, 0.5, 0.0, 272_000)];
    let verdict = decide(&paired);
    assert_eq!(verdict.stage, Stage::SenderOrSoftirq);
    assert!(verdict.sentence.contains("time left"), "{}", verdict.sentence);
}

#[test]
fn an_empty_paired_trial_decides_nothing() {
    let empty = rps(WindowEvidence::default(), 1);
    let verdict = decide(&empty);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::SenderOrSoftirq, Confidence::Weak));
}

#[test]
fn what_was_decided_stays_decided_and_gains_both_rates() {
    for primary in [nothing(), slow_reader(0.99, 0.0)] {
        let before = diagnose(&primary);
        let faster = rps(trial(900_000, vec![]), 1);
        let after = combine(&before, &[TrialPair { before: &primary, after: &faster }]);
        assert_eq!((after.stage, after.confidence), (before.stage, before.confidence));
        assert_eq!(after.evidence.len(), before.evidence.len() + 2);
        let said = &after.evidence[before.evidence.len()].text;
        assert!(said.contains("900k"), "{said}");
    }
}
