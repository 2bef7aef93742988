//! The device and the address of a receiver whose inventory names no address: those by which the routes of both sides lead.

use std::fmt;
use std::net::IpAddr;

use rxpath_remote::inventory::{HostEntry, Network};

use super::ConnectedHost;
use super::devices::{listed, up};
use crate::endpoint::client::PROMPT;
use crate::endpoint::route::RouteFacts;
use crate::endpoint::wire::{DeviceFacts, HostAsk};
use crate::error::{LabError, cannot};

type RouteOf<'a> = Box<dyn Fn(IpAddr) -> Result<Option<RouteFacts>, LabError> + 'a>;

/// A host as an end of a path that is looked for.
pub struct PathEnd<'a> {
    alias: &'a str,
    entry: &'a HostEntry,
    devices: &'a [DeviceFacts],
    /// Those that carry its ssh session.
    control: &'a [String],
    /// Its route to an address.
    route: RouteOf<'a>,
}

impl<'a> PathEnd<'a> {
    pub fn of(host: &'a ConnectedHost) -> Self {
        // In another namespace the session's device is another one of that name.
        let is_known = !host.is_local && !host.has_own_namespace;
        let control = if is_known { host.hello.control_devices.as_slice() } else { &[] };
        let route = move |to: IpAddr| -> Result<Option<RouteFacts>, LabError> {
            host.client.ask(HostAsk::Route { to }, PROMPT)
        };
        Self {
            alias: host.client.alias(),
            entry: &host.entry,
            devices: &host.hello.devices,
            control,
            route: Box::new(route),
        }
    }

    fn carries_ssh(&self, device: &str) -> bool {
        self.control.iter().any(|it| it == device)
    }
}

/// An address of a receiver.
struct Candidate<'a> {
    device: &'a DeviceFacts,
    address: IpAddr,
}

impl fmt::Display for Candidate<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.address, self.device.name)
    }
}

/// How packets of the senders come to an address.
struct Ways<'a> {
    to: &'a Candidate<'a>,
    /// Source address and device of the first sender.
    from: Option<(IpAddr, String)>,
    carry_ssh: bool,
}

/// The only address of a receiver to which all senders have a route, and whose device has the routes back. Devices that carry
/// an ssh session count if there is no other, and IPv6 if there is no IPv4.
///
/// **Caveat** rules that choose a route by source address, mark or port are not asked: probes show where packets arrive.
pub fn address(
    receiver: &PathEnd<'_>,
    senders: &[PathEnd<'_>],
    network: &Network,
) -> Result<(DeviceFacts, Vec<IpAddr>), LabError> {
    let all = candidates(receiver);
    let taken = |found: &Candidate<'_>| {
        up(receiver.alias, found.device).map(|device| (device, vec![found.address]))
    };
    match all.as_slice() {
        [] => return Err(none(receiver)),
        [only] => return taken(only),
        // Their own faults say why nothing can run.
        [first, ..] if senders.is_empty() => return taken(first),
        _ => {}
    }
    let (mut valid, mut refused) = (Vec::new(), Vec::new());
    for candidate in &all {
        match ways(candidate, receiver, senders, network) {
            Ok(ways) => valid.push(ways),
            Err(why) => refused.push(format!("{candidate}: {why}")),
        }
    }
    prefer(&mut valid, |ways| !ways.carry_ssh);
    prefer(&mut valid, |ways| ways.to.address.is_ipv4());
    match valid.as_slice() {
        [only] => return taken(only.to),
        [] => {}
        several => return Err(ambiguous(receiver, several)),
    }
    let mut of_ipv4 = all.iter().filter(|it| it.address.is_ipv4());
    match (of_ipv4.next(), of_ipv4.next()) {
        // What is wrong with it, each sender says of itself.
        (Some(only), None) => taken(only),
        _ => Err(cannot(
            format!(
                "{}: none of its addresses is reached by all its senders: {}",
                receiver.alias,
                refused.join("; ")
            ),
            format!(
                "give both sides addresses of one network, or choose one in an inventory: hosts.{}.addr",
                receiver.alias
            ),
        )),
    }
}

/// The addresses of the receiver's devices, or of its `dev`, that mean something outside of one link.
fn candidates<'a>(receiver: &PathEnd<'a>) -> Vec<Candidate<'a>> {
    let wanted = receiver.entry.dev.as_deref();
    let usable = |device: &&DeviceFacts| match wanted {
        Some(wanted) => device.name == wanted,
        None => device.is_up && !device.addresses.iter().any(IpAddr::is_loopback),
    };
    let all = receiver.devices.iter().filter(usable).flat_map(|device| {
        device.addresses.iter().map(move |address| Candidate { device, address: *address })
    });
    all.filter(|it| !is_of_one_link(it.address)).collect()
}

fn is_of_one_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    }
}

/// How the packets of all senders come to an address, or why those of one do not.
fn ways<'a>(
    to: &'a Candidate<'a>,
    receiver: &PathEnd<'_>,
    senders: &[PathEnd<'_>],
    network: &Network,
) -> Result<Ways<'a>, String> {
    let mut ways = Ways { to, from: None, carry_ssh: receiver.carries_ssh(&to.device.name) };
    for sender in senders {
        let (source, device) = way(to, receiver, sender, network)?;
        ways.carry_ssh |= sender.carries_ssh(&device);
        if ways.from.is_none() {
            ways.from = Some((source, device));
        }
    }
    Ok(ways)
}

/// Source address and device of a sender's packets to an address of the receiver.
fn way(
    to: &Candidate<'_>,
    receiver: &PathEnd<'_>,
    sender: &PathEnd<'_>,
    network: &Network,
) -> Result<(IpAddr, String), String> {
    let alias = sender.alias;
    if sender.devices.iter().any(|device| device.addresses.contains(&to.address)) {
        return Err(format!("{alias} has it too"));
    }
    let asked = |end: &PathEnd<'_>, to: IpAddr| (end.route)(to).map_err(|error| error.to_string());
    let there = asked(sender, to.address)?.ok_or_else(|| format!("{alias} has no route to it"))?;
    if let Some(wanted) = sender.entry.dev.as_ref().filter(|wanted| **wanted != there.device) {
        return Err(format!("{alias} would send by {}, not by {wanted}", there.device));
    }
    if there.via_gateway && network.hops < 2 {
        return Err(format!(
            "{alias} would send to a router, and network.hops is {}",
            network.hops
        ));
    }
    let source = there.source.or_else(|| sender.entry.addr.first().copied());
    let source = source.ok_or_else(|| format!("{alias} has no address towards it"))?;
    match asked(receiver, source)? {
        Some(back) if back.device == to.device.name => Ok((source, there.device)),
        Some(back) => Err(format!("the route back to {alias} leaves by {}", back.device)),
        None => Err(format!("{} has no route back to {alias}", receiver.alias)),
    }
}

/// Leaves only those that are better, if there is one.
fn prefer<T>(all: &mut Vec<T>, is_better: impl Fn(&T) -> bool) {
    if all.iter().any(&is_better) {
        all.retain(&is_better);
    }
}

fn none(receiver: &PathEnd<'_>) -> LabError {
    let alias = receiver.alias;
    let dev = receiver.entry.dev.as_ref();
    let on = dev.map_or_else(String::new, |dev| format!(" on {dev}"));
    cannot(
        format!("{alias} has no address{on}"),
        format!("hosts.{alias}.addr = [\"ADDRESS\"]; it has {}", listed(receiver.devices)),
    )
}

fn ambiguous(receiver: &PathEnd<'_>, several: &[Ways<'_>]) -> LabError {
    let one = |ways: &Ways<'_>| match &ways.from {
        Some((source, device)) => format!("{} from {source} ({device})", ways.to),
        None => ways.to.to_string(),
    };
    let (alias, first) = (receiver.alias, several[0].to);
    let device = &first.device.name;
    let is_alone = several.iter().filter(|ways| ways.to.device.name == *device).count() == 1;
    let or_dev =
        if is_alone { format!(" or hosts.{alias}.dev = \"{device}\"") } else { String::new() };
    cannot(
        format!(
            "{alias} is reached at several addresses: {}",
            several.iter().map(one).collect::<Vec<_>>().join(", ")
        ),
        format!("choose one in an inventory: hosts.{alias}.addr = [\"{}\"]{or_dev}", first.address),
    )
}

#[cfg(test)]
mod tests {
    use rxpath_remote::Inventory;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn device(name: &str, addresses: &[&str]) -> DeviceFacts {
        let addresses = addresses.iter().map(|it| ip(it)).collect();
        DeviceFacts { name: name.into(), addresses, is_up: true, ..DeviceFacts::default() }
    }

    fn devices(all: &[(&str, &[&str])]) -> Vec<DeviceFacts> {
        all.iter().map(|(name, addresses)| device(name, addresses)).collect()
    }

    /// `to`, the device that packets leave by, their source address.
    type Routes = &'static [(&'static str, &'static str, &'static str)];

    /// What a side's host has, which device carries its ssh session, its routes. A device that ends with `!` leads to a router.
    struct Host {
        entry: HostEntry,
        devices: Vec<DeviceFacts>,
        control: Vec<String>,
        routes: Routes,
    }

    fn host(alias: &str, all: &[(&str, &[&str])], control: &[&str], routes: Routes) -> Host {
        Host {
            entry: Inventory::of_two("gen.lab", "sut.lab").unwrap().hosts[alias].clone(),
            devices: devices(all),
            control: control.iter().map(|it| (*it).to_owned()).collect(),
            routes,
        }
    }

    fn end<'a>(alias: &'a str, host: &'a Host) -> PathEnd<'a> {
        let route = move |to: IpAddr| -> Result<Option<RouteFacts>, LabError> {
            let found = host.routes.iter().find(|(known, ..)| ip(known) == to);
            Ok(found.map(|(_, device, source)| RouteFacts {
                device: device.trim_end_matches('!').to_owned(),
                source: Some(ip(source)),
                via_gateway: device.ends_with('!'),
            }))
        };
        PathEnd {
            alias,
            entry: &host.entry,
            devices: &host.devices,
            control: &host.control,
            route: Box::new(route),
        }
    }

    fn chosen(sender: &Host, receiver: &Host, hops: u8) -> Result<String, LabError> {
        let network = Network { hops, ..Network::default() };
        let found = address(&end("sut", receiver), &[end("gen", sender)], &network);
        found.map(|(device, addresses)| format!("{} {addresses:?}", device.name))
    }

    fn refusal(error: LabError) -> (String, String) {
        match error {
            LabError::CannotRun { what, hint } => (what, hint),
            other => panic!("{other}"),
        }
    }

    /// Both hosts have a network for ssh and one for data; Docker runs on both.
    fn sut() -> Host {
        let devices: [(&str, &[&str]); 4] = [
            ("lo", &["127.0.0.1", "::1"]),
            ("eno1", &["192.0.2.2", "fe80::2"]),
            ("ens1", &["198.51.100.2", "2001:db8::2", "fe80::12"]),
            ("docker0", &["172.17.0.1"]),
        ];
        let routes: Routes = &[
            ("192.0.2.1", "eno1", "192.0.2.2"),
            ("198.51.100.1", "ens1", "198.51.100.2"),
            ("2001:db8::1", "ens1", "2001:db8::2"),
        ];
        host("receiver", &devices, &["eno1"], routes)
    }

    fn generator() -> Host {
        let devices: [(&str, &[&str]); 3] = [
            ("eno1", &["192.0.2.1"]),
            ("ens1", &["198.51.100.1", "2001:db8::1"]),
            ("docker0", &["172.17.0.1"]),
        ];
        let routes: Routes = &[
            ("192.0.2.2", "eno1", "192.0.2.1"),
            ("198.51.100.2", "ens1", "198.51.100.1"),
            ("2001:db8::2", "ens1", "2001:db8::1"),
        ];
        host("sender", &devices, &["eno1"], routes)
    }

    #[test]
    fn the_address_is_that_of_the_device_that_does_not_carry_ssh() {
        assert_eq!(chosen(&generator(), &sut(), 1).unwrap(), "ens1 [198.51.100.2]");
        // It is the sender's ssh alone, where the receiver is this machine.
        let here = Host { control: Vec::new(), ..sut() };
        assert_eq!(chosen(&generator(), &here, 1).unwrap(), "ens1 [198.51.100.2]");
    }

    #[test]
    fn the_only_network_is_taken_though_it_carries_ssh() {
        let mut sut = sut();
        sut.devices[2].is_up = false;
        assert_eq!(chosen(&generator(), &sut, 1).unwrap(), "eno1 [192.0.2.2]");
    }

    #[test]
    fn an_address_is_left_out_if_the_route_back_leaves_by_another_device_or_a_router_lies_between()
    {
        // Two devices of one network: the kernel answers by the first one.
        let devices: [(&str, &[&str]); 2] =
            [("ens1", &["198.51.100.2"]), ("ens2", &["198.51.100.3"])];
        let back: Routes = &[("198.51.100.1", "ens1", "198.51.100.2")];
        let sut = host("receiver", &devices, &[], back);
        let there: Routes =
            &[("198.51.100.2", "ens1", "198.51.100.1"), ("198.51.100.3", "ens1", "198.51.100.1")];
        let load = host("sender", &[("ens1", &["198.51.100.1"])], &[], there);
        assert_eq!(chosen(&load, &sut, 1).unwrap(), "ens1 [198.51.100.2]");
        // Behind a router.
        let devices: [(&str, &[&str]); 2] =
            [("ens1", &["198.51.100.2"]), ("ens2", &["203.0.113.3"])];
        let back: Routes = &[("198.51.100.1", "ens2", "203.0.113.3")];
        let sut = host("receiver", &devices, &[], back);
        let there: Routes = &[("203.0.113.3", "ens1!", "198.51.100.1")];
        let load = host("sender", &[("ens1", &["198.51.100.1"])], &[], there);
        let (what, _) = refusal(chosen(&load, &sut, 1).unwrap_err());
        let wanted = "sut: none of its addresses is reached by all its senders: \
                      198.51.100.2 (ens1): gen has no route to it; \
                      203.0.113.3 (ens2): gen would send to a router, and network.hops is 1";
        assert_eq!(what, wanted);
        assert_eq!(chosen(&load, &sut, 2).unwrap(), "ens2 [203.0.113.3]");
    }

    #[test]
    fn of_hosts_without_ipv4_the_address_is_of_ipv6() {
        let (mut load, mut sut) = (generator(), sut());
        for device in load.devices.iter_mut().chain(&mut sut.devices) {
            device.addresses.retain(|it| it.is_ipv6() || device.name == "docker0");
        }
        assert_eq!(chosen(&load, &sut, 1).unwrap(), "ens1 [2001:db8::2]");
    }

    #[test]
    fn two_that_fit_are_named_with_their_devices_and_dev_or_addr_decides() {
        let devices: [(&str, &[&str]); 2] =
            [("ens1", &["198.51.100.2"]), ("ens2", &["203.0.113.2"])];
        let back: Routes =
            &[("198.51.100.1", "ens1", "198.51.100.2"), ("203.0.113.1", "ens2", "203.0.113.2")];
        let mut sut = host("receiver", &devices, &[], back);
        let there: Routes =
            &[("198.51.100.2", "eth1", "198.51.100.1"), ("203.0.113.2", "eth2", "203.0.113.1")];
        let own: [(&str, &[&str]); 2] = [("eth1", &["198.51.100.1"]), ("eth2", &["203.0.113.1"])];
        let mut load = host("sender", &own, &[], there);
        let (what, hint) = refusal(chosen(&load, &sut, 1).unwrap_err());
        let wanted = "sut is reached at several addresses: 198.51.100.2 (ens1) from 198.51.100.1 (eth1), \
                      203.0.113.2 (ens2) from 203.0.113.1 (eth2)";
        assert_eq!(what, wanted);
        let wanted = "choose one in an inventory: hosts.sut.addr = [\"198.51.100.2\"] \
                      or hosts.sut.dev = \"ens1\"";
        assert_eq!(hint, wanted);
        load.entry.dev = Some("eth2".into());
        assert_eq!(chosen(&load, &sut, 1).unwrap(), "ens2 [203.0.113.2]", "the sender's device");
        load.entry.dev = None;
        sut.entry.dev = Some("ens2".into());
        assert_eq!(chosen(&load, &sut, 1).unwrap(), "ens2 [203.0.113.2]");
    }
}
