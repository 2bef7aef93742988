//! M/D/1/K: Poisson arrivals, a fixed service time, `K` places of which one is the packet in service.
//!
//! A softirq that spends the same time on each packet, or a reader of equal datagrams, in front of a bounded queue.
//! Solved in [`crate::queue::fixed_service`]; the well-known closed sum alternates and cancels.

use crate::inputs::{Inputs, Outputs, Problem};
use crate::queue::fixed_service::limited;

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let got = limited(inputs.not_negative("rho")?, inputs.whole("K", 1..=1_000_000_000_000)?);
    Ok(Outputs::default().with("block", got.block).with("idle", got.idle))
}
