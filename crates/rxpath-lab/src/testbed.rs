//! The two sides of a trial and what can be done and observed there, whatever they are made of.
//!
//! A trial reads a host only through its testbed. The methods with a body serve testbeds of this host.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::DerefMut;
use std::process::{Child, Command};

use rxpath_bpf::account::calibrate::Calibration;
use rxpath_core::Side;
use rxpath_host::awake::Awake;
use rxpath_host::netlink::netfilter::Conntrack;
use rxpath_host::netlink::{Netlink, QueueAsk};
use rxpath_host::{HostError, Owner, Root};
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::SoftirqPlace;
use rxpath_record::ledger::PathFacts;
use rxpath_record::manifest::FlowCpu;

use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::scenario::spec::{self, Variant};
use crate::testbed::ring::Ring;
use crate::trial::background::Background;
use crate::trial::observe::{Between, Mark, Ours};
use crate::trial::observers::Observers;
use crate::trial::sampler::{Sampled, Sampler, Target};
use crate::trial::witness::Witness;

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
pub trait Testbed {
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

    /// A reader of how full the link's ring is, which must be empty now; `None` where none is visible.
    fn ring(&self) -> Result<Option<Ring>, LabError> {
        Ok(None)
    }

    /// Starts the sampler of queues and threads.
    fn sampler(&self, sampled: Sampled) -> Result<Sampler, LabError> {
        let Sampled { interval_ns, port, tcp, v6, threads, ring } = sampled;
        let rx = QueueAsk { tcp, v6, local_port: port, remote_port: 0 };
        let tx = QueueAsk { tcp, v6, local_port: 0, remote_port: port };
        let mut sockets = vec![(Side::Rx, self.sock_diag(Side::Rx)?, rx)];
        if tcp {
            sockets.push((Side::Tx, self.sock_diag(Side::Tx)?, tx));
        }
        Ok(Sampler::start(Target { interval_ns, sockets, threads, ring }))
    }

    /// Drops of each UDP socket that is bound to `port` on the receiver's side; `None` when there is no such socket.
    fn socket_drops(&self, port: u16) -> Result<Option<Vec<u64>>, LabError> {
        let mut diag = self.sock_diag(Side::Rx)?;
        let mut sockets = BTreeMap::new();
        // A socket of IPv6 may take datagrams of IPv4 too.
        for v6 in [false, true] {
            let ask = QueueAsk { tcp: false, v6, local_port: port, remote_port: 0 };
            let found = diag.queues(ask)?.into_iter();
            sockets.extend(found.filter_map(|it| Some((it.inode, u64::from(it.memory?.drops)))));
        }
        Ok((!sockets.is_empty()).then(|| sockets.into_values().collect()))
    }

    /// `CLOCK_MONOTONIC` of the host on which the sides run. Starts and windows are instants of this clock.
    fn clock_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// The workloads `leaders` with what they started, and this process.
    fn ours(&self, leaders: &[i32]) -> Ours {
        Ours::with_children(std::process::id() as i32, leaders)
    }

    /// CPU time of the host now.
    fn mark(&self, ours: &Ours) -> Mark {
        Mark::take(ours)
    }

    /// CPU time of the host from a mark until now.
    fn since(&self, from: &Mark, ours: &Ours) -> Between {
        Between::marks(from, &Mark::take(ours), ours)
    }

    /// Starts the BPF observers that the variant asks for.
    fn observers(
        &self,
        variant: &Variant,
        calibration: Option<&Calibration>,
    ) -> Result<Observers, LabError> {
        Ok(Observers::start(variant, calibration, self.network_namespace(Side::Rx))?)
    }

    /// Starts the tracepoints that the diagnosis uses.
    fn witness(&self) -> Witness {
        Witness::start()
    }

    /// Starts what runs alongside the workload.
    fn background(
        &self,
        background: &spec::Background,
        owner: Option<&Owner>,
    ) -> Result<Background, LabError> {
        Background::start(background, owner)
    }

    /// Keeps idle CPUs of the host from sleeping.
    fn keep_awake(&self) -> Result<Awake, HostError> {
        Awake::hold()
    }

    /// `net.core.netdev_max_backlog` of the receiver's host.
    fn backlog_limit_packets(&self) -> Option<u64> {
        Root::host().number("/proc/sys/net/core/netdev_max_backlog").ok()
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

    /// What the ledger must know about the path.
    fn path(&self) -> PathFacts;

    /// What hangs in front of IP on the receiver's side now and may drop, in words.
    fn ingress_hooks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Inode of one side's network namespace.
    fn network_namespace(&self, side: Side) -> Option<u32>;

    /// The side to which the network namespace with this inode belongs; `None` for those outside the testbed.
    fn side_of(&self, netns: u32) -> Option<Side>;

    /// Whether other traffic than the workload's can move these counters.
    fn shared_with_others(&self) -> bool;
}
