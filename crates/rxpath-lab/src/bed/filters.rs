//! Firewall rules of a bed, in the language of the tool that owns it, and their counters.

use std::collections::BTreeMap;

use rxpath_host::nft::Droppers;
use rxpath_host::{HostError, Namespace};

use crate::error::LabError;
use crate::scenario::spec::Lab;

/// Loads every rule of `lab` and says which drop, on each side.
pub fn load(tx: &Namespace, rx: &Namespace, lab: &Lab) -> Result<[Droppers; 2], LabError> {
    for (ns, rules) in [(tx, &lab.nft_tx), (rx, &lab.nft_rx)] {
        if let Some(rules) = rules {
            ns.apply_nft(rules)?;
        }
    }
    for line in &lab.iptables_rx {
        rx.apply_iptables(&line.split_whitespace().collect::<Vec<_>>())?;
    }
    let of = |ns: &Namespace, any| if any { ns.nft_droppers() } else { Ok(Droppers::none()) };
    Ok([of(tx, lab.nft_tx.is_some())?, of(rx, on_receiver(lab))?])
}

/// Whether the receiver's side has rules.
pub fn on_receiver(lab: &Lab) -> bool {
    lab.nft_rx.is_some() || !lab.iptables_rx.is_empty()
}

/// Packets that each rule with a counter has matched.
pub fn counters(ns: &Namespace) -> Result<BTreeMap<String, u64>, HostError> {
    ns.nft_counters()
}
