//! A receive path simulated packet by packet: ring, interrupts, NAPI, softirqs, backlogs, sockets, readers, CPUs.
//!
//! The question: *what does the path do where the formulas stop, near the knee, under stalls, with softirq and reader
//! on one CPU?* Discrete events in whole nanoseconds; a seed determines all random numbers, and the same parameters and
//! seed give the same bytes. Memory depends on queues, flows and samples, never on the simulated time, and nothing is
//! allocated per packet.
//!
//! Pure: parameters and a trace come in, a [`SimulationOutcome`] goes out. What a simulated kernel counts is closed by
//! the same ledger as a real one's counters.
//!
//! **Caveat** what is not modelled is listed in `docs/explanation/model.md`.

pub mod arrivals;
pub mod bundled;
pub mod keys;
pub mod outcome;
pub mod parameters;
pub mod trace;
pub mod values;

mod cpu;
mod figures;
mod given;
mod scheduler;
mod slots;
mod socket;
mod softirq;
mod stage;
mod steer;
mod stream;
mod tally;
mod thread;
mod world;

pub use arrivals::Trace;
pub use given::Values;
pub use outcome::SimulationOutcome;
pub use parameters::Parameters;
pub use trace::{TraceError, TraceReader};
pub use values::ParameterError;

/// Runs a simulation; `trace` is what the law `trace` reads its packets from.
pub fn simulate(
    parameters: &Parameters,
    trace: Option<Trace<'_>>,
) -> Result<SimulationOutcome, TraceError> {
    let mut world = world::World::new(parameters, trace);
    world.run();
    world.source.broken.take().map_or_else(|| Ok(world.outcome()), Err)
}

#[cfg(test)]
mod tests;
