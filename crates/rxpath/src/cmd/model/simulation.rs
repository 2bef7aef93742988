//! One simulation, with the trace file named in its parameters. All commands that simulate use this module.

use std::fs::File;
use std::io::BufReader;

use anyhow::Context;
use rxpath_model::sim::parameters::Law;
use rxpath_model::sim::{self, Outcome, Parameters, Trace, TraceReader};

/// Runs it.
///
/// **Errors** if a trace can't be opened or read; the error names the trace.
pub fn simulate(parameters: &Parameters) -> anyhow::Result<Outcome> {
    let Law::Trace { file } = &parameters.law else {
        return Ok(sim::simulate(parameters, None)?);
    };
    let from = File::open(file).with_context(|| file.clone())?;
    let reader = TraceReader::new(BufReader::new(from)).with_context(|| file.clone())?;
    let trace: Trace<'_> = Box::new(reader);
    sim::simulate(parameters, Some(trace)).with_context(|| file.clone())
}
