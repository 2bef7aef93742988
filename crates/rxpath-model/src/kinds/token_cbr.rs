//! A ring of `D` ready descriptors under a regular stream without refill.
//!
//! The published token bucket (Wu, Crawford, Bowden, Computer Communications 30, 2007): no drop in a starvation of
//! `tau` exactly when `D >= ceil(R tau)`. With a refill at `R_r < R` the ring lasts `D/(R - R_r)`.

use crate::inputs::{Code, Inputs, Outputs, Problem};

/// The starvations for which the ring is sized when the case names none, in ms.
const STALLS_MS: [f64; 3] = [2.0, 8.0, 10.0];

/// Descriptors that outlast `stall_ms` at `rate` packets/s.
pub fn descriptors(rate: f64, stall_ms: f64) -> u64 {
    (rate * stall_ms / 1e3).ceil() as u64
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let (rate, ring) = (inputs.positive("R")?, inputs.not_negative("D")?);
    let refill = inputs.or("R_r", 0.0)?;
    let given = inputs.has("stall_ms");
    let stalls = if given { inputs.numbers("stall_ms")? } else { STALLS_MS.to_vec() };
    let outputs = if refill < rate {
        Outputs::default().with("t_fill_ms", ring / (rate - refill) * 1e3)
    } else {
        Outputs::default().but(Problem::new(
            Code::NoValue,
            "the refill keeps up with the arrivals: the ring never runs out",
        ))
    };
    Ok(stalls.iter().fold(outputs, |outputs, stall| {
        outputs.value(&format!("D_for_{stall}ms"), descriptors(rate, *stall))
    }))
}
