//! Loopback of the namespace that the program runs in: no root, no changes, and no lab of one's own.
//!
//! Both sides are the same namespace, so its counters stand under both names. Other programs' traffic is in them:
//! a ledger of this testbed can be off by what they did, and says so.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use rxpath_core::PathSide;
use rxpath_host::lab::netns;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::snapshot::Reader;
use rxpath_host::{HostError, Root};
use rxpath_record::counters::Snapshot;
use rxpath_record::counters::name::side_on_receiver;
use rxpath_record::evidence::SoftirqPlace;
use rxpath_record::ledger::{Link, PathFacts};

use super::seat::Seat;
use super::{Change, Started, Testbed};
use crate::clock::monotonic_ns;
use crate::error::{LabError, cannot};
use crate::scenario::spec::Lab;

const DEVICE: &str = "lo";

/// The testbed.
pub struct LocalTestbed {
    addresses: Vec<IpAddr>,
    reader: RefCell<Reader>,
    route: RefCell<Netlink>,
}

impl LocalTestbed {
    /// Checks that the lab asks for nothing that would change the host.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] for settings of a namespace: here they would be the host's own.
    pub fn make(lab: &Lab) -> Result<Self, LabError> {
        if let Some(what) = refused(lab) {
            return Err(cannot(
                format!("loopback takes no {what}: it would change the host"),
                "run this variant in the namespace lab: as root, without topology.kind=local",
            ));
        }
        let addresses: Vec<IpAddr> = if lab.ipv6 {
            vec![Ipv6Addr::LOCALHOST.into()]
        } else {
            // The whole of 127/8 is local.
            (1..=lab.addresses.clamp(1, 250))
                .map(|i| Ipv4Addr::new(127, 0, 0, i as u8).into())
                .collect()
        };
        Ok(Self {
            addresses,
            reader: RefCell::new(Reader::all(&Root::host()).with_energy(&Root::host())),
            route: RefCell::new(Netlink::route()?),
        })
    }

    fn link_counters(&self) -> Result<Vec<(String, u64)>, HostError> {
        let lo = self.route.borrow_mut().links()?.into_iter().filter(|link| link.name == DEVICE);
        Ok(lo
            .flat_map(|link| link.stats)
            .map(|(name, value)| (format!("link.{DEVICE}.{name}"), value))
            .collect())
    }
}

fn refused(lab: &Lab) -> Option<&'static str> {
    let asks = [
        (!lab.rps_cpus.is_empty(), "RPS mask"),
        (lab.threaded, "threaded NAPI"),
        (lab.nft_rx.is_some() || lab.nft_tx.is_some(), "nft rules"),
        (!lab.iptables_rx.is_empty(), "iptables rules"),
        (!lab.sysctl_rx.is_empty() || !lab.sysctl_tx.is_empty(), "sysctls"),
        (lab.qdisc_tx.is_some(), "qdisc"),
    ];
    asks.iter().find(|(asked, _)| *asked).map(|(_, what)| *what)
}

impl Testbed for LocalTestbed {
    fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    fn snapshot(&self) -> Snapshot {
        let read = self.reader.borrow_mut().read();
        let mut snapshot = Snapshot { gaps: read.gaps, ..Snapshot::default() };
        let link = self.link_counters().unwrap_or_else(|error| {
            snapshot.gaps.insert("rx/link".into(), error.to_string());
            Vec::new()
        });
        for (name, value) in read.values.into_iter().chain(link) {
            let side = side_on_receiver(&name);
            if side == PathSide::Rx {
                snapshot.values.insert(format!("{}/{name}", PathSide::Tx), value);
            }
            snapshot.values.insert(format!("{side}/{name}"), value);
        }
        snapshot.t_ns = monotonic_ns() as i64;
        snapshot
    }

    fn spawn(&self, _: Seat, mut command: Command) -> Result<Started, LabError> {
        let path = command.get_program().to_owned();
        netns::die_with_parent(&mut command);
        let child =
            command.spawn().map_err(|source| LabError::Start { path: path.into(), source })?;
        Ok(Started::local(Box::new(child)))
    }

    fn sock_diag(&self, _side: PathSide) -> Result<Netlink, LabError> {
        Ok(Netlink::sock_diag()?)
    }

    fn changes(&self) -> &[Change] {
        &[]
    }

    fn softirq(&self) -> SoftirqPlace {
        SoftirqPlace::SenderCall
    }

    fn path(&self) -> PathFacts {
        PathFacts {
            tx_device: Some(DEVICE.into()),
            rx_device: Some(DEVICE.into()),
            v6: self.addresses.first().is_some_and(IpAddr::is_ipv6),
            link: Link::Loopback,
            ..PathFacts::default()
        }
    }

    fn network_namespace(&self, _: PathSide) -> Option<u32> {
        rxpath_host::read::identity::network_namespace().ok()?.try_into().ok()
    }

    fn side_of(&self, netns: u32) -> Option<PathSide> {
        (self.network_namespace(PathSide::Rx) == Some(netns)).then_some(PathSide::Machine)
    }

    fn shared_with_others(&self) -> bool {
        true
    }
}
