//! Interrupt coalescing by time: the first packet of an idle period arms a timer `T`; then all are served.
//!
//! M/D/1 with a set-up time, exhaustive service. **Source** P. D. Welch, "On a generalized M/G/1 queuing process in
//! which the first customer of each busy period receives exceptional service", Operations Research 12, 1964.
//! Assumes Poisson arrivals, no frame limit, no cost of the interrupt itself.

use crate::inputs::{Inputs, Outputs, Problem};

/// What coalescing does to delay and interrupts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coalesced {
    /// Mean time from arrival to the start of service, in s.
    pub mean_wait_s: f64,
    /// Interrupts per second.
    pub interrupts_per_s: f64,
    /// Packets per interrupt.
    pub packets_per_interrupt: f64,
}

/// The queue at `arrivals_pps` with a service time and a timer, in s; the load must be below 1.
pub fn coalesced(arrivals_pps: f64, service_s: f64, timer_s: f64) -> Coalesced {
    let idle = 1.0 - arrivals_pps * service_s;
    let gathered = 1.0 + arrivals_pps * timer_s;
    Coalesced {
        mean_wait_s: arrivals_pps * service_s * service_s / (2.0 * idle)
            + timer_s * (1.0 + gathered) / (2.0 * gathered),
        interrupts_per_s: arrivals_pps * idle / gathered,
        packets_per_interrupt: gathered / idle,
    }
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let arrivals = inputs.not_negative("lam")?;
    let service = inputs.not_negative("service_us")? / 1e6;
    let timer = inputs.not_negative("rx_usecs")? / 1e6;
    if arrivals * service >= 1.0 {
        return Err(Problem::unstable("coalescing", arrivals * service));
    }
    let got = coalesced(arrivals, service, timer);
    Ok(Outputs::default()
        .with("mean_wait_us", got.mean_wait_s * 1e6)
        .with("interrupts_per_s", got.interrupts_per_s)
        .with("packets_per_interrupt", got.packets_per_interrupt))
}
