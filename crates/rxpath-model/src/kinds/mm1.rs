//! M/M/1: Poisson arrivals and exponential service without a limit; quantiles of wait and sojourn.
//!
//! **Source** L. Kleinrock, Queueing Systems I, 1975, section 3.2: the sojourn is exponential with `mu - lambda`.

use crate::inputs::{Inputs, Outputs, Problem};

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let (arrivals, service) = (inputs.not_negative("lam")?, inputs.positive("mu")?);
    let load = arrivals / service;
    if load >= 1.0 {
        return Err(Problem::unstable("M/M/1", load));
    }
    let scale_us = 1e6 / (service - arrivals);
    // -ln(1-q) from the tail itself: 1 - 0.999 would lose digits.
    let sojourn = |tail: f64| -tail.ln() * scale_us;
    let wait = |tail: f64| if load > tail { (load / tail).ln() * scale_us } else { 0.0 };
    Ok(Outputs::default()
        .with("sojourn_us_p50", sojourn(0.5))
        .with("sojourn_us_p90", sojourn(0.1))
        .with("sojourn_us_p99", sojourn(0.01))
        .with("sojourn_us_p99.9", sojourn(0.001))
        .with("mean_sojourn_us", scale_us)
        .with("wait_us_p50", wait(0.5))
        .with("wait_us_p90", wait(0.1))
        .with("wait_us_p99", wait(0.01)))
}
