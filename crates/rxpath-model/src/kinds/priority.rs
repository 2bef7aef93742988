//! Two Poisson classes with fixed service times on one CPU, the first preempting the second: mean times in the system.
//!
//! **Source** R. Conway, W. Maxwell, L. Miller, Theory of Scheduling, 1967; Kleinrock, Queueing Systems II, 3.4.

use crate::inputs::{Inputs, Outputs, Problem};

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let rate = |name| Ok(inputs.not_negative(name)? / 1e6);
    let (first_rate, second_rate) = (rate("l1")?, rate("l2")?);
    let (first, second) = (inputs.not_negative("s1_us")?, inputs.not_negative("s2_us")?);
    let (load, both) = (first_rate * first, first_rate * first + second_rate * second);
    if load >= 1.0 {
        return Err(Problem::unstable("the first class", load));
    }
    let residual = |rate: f64, service: f64| rate * service * service / 2.0;
    let outputs =
        Outputs::default().with("T1_us", first + residual(first_rate, first) / (1.0 - load));
    if both >= 1.0 {
        return Ok(outputs.but(Problem::unstable("both classes", both)));
    }
    let work = residual(first_rate, first) + residual(second_rate, second);
    Ok(outputs.with("T2_us", (second * (1.0 - both) + work) / ((1.0 - load) * (1.0 - both))))
}
