//! Senders on real hosts that were the limit: the target rate was not reached, because a sender's CPU was full or its send
//! calls waited. What the trial shows of the receiver is then a lower bound.

use rxpath_core::number::si;
use rxpath_core::{PathSide, Warning};
use rxpath_load::limit::{Who, busy_text};

use crate::testbed::Testbed;
use crate::trial::result::{OfferedRates, WorkloadResult};
use crate::trial::side::SideMeasurements;

/// Code of the warning: the headline of a run looks for it.
pub(crate) const SENDER_LIMIT: &str = "sender-limit";

/// A warning for each sender that was the limit; nothing in the lab, where the verdict says it.
pub(super) fn of(testbed: &dyn Testbed, load: &SideMeasurements) -> Vec<Warning> {
    let hosts = testbed.hosts(PathSide::Tx);
    let several = load.parts.iter().map(|(host, part)| (host, &part.result));
    let alone = hosts.first().filter(|_| load.parts.is_empty()).map(|host| (host, &load.result));
    several.chain(alone).filter_map(|(host, result)| said(host, result)).collect()
}

fn said(host: &str, result: &WorkloadResult) -> Option<Warning> {
    let OfferedRates { target, offered, unit, limit } =
        result.rates().filter(|it| it.offered < it.target)?;
    let evidence = match result.udp_load() {
        // Without what is said of virtual links.
        Some(load) if limit.who == Who::Sender => busy_text(&load.threads, load.duration_s),
        _ => limit.evidence.clone(),
    };
    let remedy = match limit.who {
        Who::Sender => "add a sender, load.threads on CPUs of their own, or load.gso",
        Who::SendBuffer => "raise load.sndbuf",
        Who::Path => "its send buffer drains slower: compare the rate with the speed of its link",
        _ => return None,
    };
    let (target, offered) = (si(target), si(offered));
    let text =
        format!("{host} is the limit: target {target}{unit}, offered {offered}{unit}, {evidence}");
    Some(Warning::new(SENDER_LIMIT, text).cure(remedy))
}

#[cfg(test)]
mod tests {
    use rxpath_load::limit::Limit;
    use rxpath_load::udp::result::{LoadResult, ThreadResult};
    use rxpath_load::usage::ThreadUsage;

    use super::*;

    /// A sender of 5 M/s over two seconds.
    fn sender(who: Who, offered_packets: u64) -> WorkloadResult {
        let usage = ThreadUsage { seen_cpus: vec![3], cpu_system_s: 2.0, ..ThreadUsage::default() };
        let limit = Limit { who, evidence: "blocked 40 % of the time".into() };
        WorkloadResult::UdpLoad(LoadResult {
            duration_s: 2.0,
            offered_packets,
            target_pps: Some(5e6),
            threads: vec![ThreadResult { usage, ..ThreadResult::default() }],
            limit,
            ..LoadResult::default()
        })
    }

    #[test]
    fn a_sender_that_has_no_time_left_is_named_with_what_it_offered() {
        let warning = said("gen1", &sender(Who::Sender, 4_200_000)).unwrap();
        let text = "gen1 is the limit: target 5M/s, offered 2.1M/s, CPU 3 100 % busy";
        assert_eq!((warning.text.as_str(), warning.code.as_str()), (text, SENDER_LIMIT));
        let blocked = said("gen1", &sender(Who::Path, 4_200_000)).unwrap();
        assert!(blocked.text.ends_with("blocked 40 % of the time"), "{blocked}");
    }

    #[test]
    fn a_sender_that_kept_its_schedule_or_had_none_is_no_limit() {
        assert_eq!(said("gen1", &sender(Who::Schedule, 9_990_000)), None);
        assert_eq!(said("gen1", &sender(Who::NotHere, 4_200_000)), None);
        let WorkloadResult::UdpLoad(load) = sender(Who::Sender, 4_200_000) else { return };
        let flat_out = LoadResult { target_pps: None, ..load };
        assert_eq!(said("gen1", &WorkloadResult::UdpLoad(flat_out)), None);
    }
}
