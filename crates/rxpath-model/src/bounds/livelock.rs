//! Softirq and reader on one CPU: the knee, and the rate delivered beyond it.

use rxpath_core::number::si;

use super::{Bound, Parameters};
use crate::kinds::livelock::OneCpu;

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let share = p.app_share.unwrap_or(0.5);
    let cpu = OneCpu { softirq_s: p.softirq_cost()?, reader_s: p.service_ns?.as_secs_f64() };
    let (offered, knee) = (p.arrivals()?, cpu.knee_pps());
    let (inline, held) = (cpu.goodput_pps(offered), cpu.goodput_held_back_pps(offered, share));
    let sentence = format!(
        "On one CPU all datagrams are delivered up to {}/s and none from {}/s; at {} offered, {} are delivered, \
         and {} where ksoftirqd holds softirqs back.",
        si(knee),
        si(cpu.zero_pps()),
        si(offered),
        si(inline),
        si(held)
    );
    let bound = Bound::new(
        "g = min(lambda, max(0, (1 - lambda c_s)/c_a)); knee 1/(c_s + c_a); with hold-back or NAPI threads \
         g = min(lambda, max((1 - lambda c_s)/c_a, w/c_a)); c_s = c_pkt + (c_poll + c_irq)/batch",
        "the softirq has absolute priority (Linux before 4.9 and since 6.5); hold-back is Linux 4.9 to 6.4; \
         c_s is for the given batch; the real batch grows with the load",
    )
    .with("softirq_cost_ns", cpu.softirq_s * 1e9)
    .with("knee_pps", knee)
    .with("zero_pps", cpu.zero_pps())
    .with("goodput_pps", inline)
    .with("goodput_held_back_pps", held);
    Some(Bound { sentence, ..bound })
}
