//! What holds for any evidence, however broken.

use proptest::prelude::*;
use rxpath_diagnose::{TrialPair, combine, diagnose};
use rxpath_record::evidence::{SoftirqPlace, WindowEvidence};
use rxpath_record::verdict::DiagnosisVerdict;

use crate::arbitrary::{evidence, near_a_scene};
use crate::made::text;

/// Everything that can be taken away from evidence, one at a time.
fn removals(e: &WindowEvidence) -> Vec<(String, WindowEvidence)> {
    let mut all: Vec<(String, WindowEvidence)> = Vec::new();
    let mut without = |what: String, change: &dyn Fn(&mut WindowEvidence)| {
        let mut less = e.clone();
        change(&mut less);
        all.push((what, less));
    };
    without("sender threads".into(), &|e| e.sender_threads.clear());
    without("receiver threads".into(), &|e| e.receiver_threads.clear());
    without("cpus".into(), &|e| e.cpus.clear());
    without("sockets".into(), &|e| e.sockets.clear());
    without("samples".into(), &|e| e.sockets.iter_mut().for_each(|s| s.samples = 0));
    without("capacities".into(), &|e| e.sockets.iter_mut().for_each(|s| s.capacity_packets = None));
    without("foreign".into(), &|e| e.cpus.iter_mut().for_each(|c| c.foreign_ratio = None));
    without("seen cpus".into(), &|e| {
        e.sender_threads
            .iter_mut()
            .chain(&mut e.receiver_threads)
            .for_each(|t| t.seen_cpus.clear());
    });
    without("asked cpus".into(), &|e| {
        e.sender_threads.iter_mut().chain(&mut e.receiver_threads).for_each(|t| t.asked_cpu = None);
    });
    without("backlog limit".into(), &|e| e.backlog_limit_packets = None);
    without("stall".into(), &|e| e.reader_stall_s = None);
    without("segments".into(), &|e| e.segments_per_send = None);
    without("spread".into(), &|e| e.spread = None);
    without("flows".into(), &|e| e.spread.iter_mut().for_each(|s| s.flows = None));
    without("hashes".into(), &|e| {
        let cpus = e.spread.iter_mut().flat_map(|spread| &mut spread.packets);
        cpus.for_each(|cpu| cpu.one_flow_ratio = None);
    });
    without("conntrack".into(), &|e| e.conntrack = None);
    without("table's size".into(), &|e| {
        e.conntrack.iter_mut().for_each(|conntrack| conntrack.entries_max = None);
    });
    without("locks".into(), &|e| e.probed.iter_mut().for_each(|probed| probed.locks = None));
    without("cross checks".into(), &|e| {
        e.ledger.drops.iter_mut().for_each(|d| d.cross_checks.clear());
    });
    for i in 0..e.cpus.len() {
        without(format!("cpu entry {i}"), &|e| {
            e.cpus.remove(i);
        });
    }
    all
}

fn sound(verdict: &DiagnosisVerdict) -> Result<(), TestCaseError> {
    let all = text(verdict);
    let bad = ["NaN", "nan ", "inf ", "-0 ", "{}"].iter().find(|word| all.contains(**word));
    prop_assert!(bad.is_none(), "{:?} in\n{}", bad, all);
    prop_assert!(!verdict.sentence.is_empty() && !verdict.remedies.is_empty(), "{}", all);
    prop_assert!(!verdict.next.is_empty(), "{}", all);
    prop_assert!(
        verdict.evidence.iter().all(|l| !l.text.is_empty() && !l.source.trim().is_empty()),
        "{}",
        all
    );
    Ok(())
}

/// Names and counters are the host's; only our own words are looked at.
fn only_own_words(e: &mut WindowEvidence) {
    e.ledger.drops.iter_mut().for_each(|d| d.counter = "counter".into());
    e.any_protocol.iter_mut().for_each(|loss| loss.drop.counter = "counter".into());
    let services = e.tcp.iter_mut().flat_map(|tcp| &mut tcp.services);
    let of_services = services.flat_map(|service| &mut service.threads);
    let threads = e.receiver_threads.iter_mut().chain(&mut e.sender_threads);
    threads.chain(of_services).for_each(|thread| thread.name = "thread".into());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_evidence_gets_a_verdict_in_words_and_finite_numbers(e in evidence()) {
        let mut e = e;
        only_own_words(&mut e);
        sound(&diagnose(&e))?;
    }

    #[test]
    fn any_pair_gets_a_verdict(first in evidence(), second in evidence()) {
        let mut pair = [first, second];
        pair.iter_mut().for_each(only_own_words);
        let pairs = [
            TrialPair { before: &pair[0], after: &pair[1] },
            TrialPair { before: &pair[1], after: &pair[0] },
        ];
        sound(&combine(&diagnose(&pair[0]), &pairs))?;
    }

    // Of evidence that is whole in itself: a thread on a CPU that has no entry is a hole that goes with the thread.
    #[test]
    fn less_evidence_never_makes_it_surer(e in near_a_scene()) {
        let all = diagnose(&e);
        for (what, less) in removals(&e) {
            let verdict = diagnose(&less);
            prop_assert!(
                verdict.confidence <= all.confidence,
                "without {what}:\n{}\nwith all:\n{}", text(&verdict), text(&all)
            );
        }
    }

    #[test]
    fn the_order_of_lists_does_not_matter(e in evidence()) {
        let mut turned = e.clone();
        turned.sender_threads.reverse();
        turned.receiver_threads.reverse();
        turned.cpus.reverse();
        turned.sockets.reverse();
        turned.ledger.drops.reverse();
        turned.any_protocol.reverse();
        if let Some(spread) = &mut turned.spread {
            spread.packets.reverse();
        }
        if let Some(probed) = &mut turned.probed {
            probed.cpus.reverse();
            probed.tasks.reverse();
            probed.locks.iter_mut().for_each(|locks| locks.reverse());
        }
        if let SoftirqPlace::Rps { cpus } | SoftirqPlace::Napi { cpus } | SoftirqPlace::NapiThread { cpus } = &mut turned.softirq {
            cpus.reverse();
        }
        prop_assert_eq!(text(&diagnose(&e)), text(&diagnose(&turned)));
    }
}
