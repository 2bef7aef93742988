//! M/G/1: Poisson arrivals and a service time of several values; load and mean wait.
//!
//! **Source** Pollaczek 1930, Khinchine 1932; Kleinrock, Queueing Systems I, section 5.6: `lambda E[S^2]/(2(1-rho))`.

use crate::inputs::{Inputs, Outputs, Problem};

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let arrivals = inputs.not_negative("lam")?;
    let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
    for part in inputs.objects("service")? {
        let (p, seconds) = (part.not_negative("p")?, part.not_negative("us")? / 1e6);
        total += p;
        mean += p * seconds;
        square += p * seconds * seconds;
    }
    if (total - 1.0).abs() > 1e-9 {
        return Err(Problem::bad("service", &format!("its `p` sum to {total}, not to 1")));
    }
    let rho = arrivals * mean;
    let outputs = Outputs::default().with("rho", rho);
    if rho >= 1.0 {
        return Ok(outputs.but(Problem::unstable("M/G/1", rho)));
    }
    Ok(outputs.with("mean_wait_us", arrivals * square / (2.0 * (1.0 - rho)) * 1e6))
}
