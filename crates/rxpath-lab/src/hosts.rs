//! Two real hosts, connected and ready: who they are, by which devices and addresses they reach each other.

mod connect;
pub mod observe;
mod path;
pub mod settings;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rxpath_core::Side;
use rxpath_host::environment::HostFacts;
use rxpath_record::manifest::HostPart;
use rxpath_remote::inventory::{HostEntry, Network};
use rxpath_remote::{Inventory, Role};
use serde_json::Value;

pub use self::connect::client;
use crate::endpoint::client::Client;
use crate::endpoint::clock::ClockBounds;
use crate::endpoint::wire::{DeviceFacts, Hello};
use crate::error::LabError;
use crate::scenario::HostShape;

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
}

/// A sender and a receiver.
pub struct Hosts {
    /// Sends.
    pub sender: ConnectedHost,
    /// Receives.
    pub receiver: ConnectedHost,
    /// One of them is this machine.
    pub is_here: bool,
    /// Both are this machine.
    pub share_a_clock: bool,
}

impl Hosts {
    /// Connects to the hosts of an inventory and finds the path between them. `exe` is this program, which is sent to
    /// hosts that do not have it.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] with what is wrong with a host or with the path, and what to do about it.
    pub fn connect(
        inventory: &Inventory,
        exe: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        let [sender, receiver] = [Role::Sender, Role::Receiver].map(|role| only(inventory, role));
        let (sender, receiver) = (sender?, receiver?);
        let both_local = [sender, receiver].iter().all(|(_, entry)| connect::is_local(entry));
        let sender = connect::connect(sender, exe, both_local, note)?;
        let receiver = connect::connect(receiver, exe, both_local, note)?;
        path::between(sender, receiver, inventory)
    }

    /// The shapes of the sender's and of the receiver's host.
    pub fn shapes(&self) -> [&HostShape; 2] {
        [&self.sender.hello.shape, &self.receiver.hello.shape]
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
        let sides = [(&self.sender, Side::Tx), (&self.receiver, Side::Rx)];
        sides.map(|(host, side)| (host.client.alias().to_owned(), part(host, side))).into()
    }

    /// The facts of both hosts by alias.
    pub fn facts(&self) -> BTreeMap<String, HostFacts> {
        let one = |host: &ConnectedHost| (host.client.alias().to_owned(), host.hello.facts.clone());
        self.all().map(one).into()
    }

    /// Replaces the hosts' addresses in what their programs printed: a run directory knows them by their aliases only.
    pub fn hide_addresses(&self, printed: &mut Value) {
        match printed {
            Value::String(text) => {
                // On one machine both have the same: what is printed is mostly where the receiver listens.
                for host in [&self.receiver, &self.sender] {
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

    /// Both.
    pub fn all(&self) -> [&ConnectedHost; 2] {
        [&self.sender, &self.receiver]
    }

    /// The largest packet that both devices take. **Unit** bytes.
    pub fn mtu_bytes(&self) -> u32 {
        self.sender.device.mtu_bytes.min(self.receiver.device.mtu_bytes)
    }
}

/// The host of a role.
fn only(inventory: &Inventory, role: Role) -> Result<(&String, &HostEntry), LabError> {
    let mut all = inventory.of(role);
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(LabError::CannotRun {
            what: format!("the inventory has several hosts with role = \"{}\"", role.word()),
            hint: "an experiment runs between one sender and one receiver".into(),
        }),
    }
}

/// Whether routers may lie between the hosts.
fn may_be_routed(network: &Network) -> bool {
    network.hops > 1
}
