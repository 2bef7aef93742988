//! One simulation, with the trace file named in its parameters. All that simulate use this module.

use std::fs::File;
use std::io::{self, BufReader};

use rxpath_core::Warning;
use rxpath_core::number::counted;
use rxpath_model::sim::parameters::Law;
use rxpath_model::sim::{
    self, ParameterError, Parameters, SimulationOutcome, Trace, TraceError, TraceReader,
};
use thiserror::Error;

/// Why there is no simulation.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// A parameter is missing or wrong.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The trace can't be opened.
    #[error("{file}")]
    Open {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The trace can't be read.
    #[error("{file}")]
    Trace {
        /// The file; empty without one.
        file: String,
        /// Where and why.
        source: TraceError,
    },
}

/// Runs it.
///
/// # Errors
/// If a trace can't be opened or read; the error names the trace.
pub fn simulate(parameters: &Parameters) -> Result<SimulationOutcome, SimulationError> {
    let Law::Trace { file } = &parameters.law else {
        let unnamed = |source| SimulationError::Trace { file: String::new(), source };
        return sim::simulate(parameters, None).map_err(unnamed);
    };
    let from =
        File::open(file).map_err(|source| SimulationError::Open { file: file.clone(), source })?;
    let unread = |source| SimulationError::Trace { file: file.clone(), source };
    let reader = TraceReader::new(BufReader::new(from)).map_err(unread)?;
    let trace: Trace<'_> = Box::new(reader);
    sim::simulate(parameters, Some(trace)).map_err(unread)
}

/// What a simulation leaves open or estimates.
pub fn warnings(parameters: &Parameters, outcome: &SimulationOutcome) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if outcome.ledger.offered_packets == 0 {
        warnings.push(
            Warning::new("no-packets", "no packet arrived within the duration")
                .cure("use a longer duration, a higher rate, or a trace that begins earlier"),
        );
    }
    if outcome.ledger.in_flight_packets > 0 {
        let text = format!(
            "{} still in flight when the drain time ended",
            counted(outcome.ledger.in_flight_packets, "packet")
        );
        warnings.push(
            Warning::new("not-drained", text).cure("use a longer `drain` if these packets matter"),
        );
    }
    if parameters.truesize.is_none() {
        warnings.push(
            Warning::new("truesize-estimated", "the kernel memory per packet is an estimate")
                .because("it depends on the driver and on GRO")
                .cure("measure it and set `socket.truesize`"),
        );
    }
    warnings
}
