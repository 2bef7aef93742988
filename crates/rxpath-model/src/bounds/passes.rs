//! Softirq passes: how many packets before ksoftirqd, and when `time_squeeze` can count at all.

use rxpath_core::number::grouped;

use super::{Bound, Parameters, seconds};
use crate::kinds::napi_budget::RESTARTS;

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let (napis, weight, budget) = (p.napis?.0, p.weight(), p.budget());
    let polls = napis.min(budget.div_ceil(weight));
    let packets = polls * weight;
    let squeezes = packets >= budget;
    let mut sentence = format!(
        "{napis} busy NAPI take at most {} packets per softirq pass and {} before ksoftirqd",
        grouped(packets),
        grouped(packets * RESTARTS as u64)
    );
    sentence += if squeezes {
        "; the budget ends a pass, and time_squeeze counts this"
    } else {
        "; the budget is never used up: only the time limit can raise time_squeeze"
    };
    let mut bound = Bound::new(
        "packets per pass = W min(n, ceil(budget/W)); 10 passes (MAX_SOFTIRQ_RESTART)",
        "every NAPI has a full weight of packets and is polled once per pass; no time limit is hit",
    )
    .value("packets_per_pass_packets", packets)
    .value("before_ksoftirqd_packets", packets * RESTARTS as u64)
    .value("budget_ends_pass", squeezes);
    if let Some(packet) = p.packet_ns {
        let pass = polls as f64 * p.poll_s() + packets as f64 * packet.as_secs_f64();
        sentence += &format!("; a pass lasts {}", seconds(pass));
        bound = bound.with("pass_s", pass);
    }
    Some(Bound { sentence: sentence + ".", ..bound })
}
