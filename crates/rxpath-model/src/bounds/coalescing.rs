//! Interrupt coalescing by time: added delay and saved interrupts.

use super::{Bound, Parameters, seconds};
use crate::kinds::coalesce_usecs::coalesced;

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let (arrivals, service) = (p.arrivals()?, p.packet_ns?.as_secs_f64());
    let formula = "W = lambda S^2/(2(1-rho)) + (2T + lambda T^2)/(2(1 + lambda T)); irq/s = lambda (1-rho)/(1 + lambda T)";
    let assumes = "Poisson arrivals, a timer armed by the first packet, polls until the ring is empty; no rx-frames, \
                   no adaptive coalescing, no cost of the interrupt itself";
    let load = arrivals * service;
    if load >= 1.0 {
        let sentence = format!(
            "At a softirq load of {load:.2} polling never stops: there are no interrupts to coalesce."
        );
        return Some(Bound { sentence, ..Bound::new(formula, assumes).with("load_ratio", load) });
    }
    let got = coalesced(arrivals, service, p.timer()?);
    let mut sentence = format!(
        "rx-usecs gives {:.0} interrupts/s with {:.1} packets each, and packets wait {} on average",
        got.interrupts_per_s,
        got.packets_per_interrupt,
        seconds(got.mean_wait_s)
    );
    let mut bound = Bound::new(formula, assumes)
        .with("load_ratio", load)
        .with("interrupts_per_s", got.interrupts_per_s)
        .with("packets_per_interrupt_packets", got.packets_per_interrupt)
        .with("mean_wait_s", got.mean_wait_s);
    if let Some(irq) = p.irq_ns {
        let cpu = got.interrupts_per_s * irq.as_secs_f64();
        sentence += &format!("; the interrupts take {:.1} % of a CPU", cpu * 100.0);
        bound = bound.with("interrupt_cpu_ratio", cpu);
    }
    Some(Bound { sentence: sentence + ".", ..bound })
}
