//! rxpath-agent makes no limits on purpose: that takes a lab and senders.

use std::convert::Infallible;

use crate::exit::{Exit, Outcome};
use crate::output::format::FormatArgs;

/// No option asks for a self-test.
#[derive(Debug, clap::Args)]
pub struct SelftestArgs {
    #[arg(skip)]
    asked: Option<Infallible>,
}

impl SelftestArgs {
    /// Never.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Never.
    pub fn is_given(&self) -> bool {
        self.asked.is_some()
    }

    /// Is not called.
    pub fn run(&self, _format: &FormatArgs) -> Outcome {
        self.asked.map_or(Ok(Exit::Done), |never| match never {})
    }
}
