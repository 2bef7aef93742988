//! M/D/1: Poisson arrivals and a fixed service time without a limit; mean and quantiles of the wait.
//!
//! Quantiles are roots of P(W > t), computed from positive terms in [`crate::queue::fixed_service::Waiting`].

use crate::inputs::{Inputs, Outputs, Problem};
use crate::queue::fixed_service::Waiting;

/// The mean wait in units of the service time (Pollaczek and Khinchine).
pub fn mean_wait(rho: f64) -> f64 {
    rho / (2.0 * (1.0 - rho))
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let (service, rho) = (inputs.positive("service_us")?, inputs.not_negative("rho")?);
    if rho >= 1.0 {
        return Err(Problem::unstable("M/D/1", rho));
    }
    let waiting = Waiting::new(rho);
    Ok(Outputs::default()
        .with("mean_wait_us", service * mean_wait(rho))
        .with("wait_us_p50", service * waiting.quantile(0.5))
        .with("wait_us_p90", service * waiting.quantile(0.9))
        .with("wait_us_p99", service * waiting.quantile(0.99))
        .with("wait_us_p99.9", service * waiting.quantile(0.999)))
}
