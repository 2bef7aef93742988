//! The two sides of a trial and what can be done there, whatever they are made of.

use std::net::IpAddr;
use std::ops::DerefMut;
use std::process::{Child, Command};

use rxpath_core::Side;
use rxpath_host::netlink::Netlink;
use rxpath_host::netlink::netfilter::Conntrack;
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::SoftirqPlace;
use rxpath_record::ledger::PathFacts;
use rxpath_record::manifest::FlowCpu;

use crate::bed::ring::Ring;
use crate::error::LabError;

pub mod filters;
pub mod flows;
pub mod local;
pub mod napi;
pub mod netns;
pub mod ring;

/// A started program; it dies with this process.
pub type Started = Box<dyn DerefMut<Target = Child> + Send>;

/// A setting that was changed on one side, with what was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The side.
    pub side: Side,
    /// Its name: `net.ipv4.conf.all.rp_filter`, `veth/features/rx-gro`.
    pub setting: String,
    /// Value before.
    pub old: String,
    /// Value read back.
    pub new: String,
}

/// Two sides joined by a link, made for one trial.
pub trait Bed {
    /// Addresses of the receiving side; the sender spreads over them.
    fn addresses(&self) -> &[IpAddr];

    /// Every counter of both sides and of the machine.
    fn snapshot(&self) -> Snapshot;

    /// Starts a program on one side.
    fn spawn(&self, side: Side, command: Command) -> Result<Started, LabError>;

    /// Ends what starves queues on purpose, so that they run empty once the load is over.
    fn calm(&self) -> Result<(), LabError> {
        Ok(())
    }

    /// Bytes that wait in the queueing discipline of the sender's end, with their Ethernet headers.
    fn queued_bytes(&self) -> Result<u64, LabError> {
        Ok(0)
    }

    /// The CPU that the receive softirq of each flow runs on: `flows` source ports from `source_port` on, each to
    /// every address at `port`. Empty where it cannot be found out.
    fn flow_cpus(
        &self,
        _source_port: u16,
        _flows: u16,
        _port: u16,
    ) -> Result<Vec<FlowCpu>, LabError> {
        Ok(Vec::new())
    }

    /// A `sock_diag` socket of one side's namespace.
    fn sock_diag(&self, side: Side) -> Result<Netlink, LabError>;

    /// A reader of how full the link's ring is, which must be empty now; `None` where there is none to be seen.
    fn ring(&self) -> Result<Option<Ring>, LabError> {
        Ok(None)
    }

    /// What was changed to make it.
    fn changes(&self) -> &[Change];

    /// Connection tracking of the receiver's side, where rules may use it and it can be read.
    fn conntrack(&self) -> Option<Conntrack> {
        None
    }

    /// Receive queues of the link and the CPUs of its RPS mask; `None` where that is not known.
    fn queues(&self) -> Option<(u32, Vec<u32>)> {
        None
    }

    /// Where the receive softirq of the link runs.
    fn softirq(&self) -> SoftirqPlace;

    /// What the ledger must know about the way.
    fn path(&self) -> PathFacts;

    /// What hangs in front of IP on the receiver's side now and may drop, in words.
    fn ingress_hooks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Inode of one side's network namespace.
    fn network_namespace(&self, side: Side) -> Option<u32>;

    /// Whose the network namespace with this inode is; `None` for those that are not the bed's.
    fn side_of(&self, netns: u32) -> Option<Side>;

    /// Whether other traffic than the workload's can move these counters.
    fn shared_with_others(&self) -> bool;
}
