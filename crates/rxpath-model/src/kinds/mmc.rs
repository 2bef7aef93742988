//! M/M/c: several threads that read one socket; Erlang's B and C.
//!
//! **Source** A. K. Erlang, 1917; the recursion of B is stable for any number of servers.

use crate::inputs::{Inputs, Outputs, Problem};

/// Erlang B: `servers` servers without a queue, offered `load` service times of work per service time.
pub fn erlang_b(servers: u64, load: f64) -> f64 {
    (1..=servers).fold(1.0, |blocked, n| {
        let flow = load * blocked;
        flow / (n as f64 + flow)
    })
}

/// Erlang C: the chance to wait, for a load below the number of servers.
pub fn erlang_c(servers: u64, load: f64) -> f64 {
    let blocked = erlang_b(servers, load);
    let servers = servers as f64;
    servers * blocked / (servers - load + load * blocked)
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let (servers, load) = (inputs.whole("c", 1..=100_000_000)?, inputs.not_negative("a")?);
    let outputs = Outputs::default().with("erlangB", erlang_b(servers, load));
    if load >= servers as f64 {
        return Ok(outputs.but(Problem::unstable("M/M/c", load / servers as f64)));
    }
    let waits = erlang_c(servers, load);
    Ok(outputs
        .with("erlangC", waits)
        .with("mean_wait_over_service", waits / (servers as f64 - load)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_server_is_the_plain_queue(load in 0.0..0.999_f64) {
            prop_assert!((erlang_c(1, load) - load).abs() < 1e-12);
        }

        #[test]
        fn agrees_with_the_birth_death_chain(servers in 1_u64..12, part in 0.05..0.95_f64) {
            let load = part * servers as f64;
            // Stationary weights of the numbers in the system, summed far out.
            let (mut weight, mut total, mut waiting) = (1.0, 0.0, 0.0);
            for n in 0..5000_u64 {
                total += weight;
                if n >= servers {
                    waiting += weight;
                }
                weight *= load / (n + 1).min(servers) as f64;
            }
            prop_assert!((erlang_c(servers, load) - waiting / total).abs() < 1e-9);
        }
    }
}
