//! `rxpath hosts`: whether real hosts are ready for experiments.

pub mod cleanup;

use std::collections::{BTreeMap, BTreeSet};

use rxpath_lab::hosts::fault::HostFault;
use rxpath_lab::hosts::probe::ProbedPort;
use rxpath_lab::hosts::ready::Readiness;
use rxpath_lab::hosts::{ConnectedHost, Hosts};
use rxpath_lab::scenario::PORT;

use crate::cmd::binary_args::BinaryArgs;
use crate::cmd::commands;
use crate::cmd::hosts_args::{look, read};
use crate::cmd::prelude::*;
use crate::output::json;

commands! {
    /// `rxpath hosts …`
    pub enum HostsCommand {
        /// Connect to every host of an inventory, test the path between them, compare their clocks; undo only what killed runs left
        Check(CheckHosts),
        /// End programs and undo settings of killed runs, remove copies of other builds, and name settings in force
        Cleanup(cleanup::CleanupHosts),
    }
}

/// Options of `rxpath hosts check`.
#[derive(Debug, Args)]
pub struct CheckHosts {
    /// The inventory, or a scenario with hosts
    inventory: PathBuf,
    #[command(flatten)]
    binary: BinaryArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl CheckHosts {
    fn run(self) -> Outcome {
        let Readiness { hosts, mut faults } = look(&read(&self.inventory, &[])?, &self.binary)?;
        let ports: BTreeSet<_> = [ProbedPort { tcp: false, port: PORT }].into();
        faults.extend(hosts.iter().flat_map(|hosts| hosts.probed(&ports)));
        let faulty: BTreeSet<&str> = faults.iter().map(|fault| fault.host.as_str()).collect();
        let is_ready = |pair: &[&str; 2]| pair.iter().all(|alias| !faulty.contains(alias));
        let some_are_ready = hosts.iter().flat_map(Hosts::pair_names).any(|pair| is_ready(&pair));
        let mut warnings: Vec<_> = hosts.iter().flat_map(Hosts::warnings).collect();
        if self.format.is_json() {
            let settings = serde_json::json!({ "inventory": self.inventory.display().to_string() });
            warnings.extend(faults.iter().map(HostFault::warning));
            let record = hosts.as_ref().map(Hosts::record).unwrap_or_default();
            json(&Envelope::new("hosts-check", settings, record, warnings))?;
        } else {
            warnings.iter().for_each(output::warning);
            for fault in &faults {
                crate::note!("rxpath: {}", fault.text());
            }
            output::text(&shown(hosts.as_ref(), &faulty))?;
        }
        Ok(match (faults.is_empty(), some_are_ready) {
            (true, _) => Exit::Done,
            (false, true) => Exit::Partial,
            (false, false) => Exit::Cannot,
        })
    }
}

/// Each host on a line, then the paths between those that are ready, then those that are not.
fn shown(hosts: Option<&Hosts>, faulty: &BTreeSet<&str>) -> String {
    let mut text = String::new();
    if let Some(hosts) = hosts {
        let parts = hosts.record().into_iter();
        text.extend(parts.map(|(alias, part)| format!("{alias}: {}\n", part.text())));
        let is_ready = |host: &&ConnectedHost| !faulty.contains(host.client.alias());
        // Senders with the same receivers are on one line.
        let mut ready: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (at, sender) in hosts.senders.iter().enumerate().filter(|(_, it)| is_ready(it)) {
            let own = hosts.pairs.receivers_of(at).iter().map(|to| &hosts.receivers[*to]);
            let own: Vec<String> = own.filter(is_ready).map(reached).collect();
            if !own.is_empty() {
                ready.entry(own.join(", ")).or_default().push(sender.client.alias());
            }
        }
        text.extend(ready.iter().map(|(to, from)| format!("ready: {} -> {to}\n", from.join(", "))));
    }
    let named: Vec<&str> = faulty.iter().copied().filter(|alias| !alias.is_empty()).collect();
    if !named.is_empty() {
        text += &format!("not ready: {}\n", named.join(", "));
    }
    text
}

/// A receiver with its addresses: `sut (192.0.2.1)`.
fn reached(host: &ConnectedHost) -> String {
    let addresses: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
    format!("{} ({})", host.client.alias(), addresses.join(", "))
}
