//! Firewall rules of a testbed, in the language of the tool that owns it, and their counters.

use rxpath_host::HostError;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::lab::nft::Droppers;
use rxpath_host::netlink::Netlink;

use crate::error::{LabError, cannot};
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

/// Packets that connection tracking dropped, all CPUs; in snapshots of the receiver's side.
pub const CONNTRACK_DROP: &str = "conntrack.drop";
/// A larger table is not filled: 2^20 entries take some 340 MB of the kernel's memory.
pub const MOST_CONNECTIONS: u64 = 1 << 20;

/// Fills the connection table of a namespace until room for `room` entries is left. The entries go with the namespace.
pub fn fill_connections(ns: &Namespace, room: u64) -> Result<(), LabError> {
    let refused = |what: String| cannot(what, "leave lab.conntrack_room out");
    let filled = ns.run(move |_| {
        let mut netlink = Netlink::netfilter()?;
        let now = netlink.conntrack()?;
        let Some(most) = now.entries_max.filter(|most| *most <= MOST_CONNECTIONS) else {
            return Ok(Err(now.entries_max));
        };
        let wanted = most.saturating_sub(now.entries_count).saturating_sub(room);
        Ok::<_, HostError>(Ok((wanted, netlink.fill_conntrack(wanted)?)))
    })??;
    match filled {
        Ok((wanted, made)) if made == wanted => Ok(()),
        Ok((wanted, made)) => {
            Err(refused(format!("the connection table took {made} of {wanted} entries")))
        }
        Err(Some(most)) => Err(refused(format!(
            "the connection table holds {most} entries: too many to fill, {MOST_CONNECTIONS} at most"
        ))),
        Err(None) => Err(refused(
            "the kernel does not tell how large its connection table may be (5.7)".into(),
        )),
    }
}

/// Whether the receiver's side has rules.
pub fn on_receiver(lab: &Lab) -> bool {
    lab.nft_rx.is_some() || !lab.iptables_rx.is_empty()
}
