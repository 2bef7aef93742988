//! Real hosts, connected and ready: who they are, by which devices and addresses they reach each other.

pub mod again;
mod chosen;
mod connect;
mod devices;
pub mod fault;
mod lag;
mod links;
mod machines;
pub mod names;
pub mod network_counters;
pub mod ntp;
pub mod observe;
pub mod pairs;
mod path;
pub mod path_clocks;
pub mod placed;
pub mod planned;
pub mod privilege;
pub mod probe;
pub mod ready;
pub mod settings;
mod shares;
pub mod start_lead;
pub mod steady;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use rxpath_core::Warning;
use rxpath_core::{IntoMap, PathSide};
use rxpath_host::read::environment::EnvironmentFacts;
use rxpath_host::read::nic::losses::CardCounters;
use rxpath_load::udp::load::options::Engine as SendEngine;
use rxpath_record::manifest::HostPart;
use rxpath_remote::inventory::HostEntry;
use rxpath_remote::{Binaries, Inventory, Role};

pub use self::connect::{client, each_at_once};
use self::pairs::HostPairs;
use self::privilege::RootNeeds;
use self::ready::Readiness;
use self::settings::InForce;
use self::start_lead::StartLead;
use self::steady::SteadyClocks;
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::clock::ClockBounds;
use crate::endpoint::links::LinkSpeed;
use crate::endpoint::wire::{DeviceFacts, Hello, HostAsk};
use crate::error::{LabError, cannot};
use crate::scenario::HostShape;
use crate::scenario::spec::{OnHosts, Resolved, Variant, WorkloadEngine};
use crate::testbed::any_of;
use crate::testbed::seat::Seat;

/// Hosts of a side, at most: five bits of a stream's number tell senders apart.
const MOST_OF_A_SIDE: usize = 32;
/// Pairs of a sender and a receiver, at most: each has a flow of its own.
const MOST_PAIRS: usize = 256;

/// One host of an experiment.
pub struct ConnectedHost {
    /// The connection to it.
    pub client: Arc<Client>,
    /// Who it is.
    pub hello: Hello,
    /// How far its clock is ahead.
    pub clock: ClockBounds,
    /// The device by which it reaches the other side.
    pub device: DeviceFacts,
    /// Its addresses on that device.
    pub addresses: Vec<IpAddr>,
    /// Whether the experiment has a network namespace of its own there.
    pub has_own_namespace: bool,
    /// Whether it is this machine.
    pub is_local: bool,
    /// The command that says what can be measured there. It has the host's name for ssh: for the terminal only.
    pub doctor: String,
    /// What its device counts of losses and of frames on the wire.
    pub card: CardCounters,
    /// How fast its device and those below it ran when the run began, the device first.
    pub speeds: Vec<LinkSpeed>,
    /// What the inventory says of it.
    pub entry: HostEntry,
    /// Number of its machine: hosts in namespaces of one machine have one.
    pub machine: usize,
}

impl ConnectedHost {
    /// Whether the two have one `CLOCK_MONOTONIC`.
    pub fn has_clock_of(&self, other: &Self) -> bool {
        let (own, others) = (self.hello.clock, other.hello.clock);
        self.machine == other.machine && own == others && own != 0
    }

    /// What a program binds to that receives there: its own address, or any of the family.
    pub fn listens_on(&self) -> IpAddr {
        match self.addresses.as_slice() {
            [one] => *one,
            // One socket takes the datagrams of all.
            several => any_of(several),
        }
    }
}

/// Senders and receivers.
pub struct Hosts {
    /// Send; at least one.
    pub senders: Vec<ConnectedHost>,
    /// Receive; at least one.
    pub receivers: Vec<ConnectedHost>,
    /// Who sends to whom.
    pub pairs: HostPairs,
    /// One of them is this machine.
    pub is_here: bool,
    /// All are this machine.
    pub share_a_clock: bool,
    /// The machine of this process, if it is that of a host.
    pub coordinator: Option<usize>,
    /// Routers between a sender and a receiver, plus one, at most.
    pub hops: u8,
    /// The command that prints the counters of the network between them; none without one.
    pub network_counters: Vec<String>,
    /// Time from the order to start to its instant.
    pub start_lead: StartLead,
    /// Since when no clock jumped.
    pub steady: SteadyClocks,
    /// Settings of a trial, which the next one may keep.
    pub in_force: InForce,
}

impl Hosts {
    /// Connects to the hosts of an inventory and finds the path between them. `binaries` are the files of this
    /// program that are sent to hosts that do not have them; `needs` decides where `sudo = "if-needed"` is sudo.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] with what is wrong with each host or its path, and what to do about it.
    pub fn connect(
        inventory: &Inventory,
        binaries: &Binaries,
        needs: &RootNeeds,
        note: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Self, LabError> {
        let Readiness { hosts, faults } = Self::look(inventory, binaries, needs, note)?;
        fault::refuse(faults)?;
        // Every inventory has hosts of both sides.
        hosts.ok_or_else(|| LabError::internal("an inventory of one side"))
    }

    /// The first receiver.
    pub fn receiver(&self) -> &ConnectedHost {
        &self.receivers[0]
    }

    /// The hosts of a side.
    pub fn of(&self, side: PathSide) -> &[ConnectedHost] {
        if side == PathSide::Tx { &self.senders } else { &self.receivers }
    }

    /// The shapes of the senders' and of the receivers' hosts: of each side the smallest, whose CPUs are on all.
    pub fn shapes(&self) -> [&HostShape; 2] {
        [smallest(&self.senders), smallest(&self.receivers)]
    }

    /// CPUs of the receiver's host.
    pub fn cpus(&self) -> Vec<u32> {
        self.receiver().hello.shape.cpus.iter().map(|cpu| cpu.cpu).collect()
    }

    /// What the run directory keeps of them.
    pub fn record(&self) -> BTreeMap<String, HostPart> {
        let part = |host: &ConnectedHost, side: PathSide| HostPart {
            side,
            device: host.device.name.clone(),
            driver: host.device.driver.clone(),
            mtu_bytes: host.device.mtu_bytes,
            cpus_count: host.hello.shape.cpus.len() as u32,
            clock_ahead_ns: host.clock.clock().ahead_ns,
            clock_error_ns: host.clock.error_ns(),
            clock_at_ns: Some(host.clock.at_ns),
            round_trip_ns: host.clock.round_trip_ns,
            has_own_namespace: host.has_own_namespace,
            device_mbps: host.wire_speed().and_then(|speed| speed.mbps),
            hops_at_most: Some(self.hops),
            ntp: host.ntp(),
            clock: self.all().position(|it| host.has_clock_of(it)).map(|first| first as u32),
            drift: None,
            control_path: host.control(),
            path_clocks: BTreeMap::new(),
            sends_to: if side == PathSide::Tx { self.chosen_for(host) } else { Vec::new() },
        };
        let parts = self.seats().map(|(seat, host)| (host.client.alias(), part(host, seat.side)));
        parts.map(|(alias, part)| (alias.to_owned(), part)).into_map()
    }

    /// The receivers of a sender; nothing if each sender sends to each.
    fn chosen_for(&self, sender: &ConnectedHost) -> Vec<String> {
        let alias = sender.client.alias();
        let own = self.pair_names().filter(|[from, _]| !self.pairs.are_all() && *from == alias);
        own.map(|[_, to]| to.to_owned()).collect()
    }

    /// Compares all clocks again and notes how much faster each ran since the run began, or since a clock jumped. A host that no
    /// longer answers has none.
    pub fn note_drift(&self, parts: &mut BTreeMap<String, HostPart>) {
        for (place, host) in self.all().enumerate() {
            let now = host.client.clock().ok();
            let drift = now.and_then(|now| self.steady.drift(place, host.clock, now));
            if let Some(part) = parts.get_mut(host.client.alias()) {
                part.drift = drift;
            }
        }
    }

    /// The facts of all hosts by alias.
    pub fn facts(&self) -> BTreeMap<String, EnvironmentFacts> {
        let one = |host: &ConnectedHost| (host.client.alias().to_owned(), host.hello.facts.clone());
        self.all().map(one).into_map()
    }

    /// Each host with its seat: the senders, then the receivers.
    pub fn seats(&self) -> impl Iterator<Item = (Seat, &ConnectedHost)> {
        [PathSide::Tx, PathSide::Rx].into_iter().flat_map(move |side| {
            self.of(side).iter().enumerate().map(move |(index, host)| (Seat { side, index }, host))
        })
    }

    /// The hosts that something is for, the senders first.
    pub fn on(&self, on: &OnHosts) -> impl Iterator<Item = (Seat, &ConnectedHost)> {
        self.seats().filter(move |(seat, host)| on.has(seat.side, host.client.alias()))
    }

    /// The first of the hosts that something is for that does not have a program.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    pub fn without(&self, on: &OnHosts, program: &str) -> Result<Option<&str>, LabError> {
        for (_, host) in self.on(on) {
            let ask = HostAsk::HasProgram { name: program.to_owned() };
            if !host.client.ask::<bool>(ask, PROMPT)? {
                return Ok(Some(host.client.alias()));
            }
        }
        Ok(None)
    }

    /// A third-party generator runs on one host, and several receivers take the load of this program.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] where there are more hosts than a variant can use.
    pub fn check_programs(&self, resolved: &Resolved) -> Result<(), LabError> {
        for variant in resolved.available() {
            if self.senders.len() > 1 && variant.load.is_external() {
                let name = &variant.name;
                let what = format!("variant {name} has a load.command, which one host runs");
                return Err(cannot(what, "leave one host with role = \"sender\""));
            }
            if let Some(what) = for_one_receiver(variant).filter(|_| self.receivers.len() > 1) {
                let what =
                    format!("variant {} has {what}, which is for one receiver", variant.name);
                return Err(cannot(what, "leave one host with role = \"receiver\""));
            }
        }
        Ok(())
    }

    /// What is worth knowing of them before a trial.
    pub fn warnings(&self) -> Vec<Warning> {
        let all =
            [self.one_machine(), self.one_boot(), self.unlike_links(), self.ntp_contradicted()];
        all.into_iter().flatten().collect()
    }

    /// A warning where a receiver is one machine with a sender or another receiver, and `ssh = "local"` does not say so.
    fn one_machine(&self) -> Option<Warning> {
        let all: Vec<&ConnectedHost> = self.all().collect();
        let mut receivers = all.iter().enumerate().skip(self.senders.len());
        let (one, other) = receivers.find_map(|(at, other)| {
            let one = all[..at].iter().find(|one| one.machine == other.machine)?;
            Some((one.client.alias(), other.client.alias()))
        })?;
        let text = format!("{one} and {other} are one machine: they take CPU time from each other");
        (!self.share_a_clock).then(|| Warning::new("one-machine", text))
    }

    /// Whether this host's counters are those of an earlier one of its side: two of one machine may be in one namespace.
    pub fn counts_with_another(&self, side: PathSide, index: usize) -> bool {
        let namespace = |host: &ConnectedHost| {
            let netns = host.hello.netns;
            (host.is_local || netns.is_some()).then_some((host.machine, netns))
        };
        let hosts = self.of(side);
        let Some(own) = hosts.get(index).and_then(namespace) else { return false };
        hosts.iter().take(index).any(|host| namespace(host) == Some(own))
    }

    /// The hosts of a side whose counters are those of no earlier one.
    pub fn counting(&self, side: PathSide) -> impl Iterator<Item = &ConnectedHost> {
        let all = self.of(side).iter().enumerate();
        all.filter(move |(index, _)| !self.counts_with_another(side, *index)).map(|(_, host)| host)
    }

    /// Whether no earlier host of its side is on its machine, whose CPUs and energy both read.
    pub fn is_first_on_machine(&self, side: PathSide, index: usize) -> bool {
        let machines: Vec<usize> = self.of(side).iter().map(|host| host.machine).collect();
        machines.iter().position(|machine| machines.get(index) == Some(machine)) == Some(index)
    }

    /// For each receiver the alias of each sender, where the two are different machines.
    pub fn apart(&self) -> Vec<Vec<Option<String>>> {
        let of = |receiver: &ConnectedHost| -> Vec<Option<String>> {
            let named = |sender: &ConnectedHost| {
                (sender.machine != receiver.machine).then(|| sender.client.alias().to_owned())
            };
            self.senders.iter().map(named).collect()
        };
        self.receivers.iter().map(of).collect()
    }

    /// The senders, then the receivers.
    pub fn all(&self) -> impl Iterator<Item = &ConnectedHost> {
        self.senders.iter().chain(&self.receivers)
    }

    /// The largest packet that all devices take. **Unit** bytes.
    pub fn mtu_bytes(&self) -> u32 {
        self.all().map(|host| host.device.mtu_bytes).min().unwrap_or_default()
    }
}

/// What of a variant only runs with one receiver.
fn for_one_receiver(variant: &Variant) -> Option<&'static str> {
    let serves_xdp = variant.serve.own().is_some_and(|own| own.options.bypasses_stack());
    let sends = variant.load.own().and_then(|own| own.options.engine);
    let found = [
        (serves_xdp, "a serve.engine of XDP"),
        (sends == Some(WorkloadEngine::Udp(SendEngine::XdpFrames)), "load.engine = \"xdp-frames\""),
        (variant.load.is_external(), "a load.command"),
        (variant.serve.is_external(), "a serve.command"),
        (variant.background.victim.is_some(), "a background.victim"),
        (!variant.background.victim_command.is_empty(), "a background.victim_command"),
    ];
    let observers = variant.observe.observers().into_iter();
    let observers = observers.map(|(on, key)| (on == OnHosts::Receivers, key));
    found.into_iter().chain(observers).find_map(|(is_there, what)| is_there.then_some(what))
}

/// The shape of the host with the fewest CPUs.
fn smallest(hosts: &[ConnectedHost]) -> &HostShape {
    let shapes = hosts.iter().map(|host| &host.hello.shape);
    shapes.min_by_key(|shape| shape.cpus.len()).unwrap_or(&hosts[0].hello.shape)
}

/// Refuses more hosts than an experiment has.
fn check_counts(inventory: &Inventory) -> Result<(), LabError> {
    let [senders, receivers] =
        [Role::Sender, Role::Receiver].map(|role| inventory.of(role).count());
    for (count, word) in [(senders, "senders"), (receivers, "receivers")] {
        if count > MOST_OF_A_SIDE {
            let hint = format!("an experiment has at most {MOST_OF_A_SIDE}");
            return Err(cannot(format!("the inventory has {count} {word}"), hint));
        }
    }
    let all = inventory.of(Role::Sender).flat_map(|(sender, _)| {
        inventory.of(Role::Receiver).map(move |(receiver, _)| (sender, receiver))
    });
    let pairs = all.filter(|(sender, receiver)| inventory.are_paired(sender, receiver)).count();
    if pairs > MOST_PAIRS {
        let chosen = "network.pairs chooses who sends to whom";
        return Err(cannot(
            format!("{senders} senders and {receivers} receivers are {pairs} pairs"),
            format!("an experiment has at most {MOST_PAIRS}; {chosen}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chosen_pairs_count_for_the_limit() {
        let host = |role: &str, at: usize| {
            format!("[hosts.{role}{at}]\nssh = \"local\"\nrole = \"{role}\"\n")
        };
        let hosts: String = (0..20).map(|at| host("sender", at) + &host("receiver", at)).collect();
        let told = |text: &str| check_counts(&Inventory::parse(text, "lab.toml").unwrap());
        let all = told(&hosts).unwrap_err().to_string();
        assert!(all.contains("20 senders and 20 receivers are 400 pairs"), "{all}");
        let pair = |at: usize| format!("[\"sender{at}\", \"receiver{at}\"]");
        let pairs = (0..20).map(pair).collect::<Vec<_>>().join(", ");
        assert!(told(&format!("{hosts}[network]\npairs = [{pairs}]\n")).is_ok());
    }
}
