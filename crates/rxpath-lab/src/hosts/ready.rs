//! Which hosts of an inventory are ready for an experiment, and what is wrong with the others: all of it at once, so that
//! nobody finds the faults of 32 hosts one at a time.

use rand::RngExt;
use rxpath_remote::{Binaries, Inventory, Role};

use super::connect::{self, HostTerms, is_local};
use super::fault::{HostFault, noted};
use super::pairs::HostPairs;
use super::privilege::RootNeeds;
use super::settings::InForce;
use super::start_lead::StartLead;
use super::steady::SteadyClocks;
use super::{ConnectedHost, Hosts, check_counts, machines, path};
use crate::endpoint::client::PROMPT;
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;

/// What was found of the hosts of an inventory.
pub struct Readiness {
    /// Those without a fault; nothing if no sender has a receiver among them.
    pub hosts: Option<Hosts>,
    /// What is wrong with the others, in the order in which it was found.
    pub faults: Vec<HostFault>,
}

impl Hosts {
    /// Looks at all hosts of an inventory, as [`Hosts::connect`] does, and goes on after a fault.
    ///
    /// # Errors
    /// If the inventory has more hosts than an experiment.
    pub fn look(
        inventory: &Inventory,
        binaries: &Binaries,
        needs: &RootNeeds,
        note: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Readiness, LabError> {
        check_counts(inventory)?;
        let all: Vec<_> = inventory.of(Role::Sender).chain(inventory.of(Role::Receiver)).collect();
        let secret = format!("{:016x}", rand::rng().random::<u64>());
        let at_once = usize::from(inventory.network.connect_at_once);
        let terms = HostTerms { secret: &secret, hops: inventory.network.hops, needs };
        let found = connect::connect((&all, at_once), binaries, terms, note);
        let aliases = all.iter().map(|(alias, _)| alias.as_str());
        let mut faults = Vec::new();
        let found = aliases.zip(found);
        let connected = found.filter_map(|(alias, one)| noted(alias, one, &mut faults)).collect();
        Ok(Readiness { hosts: ready(connected, inventory, &secret, &mut faults), faults })
    }
}

/// Connected hosts with their paths and devices.
fn ready(
    mut connected: Vec<ConnectedHost>,
    inventory: &Inventory,
    secret: &str,
    faults: &mut Vec<HostFault>,
) -> Option<Hosts> {
    let coordinator = noted("", machines::tell_apart(&mut connected, secret), faults)?;
    let sends = |host: &ConnectedHost| host.entry.role == Role::Sender;
    let (senders, receivers) = connected.into_iter().partition(sends);
    let sides = path::between(senders, receivers, inventory, faults)?;
    let sides = sides.map(|hosts| asked(hosts, ask_card, faults));
    // One right after the other: one host may have waited for its copy of the program, and clocks drift.
    let [senders, receivers] = sides.map(|hosts| asked(hosts, compare_clock, faults));
    // Who sends to whom is known once all faults are.
    let pairs = HostPairs::of(senders.len(), receivers.len(), |sender, receiver| {
        let [from, to] = [&senders[sender], &receivers[receiver]].map(|host| host.client.alias());
        inventory.are_paired(from, to)
    });
    (pairs.count() > 0).then(|| Hosts {
        senders,
        receivers,
        pairs,
        is_here: inventory.hosts.values().any(is_local),
        share_a_clock: inventory.hosts.values().all(is_local),
        coordinator,
        hops: inventory.network.hops,
        network_counters: inventory.network.counters.clone(),
        start_lead: StartLead::default(),
        steady: SteadyClocks::default(),
        in_force: InForce::default(),
    })
}

/// The hosts with what they answer; those with a fault are left out.
fn asked(
    hosts: Vec<ConnectedHost>,
    ask: fn(&mut ConnectedHost) -> Result<(), LabError>,
    faults: &mut Vec<HostFault>,
) -> Vec<ConnectedHost> {
    let mut known = Vec::new();
    for mut host in hosts {
        let answer = ask(&mut host);
        known.extend(noted(host.client.alias(), answer, faults).map(|()| host));
    }
    known
}

/// Compares the clock of a host with that of this process.
fn compare_clock(host: &mut ConnectedHost) -> Result<(), LabError> {
    host.clock = host.client.clock()?;
    Ok(())
}

/// Asks a host what its device counts and how fast it runs.
fn ask_card(host: &mut ConnectedHost) -> Result<(), LabError> {
    let (device, driver) = (host.device.name.clone(), host.device.driver.clone());
    host.card = host.client.ask(HostAsk::Card { device, driver }, PROMPT)?;
    let device = host.device.name.clone();
    host.speeds = host.client.ask(HostAsk::LinkSpeeds { device }, PROMPT)?;
    host.hello.shape.card_node = card_node(host);
    Ok(())
}

/// The NUMA node of a host's device, or of the first one below it that has one.
fn card_node(host: &ConnectedHost) -> Option<u32> {
    let of = |name: &str| {
        let mut all = host.hello.devices.iter();
        all.find(|device| device.name == name).and_then(|device| device.numa_node)
    };
    of(&host.device.name).or_else(|| host.speeds.iter().find_map(|link| of(&link.device)))
}
