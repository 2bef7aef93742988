//! The path between two connected hosts: devices and addresses, from the inventory and from the hosts' own routes.

use std::net::IpAddr;

use rxpath_remote::Inventory;
use rxpath_remote::inventory::{HostEntry, Network};

use super::connect::is_local;
use super::{ConnectedHost, Hosts, may_be_routed, receiver_of};
use crate::endpoint::client::PROMPT;
use crate::endpoint::wire::{Ask, DeviceFacts, Hello, RouteFacts};
use crate::error::LabError;

/// Finds the path from each sender, or says what is wrong with it.
pub fn between(
    senders: Vec<ConnectedHost>,
    receiver: ConnectedHost,
    inventory: &Inventory,
) -> Result<Hosts, LabError> {
    let (_, to) = receiver_of(inventory)?;
    let (device, addresses) = receiving(receiver.client.alias(), &receiver.hello, to)?;
    let receiver = ConnectedHost { device, addresses, ..receiver };
    let mut found = Vec::new();
    for sender in senders {
        let from = inventory.hosts.get(sender.client.alias()).ok_or_else(|| {
            LabError::Internal { what: "a sender that is not in the inventory".into() }
        })?;
        let (device, source) = sending(&sender, from, &receiver, &inventory.network)?;
        found.push(ConnectedHost { device, addresses: vec![source], ..sender });
    }
    let share_a_clock = inventory.hosts.values().all(is_local);
    let is_here = inventory.hosts.values().any(is_local);
    let hops = inventory.network.hops;
    Ok(Hosts { senders: found, receiver, is_here, share_a_clock, coordinator: None, hops })
}

fn cannot(what: String, hint: impl Into<String>) -> LabError {
    LabError::CannotRun { what, hint: hint.into() }
}

/// The receiver's device and addresses: those of the inventory, else the only ones that there are.
fn receiving(
    alias: &str,
    hello: &Hello,
    entry: &HostEntry,
) -> Result<(DeviceFacts, Vec<IpAddr>), LabError> {
    if let Some(first) = entry.addr.first() {
        let device = holder(alias, hello, *first)?;
        for address in &entry.addr {
            if holder(alias, hello, *address)?.index != device.index {
                return Err(cannot(
                    format!("{alias}: {first} and {address} are on different devices"),
                    format!("give addresses of one device as hosts.{alias}.addr"),
                ));
            }
        }
        if let Some(wanted) = entry.dev.as_ref().filter(|wanted| **wanted != device.name) {
            return Err(cannot(
                format!("{alias}: {first} is on {}, not on {wanted}", device.name),
                format!("change hosts.{alias}.dev or hosts.{alias}.addr"),
            ));
        }
        return up(alias, &device).map(|device| (device, entry.addr.clone()));
    }
    let usable = |device: &&DeviceFacts| match &entry.dev {
        Some(wanted) => device.name == *wanted,
        None => device.is_up && !device.addresses.iter().any(IpAddr::is_loopback),
    };
    let all: Vec<(&DeviceFacts, IpAddr)> = hello
        .devices
        .iter()
        .filter(usable)
        .flat_map(|device| device.addresses.iter().map(move |address| (device, *address)))
        .filter(|(_, address)| address.is_ipv4())
        .collect();
    match all.as_slice() {
        [(device, address)] => up(alias, device).map(|device| (device, vec![*address])),
        [] => Err(cannot(
            format!("{alias} has no IPv4 address{}", on(entry)),
            format!("hosts.{alias}.addr = [\"ADDRESS\"]; it has {}", listed(hello)),
        )),
        _ => Err(cannot(
            format!("{alias} has several addresses{}: {}", on(entry), listed(hello)),
            format!("choose one in an inventory: hosts.{alias}.addr = [\"{}\"]", all[0].1),
        )),
    }
}

fn on(entry: &HostEntry) -> String {
    entry.dev.as_ref().map_or_else(String::new, |dev| format!(" on {dev}"))
}

/// Every device with its addresses.
fn listed(hello: &Hello) -> String {
    let one = |device: &DeviceFacts| {
        let addresses: Vec<String> = device.addresses.iter().map(IpAddr::to_string).collect();
        format!("{} ({})", addresses.join(", "), device.name)
    };
    let with = hello.devices.iter().filter(|device| !device.addresses.is_empty());
    with.map(one).collect::<Vec<_>>().join(", ")
}

/// The device that has an address.
fn holder(alias: &str, hello: &Hello, address: IpAddr) -> Result<DeviceFacts, LabError> {
    let found = hello.devices.iter().find(|device| device.addresses.contains(&address));
    found.cloned().ok_or_else(|| {
        cannot(
            format!("{alias} does not have the address {address}"),
            format!("it has {}", listed(hello)),
        )
    })
}

fn up(alias: &str, device: &DeviceFacts) -> Result<DeviceFacts, LabError> {
    if device.is_up {
        return Ok(device.clone());
    }
    Err(cannot(
        format!("{alias}: {} is down or has no carrier", device.name),
        format!("ip link set {} up, and look at the cable", device.name),
    ))
}

/// The sender's device and source address, by its route to the receiver.
fn sending(
    sender: &ConnectedHost,
    entry: &HostEntry,
    receiver: &ConnectedHost,
    network: &Network,
) -> Result<(DeviceFacts, IpAddr), LabError> {
    let (alias, other) = (sender.client.alias(), receiver.client.alias());
    let to = receiver.addresses[0];
    let route: Option<RouteFacts> = sender.client.ask(Ask::Route { to }, PROMPT)?;
    let route = route.ok_or_else(|| {
        cannot(
            format!("{alias} has no route to {to}, the address of {other}"),
            format!(
                "give both hosts addresses of one network; {alias} has {}",
                listed(&sender.hello)
            ),
        )
    })?;
    if let Some(wanted) = entry.dev.as_ref().filter(|wanted| **wanted != route.device) {
        return Err(cannot(
            format!("{alias} would send to {to} by {} (route), not by {wanted}", route.device),
            format!(
                "give {other} an address of the network of {wanted}, or change hosts.{alias}.dev"
            ),
        ));
    }
    if route.via_gateway && !may_be_routed(network) {
        return Err(cannot(
            format!("{alias} -> {other} takes a router, and network.hops is {}", network.hops),
            "only in a network that is yours: network.hops = 2 or more",
        ));
    }
    let device = sender.hello.devices.iter().find(|device| device.name == route.device);
    let device = device.ok_or_else(|| LabError::OnHost {
        host: alias.to_owned(),
        text: format!("its route leaves by {}, which it does not list", route.device),
    })?;
    let source = route.source.or_else(|| entry.addr.first().copied());
    Ok((up(alias, device)?, source.unwrap_or(to)))
}
