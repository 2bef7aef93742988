//! Senders and receivers on real hosts, each behind its endpoint.
//!
//! The testbed's clock is that of this process; instants in requests and in reports are converted at the pipe. The latest instants
//! of a window are sent before the load begins: it is measured by them even if the control connection is dead meanwhile.

use std::any::Any;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_core::{CpuList, PathSide};
use rxpath_host::lab::owner::Owner;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::sysfs::device::parse_mask;
use rxpath_load::udp::sender_clock::SenderClock;
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::SoftirqPlace;
use rxpath_record::ledger::PathFacts;
use serde_json::Value;

use self::awake::KeptAwake;
use self::background::RemoteBackground;
use self::clocks::{ClocksNow, jumps, pairs};
use self::counters::HostCounters;
use self::delay::ClocksAfter;
use self::observing::RemoteObservers;
use self::sampling::RemoteSamplers;
use self::start::Starts;
use self::window::RemoteWindow;
use super::foreign::ForeignProgram;
use super::seat::Seat;
use super::tuned::RPS_OF_EACH_QUEUE;
use super::window::{Measured, WindowAhead};
use super::{Change, Started, Testbed};
use crate::clock::{HostClock, monotonic_ns};
use crate::endpoint::client::{PROMPT, PendingAnswer};
use crate::endpoint::clock::ClockBounds;
use crate::endpoint::counting::Rested;
use crate::endpoint::links::LinkSpeed;
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;
use crate::hosts::pairs::HostPairs;
use crate::hosts::path_clocks::PathNotes;
use crate::hosts::settings::TrialSettings;
use crate::hosts::{ConnectedHost, Hosts};
use crate::scenario::spec::{Trials, Variant};
use crate::trial::background::Alongside;
use crate::trial::observers::Observing;
use crate::trial::peer::Began;
use crate::trial::phase;
use crate::trial::sampler::{Sampled, Sampling};

mod awake;
mod background;
mod cards;
mod clocks;
mod counters;
pub mod delay;
mod observing;
mod sampling;
pub mod start;
mod window;

/// How long after the latest end of its window a load goes on at most if the order to stop does not arrive: the link that is
/// measured may carry it. Host clocks are known better than that, so no window loses its load. Each second more is one in
/// which TCP doubles the time to its next try, and the reading of the window waits for that.
const FLOOD_LIMIT: Duration = Duration::from_secs(1);
/// How long a reading after a window may take to arrive: the link that was measured may carry it.
const AFTER_WINDOW: Duration = Duration::from_secs(30);
/// Most that one request to wait may take, so that a signal is seen.
const REST_SLICE: Duration = Duration::from_secs(1);

/// The testbed of one trial.
pub struct HostsTestbed<'a> {
    hosts: &'a Hosts,
    /// Of all receivers, in their order.
    addresses: Vec<IpAddr>,
    /// The senders', then the receivers'. Compared again for each trial: clocks drift.
    clocks: Vec<ClockBounds>,
    /// Of each pair the sender's clock as the receiver gets it; none where all hosts have one clock.
    lines: Vec<SenderClock>,
    /// Port of datagrams over which the clocks are compared on the measured path.
    port: Option<u16>,
    /// What the measured path showed of the clocks when the trial began.
    path_notes: PathNotes,
    settings: TrialSettings,
    /// The RPS mask that the variant gives the first receiver's device.
    rps_cpus: CpuList,
    /// The scenario loads CPUs of senders.
    starves_senders: bool,
}

impl<'a> HostsTestbed<'a> {
    /// Makes the settings that the variant wants for this trial, unless the hosts have them, and compares the clocks.
    ///
    /// # Errors
    /// If a host is lost, a setting is refused, the path does not work with it, or a clock jumped.
    pub fn make(
        hosts: &'a Hosts,
        variant: &Variant,
        trials: &Trials,
        trial: u32,
    ) -> Result<Self, LabError> {
        let settings = hosts.apply_settings(variant, trials, trial)?;
        let over_tcp = hosts.share_a_clock || variant.protocol().over_tcp();
        let port = (!over_tcp).then(|| variant.serve.port());
        let now = ClocksNow::compare(hosts, port)?;
        let path_notes = now.notes(hosts);
        let pairs = pairs(hosts, &now.since, &[]).into_iter().zip(now.pairs);
        let clocks = now.clocks;
        // A sender has one number for all receivers.
        let ids = hosts.pairs.each().map(|(sender, _)| sender as u16 + 1);
        let lines = ids.zip(pairs).map(|(id, (first, now))| delay::line(id, first, now));
        let lines = if hosts.share_a_clock { Vec::new() } else { lines.collect() };
        let addresses = hosts.receivers.iter().flat_map(|host| host.addresses.clone()).collect();
        let tune = &variant.tune;
        let own = tune.hosts.get(hosts.receiver().client.alias());
        let mask = own.and_then(|own| own.get(RPS_OF_EACH_QUEUE));
        let mask = mask.or_else(|| tune.receiver.get(RPS_OF_EACH_QUEUE));
        let rps_cpus = mask.and_then(|mask| parse_mask(mask).ok()).unwrap_or_default();
        let background = &variant.background;
        let starves_senders = background.hogs > 0
            && hosts.on(&background.on).any(|(seat, _)| seat.side == PathSide::Tx);
        Ok(Self {
            hosts,
            addresses,
            clocks,
            lines,
            port,
            path_notes,
            settings,
            rps_cpus,
            starves_senders,
        })
    }

    /// Each host with its seat and its clock: the senders, then the receivers.
    fn seats(&self) -> impl Iterator<Item = (&ConnectedHost, Seat, HostClock)> {
        let clocks = self.clocks.iter().map(|clock| clock.clock());
        self.hosts.seats().zip(clocks).map(|((seat, host), clock)| (host, seat, clock))
    }

    /// The host of a seat, and its clock.
    fn at(&self, seat: Seat) -> Result<(&ConnectedHost, HostClock), LabError> {
        let found = self.seats().find(|(_, own, _)| *own == seat);
        let none = || format!("there is no host {} of side {}", seat.index, seat.side);
        found.map(|(host, _, clock)| (host, clock)).ok_or_else(|| LabError::internal(none()))
    }

    /// How fast the links of a host are to run: as when the run began, unless the variant sets that.
    fn speeds_of(&self, host: &ConnectedHost) -> Vec<LinkSpeed> {
        let is_set = self.settings.sets_link_of(host.client.alias());
        if is_set { Vec::new() } else { host.speeds.clone() }
    }

    /// The senders' clocks of the pairs that have the host of a seat.
    fn lines_of(&self, seat: Seat) -> impl Iterator<Item = &SenderClock> {
        let is_its = move |(sender, receiver): (usize, usize)| {
            seat.index == if seat.side == PathSide::Tx { sender } else { receiver }
        };
        let all = self.hosts.pairs.each().zip(&self.lines);
        all.filter(move |(pair, _)| is_its(*pair)).map(|(_, line)| line)
    }

    /// Options by which a program of datagrams gets the clocks.
    fn clock_words(&self, seat: Seat, command: &Command) -> Vec<String> {
        let line = |line: &SenderClock| ["--sender-clock".to_owned(), line.to_string()];
        let id = |line: &SenderClock| ["--clock-id".to_owned(), line.id.to_string()];
        let words: Vec<&OsStr> = command.get_args().take(2).collect();
        match (words.as_slice(), seat.side) {
            ([_, protocol], _) if *protocol != "udp" => Vec::new(),
            (_, PathSide::Tx) => self.lines_of(seat).take(1).flat_map(id).collect(),
            _ => self.lines_of(seat).flat_map(line).collect(),
        }
    }

    /// Asks all hosts at once.
    fn all<T: serde::de::DeserializeOwned>(
        &self,
        ask: impl Fn(&ConnectedHost) -> HostAsk,
    ) -> Result<Vec<T>, LabError> {
        let pending: Result<Vec<PendingAnswer>, LabError> =
            self.hosts.all().map(|host| host.client.begin(ask(host))).collect();
        pending?.into_iter().map(|answer| answer.wait(PROMPT)).collect()
    }

    /// The counters of all hosts as those of two sides.
    fn named(&self, snapshots: Vec<Snapshot>, t_ns: u64) -> Snapshot {
        let hosts = self.hosts;
        let distinct = self
            .seats()
            .zip(snapshots)
            .filter(|((_, seat, _), _)| !hosts.counts_with_another(seat.side, seat.index));
        let reading =
            |((host, seat, _), snapshot): ((&'_ ConnectedHost, Seat, _), Snapshot)| HostCounters {
                side: seat.side,
                alias: host.client.alias().to_owned(),
                device: host.device.name.clone(),
                driver: host.device.driver.clone(),
                counts_machine: hosts.is_first_on_machine(seat.side, seat.index),
                snapshot,
            };
        counters::of_sides(&distinct.map(reading).collect::<Vec<_>>(), t_ns)
    }
}

impl Testbed for HostsTestbed<'_> {
    fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    fn receiver_at(&self, address: IpAddr) -> Option<usize> {
        self.hosts.receivers.iter().position(|host| host.addresses.contains(&address))
    }

    fn listens_on(&self, receiver: usize) -> IpAddr {
        self.hosts.receivers[receiver].listens_on()
    }

    fn snapshot(&self) -> Snapshot {
        let ask = |host: &ConnectedHost| HostAsk::Counters { device: host.device.name.clone() };
        self.all(ask)
            .map_or_else(|error| counters::unread(&error), |all| self.named(all, monotonic_ns()))
    }

    fn pairs(&self) -> HostPairs {
        self.hosts.pairs.clone()
    }

    fn hosts(&self, side: PathSide) -> Vec<String> {
        self.hosts.of(side).iter().map(|host| host.client.alias().to_owned()).collect()
    }

    fn cpus(&self, seat: Seat, variant: &Variant) -> CpuList {
        self.hosts.cpus_on(seat.side, seat.index, variant)
    }

    fn spawn(&self, seat: Seat, command: Command) -> Result<Started, LabError> {
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.chain(self.clock_words(seat, &command)).collect();
        let (host, clock) = self.at(seat)?;
        let alias = host.client.alias();
        let shown = if self.hosts.share_a_clock { String::new() } else { alias.to_owned() };
        host.client.launch(words, (shown, seat.index as u16), clock)
    }

    fn spawn_foreign(
        &self,
        seat: Seat,
        program: &ForeignProgram,
        _: &Path,
        at_ns: Option<u64>,
    ) -> Result<Started, LabError> {
        let (host, clock) = self.at(seat)?;
        host.client.launch_foreign(program.clone(), at_ns, clock)
    }

    fn counter_lines(&self) -> Result<Vec<(PathSide, Started)>, LabError> {
        let start = |(host, seat, clock): (&ConnectedHost, Seat, HostClock)| {
            let words = ["endpoint", "--counters"].map(str::to_owned).to_vec();
            Ok((seat.side, host.client.launch(words, (String::new(), 0), clock)?))
        };
        // On one machine reading from here loads nothing else, and this process is known to be no foreign load.
        if self.hosts.share_a_clock { Ok(Vec::new()) } else { self.seats().map(start).collect() }
    }

    fn sock_diag(&self, _: PathSide) -> Result<Netlink, LabError> {
        Err(LabError::internal("sockets of another host are read by its endpoint"))
    }

    fn sampler(&self, sampled: Sampled) -> Result<Box<dyn Sampling>, LabError> {
        Ok(Box::new(RemoteSamplers::start(self, &sampled)?))
    }

    fn socket_drops(&self, port: u16) -> Result<Vec<Option<Vec<u64>>>, LabError> {
        let ask = |host: &ConnectedHost| host.client.ask(HostAsk::SocketDrops { port }, PROMPT);
        self.hosts.receivers.iter().map(ask).collect()
    }

    fn arm(&self, until_ns: Option<u64>) -> Result<(), LabError> {
        let known = self.seats().map(|(host, _, clock)| host.client.expect_load(until_ns, clock));
        let known = known.collect::<Result<Vec<PendingAnswer>, _>>()?;
        self.all::<Value>(|_| HostAsk::Pace)?;
        known.into_iter().try_for_each(|answer| answer.wait::<Value>(PROMPT).map(drop))
    }

    fn disarm(&self) -> Result<(), LabError> {
        // One that is lost keeps no other from it. Nobody waits for an answer: at the next request the lease has begun again
        // anyway.
        let told = self.seats().map(|(host, _, clock)| host.client.expect_load(None, clock));
        let told: Vec<_> = told.collect();
        told.into_iter().try_for_each(|told| told.map(drop))
    }

    fn start_lead(&self) -> Duration {
        // Over TCP each pair has its own.
        self.hosts.start_lead.of(self.lead(self.hosts.receivers.len() + self.hosts.pairs.count()))
    }

    fn starts(&self, began: &[Vec<Began>]) -> Starts {
        self.judge_starts(began)
    }

    fn window_lead(&self) -> Duration {
        self.lead(self.hosts.senders.len() + self.hosts.receivers.len())
    }

    fn load_ends_after(&self) -> Option<Duration> {
        Some(FLOOD_LIMIT)
    }

    fn window_ahead(&self, measured: &Measured, at_ns: u64) -> Result<WindowAhead<'_>, LabError> {
        Ok(Some(Box::new(RemoteWindow::arm(self, measured, at_ns)?)))
    }

    fn rest(
        &self,
        limit: Duration,
        stop: &AtomicBool,
        empty: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<Option<Snapshot>, LabError> {
        // Some cards show their counters only so late; there is nothing to see earlier.
        phase::pause(self.hosts.counters_lag(), stop)?;
        let deadline = Instant::now() + limit;
        loop {
            let limit_ms = REST_SLICE.as_millis() as u64;
            let ask =
                |host: &ConnectedHost| HostAsk::Rest { device: host.device.name.clone(), limit_ms };
            let rested: Vec<Rested> = self.all(ask)?;
            let is_quiescent = rested.iter().all(|host| host.is_quiescent);
            let counters = rested.into_iter().map(|host| host.counters).collect();
            let now = self.named(counters, monotonic_ns());
            if is_quiescent && empty(&now) {
                return Ok(Some(now));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            // Another program's traffic on a shared host never ends: two readings have shown that.
            if Instant::now() >= deadline || (!is_quiescent && self.shared_with_others()) {
                return Ok(None);
            }
        }
    }

    fn read_network_counters(&self, into: &mut Snapshot) {
        self.hosts.read_network_counters(into);
    }

    fn background(
        &self,
        variant: &Variant,
        _: Option<&Owner>,
    ) -> Result<Box<dyn Alongside>, LabError> {
        RemoteBackground::start(self.hosts, variant)
    }

    fn observers(
        &self,
        variant: &Variant,
        calibration: Option<&IrqCalibration>,
    ) -> Result<Box<dyn Observing>, LabError> {
        let (_, clock) = self.at(PathSide::Rx.into())?;
        RemoteObservers::start(self.hosts, clock, variant, calibration)
    }

    fn keep_awake(&self) -> Result<Box<dyn Any>, LabError> {
        self.all::<Value>(|_| HostAsk::Awake { on: true })?;
        let clients = self.hosts.all().map(|host| Arc::clone(&host.client)).collect();
        Ok(Box::new(KeptAwake { clients }))
    }

    fn backlog_limit_packets(&self) -> Option<u64> {
        let limit = |host: &ConnectedHost| -> Option<u64> {
            let value = host.hello.facts.get("sysctl.net.core.netdev_max_backlog")?.value()?;
            value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        self.hosts.receivers.iter().map(limit).min().flatten()
    }

    fn clocks_after(&self) -> Result<ClocksAfter, LabError> {
        if self.lines.is_empty() {
            return Ok(ClocksAfter::default());
        }
        let now = ClocksNow::compare(self.hosts, self.port)?;
        let delay = delay::error(&self.lines, &now.pairs);
        let mut jumps = jumps(self.hosts, &self.clocks, &now.clocks);
        let notes = now.notes(self.hosts);
        let warning = notes.warning(&self.path_notes);
        jumps.extend(self.path_notes.jumps.iter().cloned().chain(notes.jumps));
        Ok(ClocksAfter { delay, jumps, warning })
    }

    fn changes(&self) -> &[Change] {
        &self.settings.changes
    }

    fn restore(&self) -> Result<(), LabError> {
        self.hosts.undo_settings()
    }

    fn softirq(&self) -> SoftirqPlace {
        match self.rps_cpus.0.as_slice() {
            [] => SoftirqPlace::Napi { cpus: Vec::new() },
            cpus => SoftirqPlace::Rps { cpus: cpus.to_vec() },
        }
    }

    fn path(&self) -> PathFacts {
        PathFacts {
            v6: self.addresses.first().is_some_and(IpAddr::is_ipv6),
            is_shared: self.shared_with_others(),
            ..cards::path(self.hosts)
        }
    }

    fn network_namespace(&self, _: PathSide) -> Option<u32> {
        None
    }

    fn side_of(&self, _: u32) -> Option<PathSide> {
        None
    }

    fn shared_with_others(&self) -> bool {
        !self.hosts.all().all(|host| host.has_own_namespace)
    }
}
