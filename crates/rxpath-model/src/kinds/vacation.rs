//! A polling reader that sleeps `V` whenever its queue is empty: M/D/1 with multiple fixed vacations.
//!
//! **Source** Y. Levy, U. Yechiali, "Utilization of idle time in an M/G/1 queueing system", Management Science 22,
//! 1975: the vacation's mean residual time `V/2` is added to the wait. Assumes Poisson arrivals.

use crate::inputs::{Inputs, Outputs, Problem};
use crate::kinds::md1::mean_wait;

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let service = inputs.not_negative("service_us")?;
    let rho = inputs.not_negative("lam")? * service / 1e6;
    if rho >= 1.0 {
        return Err(Problem::unstable("M/D/1 with vacations", rho));
    }
    let wait = service * mean_wait(rho) + inputs.not_negative("vacation_us")? / 2.0;
    Ok(Outputs::default().with("mean_wait_us", wait))
}
