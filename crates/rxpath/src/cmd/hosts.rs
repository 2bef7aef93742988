//! `rxpath hosts`: whether real hosts are ready for experiments.

pub mod cleanup;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use rxpath_core::Envelope;
use rxpath_lab::hosts::privilege::RootNeeds;
use rxpath_lab::hosts::probe::ProbedPort;
use rxpath_lab::hosts::{ConnectedHost, Hosts};
use rxpath_lab::scenario::PORT;

use crate::cmd::binary_args::BinaryArgs;
use crate::cmd::hosts_args::{connect, read};
use crate::cmd::run::failure;
use crate::exit::{Exit, Outcome};
use crate::output::format::FormatArgs;
use crate::output::{self, json};

/// Options of `rxpath hosts`.
#[derive(Debug, Args)]
pub struct HostsCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Connect to every host of an inventory, test the path between them, compare their clocks; change nothing
    Check(CheckHosts),
    /// Remove copies of other builds from the hosts of an inventory, and name settings that are still in force
    Cleanup(cleanup::CleanupHosts),
}

/// Options of `rxpath hosts check`.
#[derive(Debug, Args)]
struct CheckHosts {
    /// The inventory
    inventory: PathBuf,
    #[command(flatten)]
    binary: BinaryArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl HostsCommand {
    /// Does what was asked.
    pub fn run(self) -> Outcome {
        match self.what {
            What::Check(check) => check.run(),
            What::Cleanup(cleanup) => cleanup.run(),
        }
    }
}

impl CheckHosts {
    fn run(self) -> Outcome {
        let hosts = connect(&read(&self.inventory)?, &self.binary, &RootNeeds::default())?;
        let port = ProbedPort { tcp: false, port: PORT };
        hosts.probe(&[port].into()).map_err(failure)?;
        let warnings: Vec<_> = hosts.unlike_links().into_iter().collect();
        if self.format.is_json() {
            let settings = serde_json::json!({ "inventory": self.inventory });
            json(&Envelope::new("hosts-check", settings, hosts.record(), warnings))?;
        } else {
            warnings.iter().for_each(output::warning);
            output::text(&shown(&hosts))?;
        }
        Ok(Exit::Done)
    }
}

/// Each host on a line, then the path.
fn shown(hosts: &Hosts) -> String {
    let record = hosts.record();
    let each = record
        .iter()
        .fold(String::new(), |text, (alias, part)| text + &format!("{alias}: {}\n", part.text()));
    let senders: Vec<&str> = hosts.senders.iter().map(|host| host.client.alias()).collect();
    let receivers: Vec<String> = hosts.receivers.iter().map(reached).collect();
    format!("{each}ready: {} -> {}\n", senders.join(", "), receivers.join(", "))
}

/// A receiver with its addresses: `sut (192.0.2.1)`.
fn reached(host: &ConnectedHost) -> String {
    let addresses: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
    format!("{} ({})", host.client.alias(), addresses.join(", "))
}
