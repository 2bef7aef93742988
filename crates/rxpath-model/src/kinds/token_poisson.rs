//! A ring of `D` ready descriptors, `Poisson(a)` packets during a time without refill.
//!
//! What does not fit is `E[max(0, X - D)]`, summed in the direction in which its terms fall.

use crate::inputs::{Inputs, Outputs, Problem};
use crate::poisson;

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let mean = inputs.not_negative("mean")?;
    let ring = inputs.whole("D", 0..=1_000_000_000_000)?;
    if mean > 1e12 {
        return Err(Problem::bad("mean", "it must be at most 1e12"));
    }
    let lost = if mean > 0.0 { poisson::mean_excess(mean, ring) } else { 0.0 };
    let fraction = if mean > 0.0 { lost / mean } else { 0.0 };
    Ok(Outputs::default()
        .with("expected_lost", lost)
        .with("loss_fraction", fraction)
        .with("p_any_loss", poisson::at_least(mean, ring + 1)))
}
