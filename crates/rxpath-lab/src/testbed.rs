//! The two sides of a trial and what can be done and observed there, whatever they are made of.
//!
//! A trial reads a host only through its testbed. The methods with a body serve testbeds of this host.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_core::{CpuList, PathSide};
use rxpath_host::lab::owner::Owner;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::QueueAsk;
use rxpath_host::read::netlink::netfilter::Conntrack;
use rxpath_host::write::awake::Awake;
use rxpath_host::{HostError, Root};
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::SoftirqPlace;
use rxpath_record::ledger::PathFacts;
use rxpath_record::manifest::FlowCpu;

use crate::clock::sleep_until;
use crate::error::LabError;
use crate::hosts::pairs::HostPairs;
use crate::scenario::spec::Variant;
use crate::testbed::foreign::ForeignProgram;
use crate::testbed::hosts::delay::ClocksAfter;
use crate::testbed::hosts::start::Starts;
use crate::testbed::ring::Ring;
use crate::testbed::seat::Seat;
use crate::testbed::window::{LocalWindow, Measured, Window, WindowAhead};
use crate::trial::background::{Alongside, Background};
use crate::trial::observers::{Observers, Observing};
use crate::trial::peer::Began;
use crate::trial::phase;
use crate::trial::sampler::{Sampled, Sampler, SamplerSources, Sampling, queue_ask};

pub mod filters;
pub mod flows;
pub mod foreign;
pub mod hosts;
pub mod local;
pub mod napi;
pub mod netns;
pub mod ring;
pub mod seat;
pub mod started;
pub mod tuned;
pub mod window;

pub use started::Started;

/// A setting that was changed on one side, with what was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The side.
    pub side: PathSide,
    /// Its name: `net.ipv4.conf.all.rp_filter`, `veth/features/rx-gro`.
    pub setting: String,
    /// Value before.
    pub old: String,
    /// Value read back.
    pub new: String,
    /// The trial that made it, where it was kept from there; none if it was made for this one.
    pub since_trial: Option<u32>,
}

/// Drops of each UDP socket that is bound to `port`; `None` when there is no such socket.
pub fn socket_drops(diag: &mut Netlink, port: u16) -> Result<Option<Vec<u64>>, HostError> {
    let mut sockets = BTreeMap::new();
    // A socket of IPv6 may take datagrams of IPv4 too.
    for v6 in [false, true] {
        let ask = QueueAsk { tcp: false, v6, local_port: port, remote_port: 0 };
        let found = diag.queues(ask)?.into_iter();
        sockets.extend(found.filter_map(|it| Some((it.inode, u64::from(it.memory?.drops)))));
    }
    Ok((!sockets.is_empty()).then(|| sockets.into_values().collect()))
}

/// Any address of the family of these.
pub fn any_of(addresses: &[IpAddr]) -> IpAddr {
    let v6 = addresses.first().is_some_and(IpAddr::is_ipv6);
    if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Two sides joined by a link, made for one trial. Starts and windows are instants of this host's `CLOCK_MONOTONIC`.
pub trait Testbed {
    /// Addresses of the receiving side, of all its hosts; a sender spreads over those of its receivers.
    fn addresses(&self) -> &[IpAddr];

    /// The receiver that has an address of [`Testbed::addresses`].
    fn receiver_at(&self, _: IpAddr) -> Option<usize> {
        Some(0)
    }

    /// Which of its hosts send to which.
    fn pairs(&self) -> HostPairs {
        HostPairs::all(1, 1)
    }

    /// Every counter of both sides and of the machine.
    fn snapshot(&self) -> Snapshot;

    /// The names of a side's hosts; nothing where it is this one.
    fn hosts(&self, _: PathSide) -> Vec<String> {
        Vec::new()
    }

    /// The CPUs of a variant's program on a host; empty = anywhere.
    fn cpus(&self, seat: Seat, variant: &Variant) -> CpuList {
        match seat.side {
            PathSide::Tx => variant.load.cpus().clone(),
            _ => variant.serve.cpus().clone(),
        }
    }

    /// Starts a program on one side.
    fn spawn(&self, seat: Seat, command: Command) -> Result<Started, LabError>;

    /// Starts a third-party program, at once or at an instant of the testbed's clock; `dir` is for its files where they are
    /// on this host.
    fn spawn_foreign(
        &self,
        seat: Seat,
        program: &ForeignProgram,
        dir: &Path,
        at_ns: Option<u64>,
    ) -> Result<Started, LabError> {
        let command = program.command(dir)?;
        if let Some(at_ns) = at_ns {
            sleep_until(at_ns);
        }
        self.spawn(seat, command)
    }

    /// Programs that print the counters of each host while they run, by side, where reading them from here would load the
    /// path that is measured; none where they are read here.
    fn counter_lines(&self) -> Result<Vec<(PathSide, Started)>, LabError> {
        Ok(Vec::new())
    }

    /// Ends what starves queues on purpose, so that they run empty once the load is over.
    fn calm(&self) -> Result<(), LabError> {
        Ok(())
    }

    /// What the clocks show after a trial. Nothing where sender and receiver have one clock.
    ///
    /// # Errors
    /// Of a host that is lost, or whose clock jumps again and again.
    fn clocks_after(&self) -> Result<ClocksAfter, LabError> {
        Ok(ClocksAfter::default())
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
    fn sock_diag(&self, side: PathSide) -> Result<Netlink, LabError>;

    /// A reader of how full the link's ring is, which must be empty now; `None` where none is visible.
    fn ring(&self) -> Result<Option<Ring>, LabError> {
        Ok(None)
    }

    /// Starts the sampler of queues and threads.
    fn sampler(&self, sampled: Sampled) -> Result<Box<dyn Sampling>, LabError> {
        let Sampled { interval_ns, port, tcp, v6, threads, ring } = sampled;
        let threads = threads.into_iter().map(|(seat, threads)| (seat.side, threads)).collect();
        let mut sockets = Vec::new();
        for side in [PathSide::Rx, PathSide::Tx] {
            if let Some(ask) = queue_ask(side, port, tcp, v6) {
                sockets.push((side, self.sock_diag(side)?, ask));
            }
        }
        Ok(Box::new(Sampler::start(SamplerSources { interval_ns, sockets, threads, ring })))
    }

    /// For each receiver the drops of each UDP socket that is bound to `port`; `None` when there is no such socket.
    fn socket_drops(&self, port: u16) -> Result<Vec<Option<Vec<u64>>>, LabError> {
        Ok(vec![socket_drops(&mut self.sock_diag(PathSide::Rx)?, port)?])
    }

    /// Called before the orders to start: the pace of the hosts' clocks counts from now on. A load that may starve the
    /// control connections is over at the latest at this instant.
    ///
    /// # Errors
    /// Of a host that is lost.
    fn arm(&self, _load_until_ns: Option<u64>) -> Result<(), LabError> {
        Ok(())
    }

    /// Called when that load is over.
    ///
    /// # Errors
    /// Of a host that is lost.
    fn disarm(&self) -> Result<(), LabError> {
        Ok(())
    }

    /// Time from the order to start to the common instant of the start.
    fn start_lead(&self) -> Duration {
        Duration::from_millis(30)
    }

    /// Judges when the programs of each sender began. Nothing where orders cannot come late.
    fn starts(&self, _: &[Vec<Began>]) -> Starts {
        Starts::default()
    }

    /// Time from the announcement that a window begins earlier to its begin.
    fn window_lead(&self) -> Duration {
        Duration::ZERO
    }

    /// How long after the latest end of its window a load ends without an order; nothing where orders arrive.
    fn load_ends_after(&self) -> Option<Duration> {
        None
    }

    /// Tells hosts that measure by themselves the latest begin of the window, when the load has its orders.
    ///
    /// # Errors
    /// Of a host that is lost.
    fn window_ahead(&self, _: &Measured, _latest_ns: u64) -> Result<WindowAhead<'_>, LabError> {
        Ok(None)
    }

    /// Begins the measured window where none lies ahead: CPU time of the workloads and of the host, and the counters, now and at
    /// its end.
    fn window(&self, measured: &Measured) -> Result<Box<dyn Window + '_>, LabError> {
        Ok(Box::new(LocalWindow::open(measured, || self.snapshot())))
    }

    /// Waits until two readings of the counters in a row are equal and `empty` says that no queue between the two sides
    /// holds a packet. Gives the last reading, or nothing if that did not happen within `limit`.
    fn rest(
        &self,
        limit: Duration,
        stop: &AtomicBool,
        empty: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<Option<Snapshot>, LabError> {
        phase::at_rest(|| self.snapshot(), limit, stop, empty)
    }

    /// Reads counters of the network between the hosts into a reading of theirs, if there is a command for them.
    fn read_network_counters(&self, _into: &mut Snapshot) {}

    /// Starts the BPF observers that the variant asks for.
    fn observers(
        &self,
        variant: &Variant,
        calibration: Option<&IrqCalibration>,
    ) -> Result<Box<dyn Observing>, LabError> {
        let netns = self.network_namespace(PathSide::Rx);
        let calibration = calibration.cloned();
        Ok(Box::new(Observers::start(&variant.observe, &variant.background, calibration, netns)?))
    }

    /// Starts what runs alongside the workload, on each host that the variant chooses for it.
    fn background(
        &self,
        variant: &Variant,
        owner: Option<&Owner>,
    ) -> Result<Box<dyn Alongside>, LabError> {
        Ok(Box::new(Background::start(&variant.background, owner)?))
    }

    /// Keeps idle CPUs of the hosts from sleeping until what it gives is dropped.
    fn keep_awake(&self) -> Result<Box<dyn Any>, LabError> {
        Ok(Box::new(Awake::hold()?))
    }

    /// What a receiving program binds to: its host's own address, or any of the family.
    fn listens_on(&self, _receiver: usize) -> IpAddr {
        any_of(self.addresses())
    }

    /// `net.core.netdev_max_backlog` of the receivers' hosts, the least of them.
    fn backlog_limit_packets(&self) -> Option<u64> {
        Root::host().number("/proc/sys/net/core/netdev_max_backlog").ok()
    }

    /// What was changed to make it.
    fn changes(&self) -> &[Change];

    /// Restores what it changed and does not go with it; otherwise the next trial may keep it.
    ///
    /// # Errors
    /// If that cannot be shown.
    fn restore(&self) -> Result<(), LabError> {
        Ok(())
    }

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
    fn network_namespace(&self, side: PathSide) -> Option<u32>;

    /// The side to which the network namespace with this inode belongs; `None` for those outside the testbed.
    fn side_of(&self, netns: u32) -> Option<PathSide>;

    /// Whether other traffic than the workload's can move these counters.
    fn shared_with_others(&self) -> bool;
}
