//! Two real hosts, connected and ready: who they are, by which devices and addresses they reach each other.

mod connect;
mod machines;
pub mod observe;
mod path;
pub mod probe;
pub mod settings;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::slice::from_ref;
use std::sync::Arc;

use rand::RngExt;
use rxpath_core::Side;
use rxpath_core::Warning;
use rxpath_core::number::si;
use rxpath_host::environment::HostFacts;
use rxpath_host::nic::losses::CardCounters;
use rxpath_record::manifest::HostPart;
use rxpath_remote::inventory::{HostEntry, Network};
use rxpath_remote::{Binaries, Inventory, Role};
use serde_json::Value;

pub use self::connect::client;
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::clock::ClockBounds;
use crate::endpoint::wire::{Ask, DeviceFacts, Hello};
use crate::error::LabError;
use crate::scenario::HostShape;
use crate::scenario::spec::{Resolved, Variant};

/// Senders of an experiment, at most: five bits of a stream's number tell them apart.
const MOST_SENDERS: usize = 32;

/// One host of an experiment.
pub struct ConnectedHost {
    /// The connection to it.
    pub client: Arc<Client>,
    /// Who it is.
    pub hello: Hello,
    /// How far its clock is ahead.
    pub clock: ClockBounds,
    /// The device by which it reaches the other one.
    pub device: DeviceFacts,
    /// Its addresses on that device.
    pub addresses: Vec<IpAddr>,
    /// Whether the experiment has a network namespace of its own there.
    pub has_own_namespace: bool,
    /// Whether it is this machine.
    pub is_local: bool,
    /// What its device counts of losses and of frames on the wire.
    pub card: CardCounters,
    /// Number of its machine: hosts in namespaces of one machine have one.
    pub machine: usize,
}

impl ConnectedHost {
    /// Whether the two have one `CLOCK_MONOTONIC`.
    pub fn has_clock_of(&self, other: &Self) -> bool {
        let (own, others) = (self.hello.clock, other.hello.clock);
        self.machine == other.machine && own == others && own != 0
    }
}

/// Senders and a receiver.
pub struct Hosts {
    /// Send; at least one.
    pub senders: Vec<ConnectedHost>,
    /// Receives.
    pub receiver: ConnectedHost,
    /// One of them is this machine.
    pub is_here: bool,
    /// All are this machine.
    pub share_a_clock: bool,
    /// The machine of this process, if it is that of a host.
    pub coordinator: Option<usize>,
    /// Routers between a sender and the receiver, plus one, at most.
    pub hops: u8,
}

impl Hosts {
    /// Connects to the hosts of an inventory and finds the path between them. `binaries` are the files of this
    /// program that are sent to hosts that do not have them.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] with what is wrong with a host or with the path, and what to do about it.
    pub fn connect(
        inventory: &Inventory,
        binaries: &Binaries,
        note: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Self, LabError> {
        let receiver = receiver_of(inventory)?;
        let all: Vec<_> = inventory.of(Role::Sender).chain([receiver]).collect();
        if all.len() > MOST_SENDERS + 1 {
            return Err(LabError::CannotRun {
                what: format!("the inventory has {} senders", all.len() - 1),
                hint: format!("an experiment has at most {MOST_SENDERS}"),
            });
        }
        let secret = format!("{:016x}", rand::rng().random::<u64>());
        let at_once = usize::from(inventory.network.connect_at_once);
        let known = (secret.as_str(), inventory.network.hops);
        let mut senders = connect::connect((&all, at_once), binaries, known, note)?;
        let coordinator = machines::tell_apart(&mut senders, &secret)?;
        let receiver = senders
            .pop()
            .ok_or_else(|| LabError::Internal { what: "an inventory without a receiver".into() })?;
        let mut hosts = path::between(senders, receiver, inventory)?;
        for host in hosts.senders.iter_mut().chain([&mut hosts.receiver]) {
            let (device, driver) = (host.device.name.clone(), host.device.driver.clone());
            host.card = host.client.ask(Ask::Card { device, driver }, PROMPT)?;
        }
        Ok(Self { coordinator, ..hosts })
    }

    /// The shapes of the senders' and of the receiver's host. CPUs of the smallest sender are on all.
    pub fn shapes(&self) -> [&HostShape; 2] {
        let receiver = &self.receiver.hello.shape;
        let senders = self.senders.iter().map(|host| &host.hello.shape);
        [senders.min_by_key(|shape| shape.cpus.len()).unwrap_or(receiver), receiver]
    }

    /// CPUs of the receiver's host.
    pub fn cpus(&self) -> Vec<u32> {
        self.receiver.hello.shape.cpus.iter().map(|cpu| cpu.cpu).collect()
    }

    /// What the run directory keeps of them.
    pub fn record(&self) -> BTreeMap<String, HostPart> {
        let part = |host: &ConnectedHost, side: Side| HostPart {
            side,
            device: host.device.name.clone(),
            driver: host.device.driver.clone(),
            mtu_bytes: host.device.mtu_bytes,
            cpus_count: host.hello.shape.cpus.len() as u32,
            clock_ahead_ns: host.clock.clock().ahead_ns,
            clock_error_ns: host.clock.error_ns(),
            round_trip_ns: host.clock.round_trip_ns,
            has_own_namespace: host.has_own_namespace,
        };
        let senders = self.senders.iter().map(|host| (host, Side::Tx));
        let all = senders.chain([(&self.receiver, Side::Rx)]);
        all.map(|(host, side)| (host.client.alias().to_owned(), part(host, side))).collect()
    }

    /// The facts of all hosts by alias.
    pub fn facts(&self) -> BTreeMap<String, HostFacts> {
        let one = |host: &ConnectedHost| (host.client.alias().to_owned(), host.hello.facts.clone());
        self.all().map(one).collect()
    }

    /// Replaces the hosts' addresses in what their programs printed: a run directory knows them by their aliases only.
    pub fn hide_addresses(&self, printed: &mut Value) {
        match printed {
            Value::String(text) => {
                // On one machine both have the same: what is printed is mostly where the receiver listens.
                for host in std::iter::once(&self.receiver).chain(&self.senders) {
                    for address in &host.addresses {
                        *text = text.replace(&address.to_string(), host.client.alias());
                    }
                }
            }
            Value::Array(all) => all.iter_mut().for_each(|one| self.hide_addresses(one)),
            Value::Object(all) => all.values_mut().for_each(|one| self.hide_addresses(one)),
            _ => {}
        }
    }

    /// The first host of a side that does not have a program.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    pub fn without(&self, side: Side, program: &str) -> Result<Option<&str>, LabError> {
        let of_side = if side == Side::Tx { &self.senders[..] } else { from_ref(&self.receiver) };
        for host in of_side {
            let ask = Ask::HasProgram { name: program.to_owned() };
            if !host.client.ask::<bool>(ask, PROMPT)? {
                return Ok(Some(host.client.alias()));
            }
        }
        Ok(None)
    }

    /// A third-party generator runs on one host.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] where there are more.
    pub fn check_senders(&self, resolved: &Resolved) -> Result<(), LabError> {
        let here = resolved.variants.iter().filter(|variant| variant.not_available.is_none());
        let mut foreign = here.filter(|variant| variant.load.is_external());
        match foreign.next() {
            Some(variant) if self.senders.len() > 1 => Err(LabError::CannotRun {
                what: format!("variant {} has a load.command, which one host runs", variant.name),
                hint: "leave one host with role = \"sender\"".into(),
            }),
            _ => Ok(()),
        }
    }

    /// A warning where sender and receiver are one machine, and `ssh = "local"` does not say so.
    pub fn one_machine(&self) -> Option<Warning> {
        let receiver = &self.receiver;
        let same = self.senders.iter().find(|host| host.machine == receiver.machine)?;
        let (one, other) = (same.client.alias(), receiver.client.alias());
        let text = format!("{one} and {other} are one machine: they take CPU time from each other");
        (!self.share_a_clock).then(|| Warning::new("one-machine", text))
    }

    /// How several senders share the rate of each variant, a line for each; nothing for one sender.
    pub fn shares(&self, resolved: &Resolved) -> Vec<String> {
        let count = self.senders.len();
        let line = |variant: &Variant| {
            let options = &variant.load.own()?.options;
            let (key, total) = match (options.rate, options.bitrate) {
                (Some(rate), _) => ("load.rate", rate),
                (None, rate) => ("load.bitrate", rate?),
            };
            let (total, each) = (si(total as f64), si(total as f64 / count as f64));
            Some(format!("{}: {key} {total} = {count} senders x {each}", variant.name))
        };
        if count < 2 { Vec::new() } else { resolved.variants.iter().filter_map(line).collect() }
    }

    /// Whether this sender's counters are those of an earlier one: on this machine two may be in one namespace.
    pub fn counts_with_another(&self, sender: usize) -> bool {
        let namespace = |host: &ConnectedHost| host.is_local.then_some(host.hello.netns);
        let Some(own) = self.senders.get(sender).and_then(namespace) else { return false };
        self.senders.iter().take(sender).any(|host| namespace(host) == Some(own))
    }

    /// The senders, then the receiver.
    pub fn all(&self) -> impl Iterator<Item = &ConnectedHost> {
        self.senders.iter().chain([&self.receiver])
    }

    /// The largest packet that all devices take. **Unit** bytes.
    pub fn mtu_bytes(&self) -> u32 {
        self.all().map(|host| host.device.mtu_bytes).min().unwrap_or_default()
    }
}

/// The receiver.
fn receiver_of(inventory: &Inventory) -> Result<(&String, &HostEntry), LabError> {
    let mut all = inventory.of(Role::Receiver);
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(LabError::CannotRun {
            what: "the inventory has several hosts with role = \"receiver\"".into(),
            hint: "an experiment has one receiver, and any number of senders".into(),
        }),
    }
}

/// Whether routers may lie between the hosts.
fn may_be_routed(network: &Network) -> bool {
    network.hops > 1
}
