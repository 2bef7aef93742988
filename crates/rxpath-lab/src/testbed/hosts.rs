//! Senders and a receiver on real hosts, each behind its endpoint.
//!
//! The testbed's clock is that of this process; instants in requests and in reports are converted at the pipe. The instants of a
//! window are sent ahead, so that nothing is decided over the control connection meanwhile.

use std::any::Any;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rxpath_bpf::account::calibrate::Calibration;
use rxpath_core::{CpuList, Side, Warning};
use rxpath_host::Owner;
use rxpath_host::netlink::Netlink;
use rxpath_host::sysfs::device::parse_mask;
use rxpath_load::udp::sender_clock::SenderClock;
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::SoftirqPlace;
use rxpath_record::ledger::{Link, PathFacts};
use rxpath_record::samples::TrialSamples;
use serde_json::Value;

use self::background::RemoteBackground;
use self::delay::{DelayError, Pair};
use self::observing::RemoteObservers;
use self::window::RemoteWindow;
use super::foreign::ForeignProgram;
use super::tuned::RPS_OF_EACH_QUEUE;
use super::window::{Measured, Window};
use super::{Change, Seat, Started, Testbed};
use crate::clock::{HostClock, monotonic_ns};
use crate::endpoint::client::{Client, PROMPT, PendingAnswer};
use crate::endpoint::clock::ClockBounds;
use crate::endpoint::wire::{Ask, Rested, SampleAsk, SampledQueues};
use crate::error::LabError;
use crate::hosts::settings::TrialSettings;
use crate::hosts::{ConnectedHost, Hosts};
use crate::scenario::spec::{self, Trials, Variant};
use crate::trial::background::Alongside;
use crate::trial::observers::Observing;
use crate::trial::sampler::{Sampled, Sampling};

mod background;
mod cards;
mod counters;
pub mod delay;
mod observing;
mod window;

/// The least time from an order to its instant.
const LEAD: Duration = Duration::from_millis(200);
/// Round trips that an order may take until then.
const LEAD_ROUND_TRIPS: u64 = 4;
/// How long a reading after a window may take to arrive: the link that was measured may carry it.
const AFTER_WINDOW: Duration = Duration::from_secs(30);
/// Most that one request to wait may take, so that a signal is seen.
const REST_SLICE: Duration = Duration::from_secs(1);

/// The testbed of one trial.
pub struct HostsTestbed<'a> {
    hosts: &'a Hosts,
    v6: bool,
    /// The senders', then the receiver's. Compared again for each trial: clocks drift.
    clocks: Vec<ClockBounds>,
    /// The senders' clocks as the receiver gets them; none where all hosts have one clock.
    lines: Vec<SenderClock>,
    settings: TrialSettings,
    /// The RPS mask that the variant gives the receiver's device.
    rps_cpus: CpuList,
}

impl<'a> HostsTestbed<'a> {
    /// Makes the settings that the variant wants, and compares the clocks.
    ///
    /// # Errors
    /// If a host is lost, a setting is refused, or a clock jumped.
    pub fn make(hosts: &'a Hosts, variant: &Variant, trials: &Trials) -> Result<Self, LabError> {
        let settings = TrialSettings::apply(hosts, variant, trials)?;
        let clocks = compared(hosts)?;
        let first: Vec<ClockBounds> = hosts.all().map(|host| host.clock).collect();
        let pairs = pairs(hosts, &first).into_iter().zip(pairs(hosts, &clocks));
        let lines = (1..).zip(pairs).map(|(id, (first, now))| delay::line(id, first, now));
        let lines = if hosts.share_a_clock { Vec::new() } else { lines.collect() };
        let v6 = hosts.receiver.addresses.first().is_some_and(IpAddr::is_ipv6);
        let mask = variant.tune.receiver.get(RPS_OF_EACH_QUEUE);
        let rps_cpus = mask.and_then(|mask| parse_mask(mask).ok()).unwrap_or_default();
        Ok(Self { hosts, v6, clocks, lines, settings, rps_cpus })
    }

    /// Each host with its side and its clock: the senders, then the receiver.
    fn seats(&self) -> impl Iterator<Item = (&ConnectedHost, Side, HostClock)> {
        let clocks = self.clocks.iter().map(|clock| clock.clock());
        let sides = self.hosts.senders.iter().map(|_| Side::Tx).chain([Side::Rx]);
        self.hosts.all().zip(sides).zip(clocks).map(|((host, side), clock)| (host, side, clock))
    }

    /// The host of a seat, and its clock.
    fn at(&self, seat: Seat) -> Result<(&ConnectedHost, HostClock), LabError> {
        let mut seats = self.seats().filter(|(_, side, _)| *side == seat.side);
        let found = seats.nth(seat.index).map(|(host, _, clock)| (host, clock));
        found.ok_or_else(|| LabError::Internal {
            what: format!("there is no host {} of side {}", seat.index, seat.side),
        })
    }

    /// The receiver's clock.
    fn receiver_clock(&self) -> HostClock {
        self.clocks.last().map(|clock| clock.clock()).unwrap_or_default()
    }

    /// Options by which a program of datagrams gets the clocks.
    fn clock_words(&self, seat: Seat, command: &Command) -> Vec<String> {
        let line = |line: &SenderClock| ["--sender-clock".to_owned(), line.to_string()];
        let id = |line: &SenderClock| ["--clock-id".to_owned(), line.id.to_string()];
        let words: Vec<&OsStr> = command.get_args().take(2).collect();
        match (words.as_slice(), seat.side) {
            ([_, protocol], _) if *protocol != "udp" => Vec::new(),
            (_, Side::Tx) => self.lines.get(seat.index).into_iter().flat_map(id).collect(),
            _ => self.lines.iter().flat_map(line).collect(),
        }
    }

    /// Asks all hosts at once.
    fn all<T: serde::de::DeserializeOwned>(
        &self,
        ask: impl Fn(&ConnectedHost) -> Ask,
        limit: Duration,
    ) -> Result<Vec<T>, LabError> {
        let pending: Result<Vec<PendingAnswer>, LabError> =
            self.hosts.all().map(|host| host.client.begin(ask(host))).collect();
        pending?.into_iter().map(|answer| answer.wait(limit)).collect()
    }

    /// The counters of all hosts as those of two sides.
    fn named(&self, snapshots: Vec<Snapshot>, t_ns: u64) -> Snapshot {
        let devices = self.hosts.all().map(|host| host.device.name.as_str());
        let each = devices.zip(snapshots).enumerate();
        let distinct = each.filter(|(index, _)| !self.hosts.counts_with_another(*index));
        counters::of_sides(distinct.map(|(_, host)| host), t_ns)
    }
}

/// The clocks of all hosts now.
fn compared(hosts: &Hosts) -> Result<Vec<ClockBounds>, LabError> {
    hosts.all().map(|host| host.client.clock()).collect()
}

/// Each sender's clock with the receiver's; no difference where they are one.
fn pairs(hosts: &Hosts, clocks: &[ClockBounds]) -> Vec<Pair> {
    let Some((receiver, senders)) = clocks.split_last() else { return Vec::new() };
    let of = |(host, clock): (&ConnectedHost, &ClockBounds)| {
        let exact = host.has_clock_of(&hosts.receiver);
        let one = ClockBounds { most_ns: receiver.least_ns, ..*receiver };
        let (sender, receiver) = if exact { (one, one) } else { (*clock, *receiver) };
        Pair { sender, receiver }
    };
    hosts.senders.iter().zip(senders).map(of).collect()
}

/// Two readings of counters that could not be had.
fn gap(error: &LabError) -> Snapshot {
    let why = error.to_string();
    let gaps = [Side::Tx, Side::Rx].map(|side| (format!("{side}/counters"), why.clone()));
    Snapshot { gaps: gaps.into(), ..Snapshot::default() }
}

impl Testbed for HostsTestbed<'_> {
    fn addresses(&self) -> &[IpAddr] {
        &self.hosts.receiver.addresses
    }

    fn listens_on(&self) -> IpAddr {
        match self.addresses() {
            [one] => *one,
            // One socket takes the datagrams of all.
            several => {
                let v6 = several.first().is_some_and(IpAddr::is_ipv6);
                if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        let ask = |host: &ConnectedHost| Ask::Counters { device: host.device.name.clone() };
        self.all(ask, PROMPT)
            .map_or_else(|error| gap(&error), |all| self.named(all, monotonic_ns()))
    }

    fn senders(&self) -> Vec<String> {
        self.hosts.senders.iter().map(|host| host.client.alias().to_owned()).collect()
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
    ) -> Result<Started, LabError> {
        let (host, clock) = self.at(seat)?;
        host.client.launch_foreign(program.clone(), clock)
    }

    fn counter_lines(&self) -> Result<Vec<(Side, Started)>, LabError> {
        let start = |(host, side, clock): (&ConnectedHost, Side, HostClock)| {
            let words = ["endpoint", "--counters"].map(str::to_owned).to_vec();
            Ok((side, host.client.launch(words, (String::new(), 0), clock)?))
        };
        // On one machine reading from here loads nothing else, and this process is known to be no foreign load.
        if self.hosts.share_a_clock { Ok(Vec::new()) } else { self.seats().map(start).collect() }
    }

    fn sock_diag(&self, _: Side) -> Result<Netlink, LabError> {
        Err(LabError::Internal { what: "sockets of another host are read by its endpoint".into() })
    }

    fn sampler(&self, sampled: Sampled) -> Result<Box<dyn Sampling>, LabError> {
        let Sampled { interval_ns, port, tcp, v6, threads, ring: _ } = sampled;
        let of_receiver = threads.into_iter().filter(|(side, _)| *side == Side::Rx);
        let threads = of_receiver.flat_map(|(_, threads)| threads).collect();
        let client = Arc::clone(&self.hosts.receiver.client);
        let ask = Ask::Sample(SampleAsk { interval_ns, port, tcp, v6, threads });
        client.ask::<Value>(ask, PROMPT)?;
        Ok(Box::new(RemoteSampler { client, clock: self.receiver_clock() }))
    }

    fn socket_drops(&self, port: u16) -> Result<Option<Vec<u64>>, LabError> {
        self.hosts.receiver.client.ask(Ask::SocketDrops { port }, PROMPT)
    }

    fn window_lead(&self) -> Duration {
        let round_trip_ns = self.clocks.iter().map(|clock| clock.round_trip_ns).max().unwrap_or(0);
        LEAD.max(Duration::from_nanos(LEAD_ROUND_TRIPS * round_trip_ns))
    }

    fn window(&self, measured: &Measured) -> Result<Box<dyn Window + '_>, LabError> {
        Ok(Box::new(RemoteWindow::open(self, measured)?))
    }

    fn rest(
        &self,
        limit: Duration,
        stop: &AtomicBool,
        empty: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<Option<Snapshot>, LabError> {
        // why: some cards show their counters only so late; there is nothing to see earlier.
        std::thread::sleep(cards::settle(self.hosts));
        let deadline = Instant::now() + limit;
        loop {
            let limit_ms = REST_SLICE.as_millis() as u64;
            let ask =
                |host: &ConnectedHost| Ask::Rest { device: host.device.name.clone(), limit_ms };
            let rested: Vec<Rested> = self.all(ask, PROMPT)?;
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

    fn background(
        &self,
        load: &spec::Background,
        _: Option<&Owner>,
    ) -> Result<Box<dyn Alongside>, LabError> {
        RemoteBackground::start(&self.hosts.receiver.client, load)
    }

    fn observers(
        &self,
        variant: &Variant,
        calibration: Option<&Calibration>,
    ) -> Result<Box<dyn Observing>, LabError> {
        RemoteObservers::start(self.hosts, self.receiver_clock(), variant, calibration)
    }

    fn keep_awake(&self) -> Result<Box<dyn Any>, LabError> {
        self.all::<Value>(|_| Ask::Awake { on: true }, PROMPT)?;
        let clients = self.hosts.all().map(|host| Arc::clone(&host.client)).collect();
        Ok(Box::new(KeptAwake { clients }))
    }

    fn backlog_limit_packets(&self) -> Option<u64> {
        let fact = self.hosts.receiver.hello.facts.get("sysctl.net.core.netdev_max_backlog")?;
        let value = fact.value()?;
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    }

    fn delay_error(&self) -> Result<DelayError, LabError> {
        if self.lines.is_empty() {
            return Ok(DelayError::default());
        }
        Ok(delay::error(&self.lines, &pairs(self.hosts, &compared(self.hosts)?)))
    }

    fn changes(&self) -> &[Change] {
        self.settings.changes()
    }

    fn restore(&self) -> Result<(), LabError> {
        self.settings.undo()
    }

    fn softirq(&self) -> SoftirqPlace {
        match self.rps_cpus.0.as_slice() {
            [] => SoftirqPlace::Napi { cpus: Vec::new() },
            cpus => SoftirqPlace::Rps { cpus: cpus.to_vec() },
        }
    }

    fn path(&self) -> PathFacts {
        let rx = &self.hosts.receiver.device;
        let is_veth = self.hosts.all().all(|host| host.device.driver == "veth");
        PathFacts {
            // Counters of all senders stand under the first one's device.
            tx_device: self.hosts.senders.first().map(|host| host.device.name.clone()),
            tx_qdisc: None,
            rx_device: Some(rx.name.clone()),
            v6: self.v6,
            link: if is_veth { Link::Veth } else { Link::Nic },
            egress_rules: None,
            input_rules: None,
            ingress_rules: None,
            output_rules: None,
            ring: cards::ring(&self.hosts.receiver),
            wire: cards::wire(self.hosts),
        }
    }

    fn network_namespace(&self, _: Side) -> Option<u32> {
        None
    }

    fn side_of(&self, _: u32) -> Option<Side> {
        None
    }

    fn shared_with_others(&self) -> bool {
        !self.hosts.all().all(|host| host.has_own_namespace)
    }
}

/// Holds the CPUs of all hosts awake.
struct KeptAwake {
    clients: Vec<Arc<Client>>,
}

impl Drop for KeptAwake {
    fn drop(&mut self) {
        for client in &self.clients {
            // A host that is lost lets its CPUs sleep by itself.
            let _ = client.ask::<Value>(Ask::Awake { on: false }, PROMPT);
        }
    }
}

/// The receiver's sampler.
struct RemoteSampler {
    client: Arc<Client>,
    clock: HostClock,
}

impl Sampling for RemoteSampler {
    fn finish(self: Box<Self>) -> (Option<TrialSamples>, Option<Warning>) {
        match self.client.ask::<SampledQueues>(Ask::Sampled, AFTER_WINDOW) {
            Ok(SampledQueues { samples, warning }) => (samples.map(|it| self.here(it)), warning),
            Err(error) => {
                let text = format!("queues over time are missing for this trial: {error}");
                (None, Some(Warning::new("no-samples", text)))
            }
        }
    }
}

impl RemoteSampler {
    /// The samples with their instants on the clock of the testbed.
    fn here(&self, samples: TrialSamples) -> TrialSamples {
        let here = |at: i64| at.saturating_sub(self.clock.ahead_ns);
        TrialSamples { t_ns: samples.t_ns.into_iter().map(here).collect(), ..samples }
    }
}
