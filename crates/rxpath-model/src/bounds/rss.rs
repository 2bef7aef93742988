//! Flows hashed on queues: the fullest queue saturates first.

use rxpath_core::number::si;

use super::{Bound, Parameters, percent};
use crate::kinds::balls::expected_max;

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let (flows, queues) = (p.flows?.0, p.queues?.0);
    let formula = "efficiency = F/(Q E[max]); the first queue saturates at lambda = mu1 F/E[max]";
    let assumes = "flows of equal rate, a uniform hash and an even indirection table";
    let Some(fullest) = expected_max(flows, queues) else {
        let sentence = format!("{flows} flows on {queues} queues are too many for the exact sum.");
        return Some(Bound { sentence, ..Bound::new(formula, assumes) });
    };
    let efficiency = flows as f64 / (queues as f64 * fullest);
    let mut sentence = format!(
        "Of {flows} flows the fullest of {queues} queues gets {fullest:.2} on average: {} of all queues' capacity \
         is reached when it saturates",
        percent(efficiency)
    );
    let mut bound = Bound::new(formula, assumes)
        .with("fullest_queue_flows", fullest)
        .with("efficiency_ratio", efficiency);
    if let Some(rate) = p.ring_rate() {
        let first = rate * flows as f64 / fullest;
        sentence += &format!(", at {} packets/s in all", si(first));
        bound = bound.with("first_saturation_pps", first);
    }
    Some(Bound { sentence: sentence + ".", ..bound })
}
