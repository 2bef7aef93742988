//! rxpath-agent runs its commands on this host only: it has no way to send itself to another one.

use std::convert::Infallible;

use crate::exit::Outcome;

/// No other host: no option names one.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OnHost {
    #[arg(skip)]
    host: Option<Infallible>,
}

impl OnHost {
    /// No outcome: the command runs here.
    pub fn run(&self) -> Option<Outcome> {
        self.host.map(|never| match never {})
    }
}
