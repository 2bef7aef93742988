//! Packets are lost in front of a softirq whose CPU has no time left.

use super::one_cpu::packed;
use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let (backlog, ring) = (view.lost_at(Place::Backlog), view.lost_at(Place::Ring));
    let (place, lost) =
        if backlog >= ring { (Place::Backlog, backlog) } else { (Place::Ring, ring) };
    if !view.is_loss_at(place, lost) {
        return None;
    }
    let cpu = view.saturated_softirq()?;
    if packed(view).is_some() {
        return None;
    }
    let sentence = format!(
        "receive softirq processing on CPU {cpu} is the limit: CPU {cpu} is {} busy and {} of {} found its queue full",
        percent(view.busy_ratio(cpu)?),
        percent(view.share_at(place, lost)),
        whose(view, place),
    );
    // The counters are exact, and idle time is; only the split of the busy time is by ticks.
    Some(
        Claim::new(Stage::Softirq, Confidence::Strong, Part::PATH, sentence)
            .on(Some(cpu))
            .dropped_at(view, place, lost)
            .because(cpu_and_others(view, Some(cpu)))
            .because([rates(view)])
            .remedy(Remedy::SPREAD_FLOWS)
            .remedy(Remedy::lighter_softirq(cpu))
            .remedy(Remedy::SHARE_COST),
    )
}
