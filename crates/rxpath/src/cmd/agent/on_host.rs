//! rxpath-agent runs its commands on this host only: it has no way to send itself to another one.

use std::convert::Infallible;

use crate::exit::{Exit, Outcome};

/// No other host: no option names one.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OnHost {
    #[arg(skip)]
    host: Option<Infallible>,
}

impl OnHost {
    /// Never.
    pub fn is_given(&self) -> bool {
        self.host.is_some()
    }

    /// Is not called.
    pub fn run(&self) -> Outcome {
        self.host.map_or(Ok(Exit::Done), |never| match never {})
    }
}
