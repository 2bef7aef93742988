//! `rxpath endpoint`: one host of an experiment between hosts, started by the coordinator over ssh. Not for people.

use std::io::{stdin, stdout};

use rxpath_lab::endpoint::server::Endpoint;
use rxpath_lab::endpoint::strays;
use rxpath_lab::trial::kernel_lines::follow;

use crate::build_id::ID;
use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;

/// Options of `rxpath endpoint`.
#[derive(Debug, Args)]
pub struct EndpointCommand {
    /// Network namespace in which everything runs and is read
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
    /// Print the counters of UDP and IP again and again instead, until nobody reads them
    #[arg(long)]
    counters: bool,
    /// Print the build id instead: only a program of the same build may be one end of an experiment
    #[arg(long)]
    identify: bool,
    /// Wait for the end of the endpoint that started this, and end what it left, instead
    #[arg(long, value_name = "ENDPOINT")]
    guard: Option<String>,
}

impl EndpointCommand {
    /// Serves its standard input until that ends.
    pub fn run(self) -> Outcome {
        if self.identify {
            output::line(ID)?;
        } else if let Some(endpoint) = &self.guard {
            strays::guard(endpoint, stdin().lock());
        } else {
            ScopeArgs { netns: self.netns, ..ScopeArgs::default() }.enter()?;
            if self.counters {
                follow(stdout())?;
            } else {
                let exe = std::env::current_exe()?;
                let endpoint = Endpoint { exe, version: env!("CARGO_PKG_VERSION") };
                endpoint.serve(stdin().lock(), Box::new(stdout()))?;
            }
        }
        Ok(Exit::Done)
    }
}
