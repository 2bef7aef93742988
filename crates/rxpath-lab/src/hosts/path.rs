//! The paths between connected hosts: devices and addresses, from the inventory and from the hosts' own routes.

use std::net::IpAddr;

use rxpath_remote::Inventory;
use rxpath_remote::inventory::{HostEntry, Network};

use super::ConnectedHost;
use super::chosen::{self, PathEnd};
use super::devices::{listed, up};
use super::fault::{HostFault, noted};
use crate::endpoint::client::PROMPT;
use crate::endpoint::route::RouteFacts;
use crate::endpoint::wire::{DeviceFacts, Hello, HostAsk};
use crate::error::{LabError, cannot};

/// Finds the path from each sender to its receivers, and gives the hosts of both sides. Those with a fault are left out; nothing if
/// a side has no other, or if the receivers contradict each other.
pub fn between(
    senders: Vec<ConnectedHost>,
    receivers: Vec<ConnectedHost>,
    inventory: &Inventory,
    faults: &mut Vec<HostFault>,
) -> Option<[Vec<ConnectedHost>; 2]> {
    let to = receiving_all(receivers, &senders, inventory, faults);
    let addresses: Vec<(&str, &[IpAddr])> =
        to.iter().map(|host| (host.client.alias(), host.addresses.as_slice())).collect();
    noted("", distinct(&addresses), faults)?;
    if to.is_empty() {
        return None;
    }
    let mut from = Vec::new();
    for sender in senders {
        let alias = sender.client.alias();
        let own = |receiver: &&ConnectedHost| inventory.are_paired(alias, receiver.client.alias());
        let own: Vec<&ConnectedHost> = to.iter().filter(own).collect();
        let found = noted(alias, sending_to_all(&sender, &own, &inventory.network), faults);
        from.extend(found.map(|(device, addresses)| ConnectedHost { device, addresses, ..sender }));
    }
    (!from.is_empty()).then_some([from, to])
}

/// The receivers with their devices and addresses.
fn receiving_all(
    receivers: Vec<ConnectedHost>,
    senders: &[ConnectedHost],
    inventory: &Inventory,
    faults: &mut Vec<HostFault>,
) -> Vec<ConnectedHost> {
    let mut to = Vec::new();
    for receiver in receivers {
        let alias = receiver.client.alias();
        let own = |sender: &&ConnectedHost| inventory.are_paired(sender.client.alias(), alias);
        let own: Vec<PathEnd<'_>> = senders.iter().filter(own).map(PathEnd::of).collect();
        let found = match receiver.entry.addr.first() {
            Some(first) => receiving(alias, &receiver.hello, &receiver.entry, *first),
            None => chosen::address(&PathEnd::of(&receiver), &own, &inventory.network),
        };
        let found = noted(alias, found, faults);
        to.extend(found.map(|(device, addresses)| ConnectedHost { device, addresses, ..receiver }));
    }
    to
}

/// Receivers are known to senders by their addresses: each must have its own, all of one family, and as many as the others,
/// because a sender sends as much to each address.
fn distinct(receivers: &[(&str, &[IpAddr])]) -> Result<(), LabError> {
    let count = |(_, all): &&(&str, &[IpAddr])| all.len();
    let (most, least) = (receivers.iter().max_by_key(count), receivers.iter().min_by_key(count));
    if let Some(((one, more), (other, fewer))) =
        most.zip(least).filter(|(a, b)| a.1.len() > b.1.len())
    {
        return Err(cannot(
            format!("{one} has {} addresses, and {other} has {}", more.len(), fewer.len()),
            "give all receivers the same number of addresses (hosts.ALIAS.addr)",
        ));
    }
    let each = receivers.iter().flat_map(|(alias, all)| all.iter().map(move |it| (*alias, *it)));
    let mut known: Vec<(&str, IpAddr)> = Vec::new();
    for (alias, address) in each {
        let others = || known.iter().filter(move |(other, _)| *other != alias);
        if let Some((other, _)) = others().find(|(_, it)| *it == address) {
            return Err(cannot(
                format!("{other} and {alias} have one address: {address}"),
                format!("give {alias} another one, as hosts.{alias}.addr"),
            ));
        }
        if let Some((other, it)) = others().find(|(_, it)| it.is_ipv6() != address.is_ipv6()) {
            return Err(cannot(
                format!("{other} is reached at {it}, and {alias} at {address}"),
                "give all receivers addresses of one family (hosts.ALIAS.addr)",
            ));
        }
        known.push((alias, address));
    }
    Ok(())
}

/// The sender's device and its source addresses, by its routes to its receivers: one device for all.
fn sending_to_all(
    sender: &ConnectedHost,
    receivers: &[&ConnectedHost],
    network: &Network,
) -> Result<(DeviceFacts, Vec<IpAddr>), LabError> {
    let mut found: Option<(DeviceFacts, Vec<IpAddr>)> = None;
    for receiver in receivers {
        let (device, source) = sending(sender, receiver, network)?;
        let Some((first, sources)) = &mut found else {
            found = Some((device, vec![source]));
            continue;
        };
        if device.name != first.name {
            let (alias, one) = (sender.client.alias(), receivers[0].client.alias());
            let other = receiver.client.alias();
            let (by, by_other) = (&first.name, &device.name);
            return Err(cannot(
                format!("{alias} would send to {one} by {by} and to {other} by {by_other}"),
                "a sender has one device: give all its receivers addresses of its network",
            ));
        }
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    found.ok_or_else(|| {
        let alias = sender.client.alias();
        cannot(format!("{alias} sends to no receiver that is ready"), "see what is wrong with them")
    })
}

/// The receiver's device and addresses as the inventory names them; `first` is the first of them.
fn receiving(
    alias: &str,
    hello: &Hello,
    entry: &HostEntry,
    first: IpAddr,
) -> Result<(DeviceFacts, Vec<IpAddr>), LabError> {
    let device = holder(alias, hello, first)?;
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
    up(alias, &device).map(|device| (device, entry.addr.clone()))
}

/// The device that has an address.
fn holder(alias: &str, hello: &Hello, address: IpAddr) -> Result<DeviceFacts, LabError> {
    let found = hello.devices.iter().find(|device| device.addresses.contains(&address));
    found.cloned().ok_or_else(|| {
        cannot(
            format!("{alias} does not have the address {address}"),
            format!("it has {}", listed(&hello.devices)),
        )
    })
}

/// The sender's device and source address, by its route to the receiver.
fn sending(
    sender: &ConnectedHost,
    receiver: &ConnectedHost,
    network: &Network,
) -> Result<(DeviceFacts, IpAddr), LabError> {
    let (alias, other) = (sender.client.alias(), receiver.client.alias());
    let (entry, to) = (&sender.entry, receiver.addresses[0]);
    let route: Option<RouteFacts> = sender.client.ask(HostAsk::Route { to }, PROMPT)?;
    let route = route.ok_or_else(|| {
        cannot(
            format!("{alias} has no route to {to}, the address of {other}"),
            format!(
                "give both hosts addresses of one network; {alias} has {}",
                listed(&sender.hello.devices)
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
    if route.via_gateway && network.hops < 2 {
        return Err(cannot(
            format!("{alias} -> {other} takes a router, and network.hops is {}", network.hops),
            "only in a network that is yours: network.hops = 2 or more",
        ));
    }
    let device = sender.hello.devices.iter().find(|device| device.name == route.device);
    let device = device.ok_or_else(|| {
        let text = format!("its route leaves by {}, which it does not list", route.device);
        LabError::on_host(alias, text)
    })?;
    let source = route.source.or_else(|| entry.addr.first().copied());
    Ok((up(alias, device)?, source.unwrap_or(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_have_addresses_of_their_own_and_of_one_family() {
        let of = |texts: &[&str]| -> Vec<IpAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let (one, more) = (of(&["192.0.2.1"]), of(&["192.0.2.2", "192.0.2.1"]));
        let six = of(&["2001:db8::1"]);
        assert!(distinct(&[("sut", &one[..]), ("sut2", &more[..1])]).is_ok());
        let told = distinct(&[("sut", &one[..]), ("sut2", &more[1..])]).unwrap_err().to_string();
        assert!(told.contains("sut and sut2 have one address: 192.0.2.1"), "{told}");
        let told = distinct(&[("sut", &one[..]), ("sut2", &more[..])]).unwrap_err().to_string();
        assert!(told.contains("sut2 has 2 addresses, and sut has 1"), "{told}");
        let told = distinct(&[("sut", &one[..]), ("sut2", &six[..])]).unwrap_err().to_string();
        assert!(told.contains("sut is reached at 192.0.2.1, and sut2 at 2001:db8::1"), "{told}");
    }
    #[test]
    fn addresses_that_do_not_fit_the_devices_of_a_receiver_are_named() {
        let device = |index: u32, name: &str, address: &str| DeviceFacts {
            index,
            name: name.into(),
            addresses: vec![address.parse().unwrap()],
            is_up: true,
            ..DeviceFacts::default()
        };
        let devices = vec![device(1, "ens1", "192.0.2.1"), device(2, "ens2", "198.51.100.1")];
        let hello = Hello { devices, ..Hello::default() };
        let found = |keys: &str| {
            let text = format!(
                "[hosts.gen1]\nssh = \"local\"\nrole = \"sender\"\n\
                 [hosts.sut]\nssh = \"local\"\nrole = \"receiver\"\n{keys}\n"
            );
            let entry = Inventory::parse(&text, "lab.toml").unwrap().hosts["sut"].clone();
            receiving("sut", &hello, &entry, entry.addr[0])
        };
        let (device, addresses) = found("addr = [\"192.0.2.1\"]").unwrap();
        assert_eq!((device.name.as_str(), addresses.len()), ("ens1", 1));
        let told = |keys: &str| {
            let error = found(keys).unwrap_err();
            (error.to_string(), error.hint().to_owned())
        };
        let (text, hint) = told("addr = [\"192.0.2.1\", \"198.51.100.1\"]");
        assert_eq!(text, "sut: 192.0.2.1 and 198.51.100.1 are on different devices");
        assert_eq!(hint, "give addresses of one device as hosts.sut.addr");
        let (text, hint) = told("addr = [\"192.0.2.1\"]\ndev = \"ens2\"");
        assert_eq!(text, "sut: 192.0.2.1 is on ens1, not on ens2");
        assert_eq!(hint, "change hosts.sut.dev or hosts.sut.addr");
        let (text, hint) = told("addr = [\"203.0.113.1\"]");
        assert_eq!(text, "sut does not have the address 203.0.113.1");
        assert_eq!(hint, "it has 192.0.2.1 (ens1), 198.51.100.1 (ens2)");
    }
}
