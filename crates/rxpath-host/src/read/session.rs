//! Over which devices the ssh session runs that this process was started from.
//!
//! The question it answers: *which link must not be taken down, or the person at the other end is cut off?* The
//! environment says it where it is kept; `sudo` and `su` drop it, so the processes above are asked too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use rxpath_core::IntoMap;

use crate::netlink::Netlink;
use crate::read::netlink::{NetworkLink, QueueAsk};
use crate::read::procfs::task;
use crate::read::sysfs::device::stacked;
use crate::{HostError, Root};

/// More processes above than any login has.
const ANCESTORS_MAX: u32 = 64;

/// An ssh session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The other end.
    pub client: SocketAddr,
    /// This end.
    pub server: SocketAddr,
    /// Whether a connection between the two is there now.
    pub alive: bool,
    /// The devices that carry it: the one that packets to the client leave by, and all below it.
    pub devices: BTreeSet<String>,
    /// The device of the client's zone, for a link-local address.
    zone: Option<String>,
}

impl Session {
    /// Why packets to the client can't leave this host as they did when the session was looked up; `None` when they
    /// can.
    ///
    /// # Errors
    /// If the route can't be looked up.
    pub fn cut(
        &self,
        route: &mut Netlink,
        links: &[NetworkLink],
    ) -> Result<Option<String>, HostError> {
        let client = self.client.ip();
        let way = if let Some(zone) = &self.zone {
            links.iter().find(|link| link.name == *zone)
        } else {
            let index = route.device_towards(client)?;
            links.iter().find(|link| Some(link.index) == index)
        };
        Ok(match way {
            None => Some(format!("there is no route to {client}")),
            Some(link) if link.carrier == Some(false) => {
                Some(format!("{} towards {client} has no link", link.name))
            }
            Some(link) if !self.devices.contains(&link.name) => {
                Some(format!("the route to {client} changed to {}", link.name))
            }
            Some(_) => None,
        })
    }
}

/// Both ends as the environment names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshConnection {
    /// The other end.
    pub client: SocketAddr,
    /// This end.
    pub server: SocketAddr,
    /// The device that a link-local address of the client is reached by: its zone, a name or an index.
    pub zone: Option<String>,
}

/// `SSH_CONNECTION`: client address and port, server address and port.
///
/// **Source** ssh(1), ENVIRONMENT.
pub fn parse(text: &str) -> Option<SshConnection> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [client, client_port, server, server_port] = words.as_slice() else { return None };
    // A link-local address carries its zone: fe80::1%eth0.
    let address = |ip: &str, port: &str| {
        let ip: IpAddr = ip.split('%').next()?.parse().ok()?;
        Some(SocketAddr::new(ip.to_canonical(), port.parse().ok()?))
    };
    let zone = client.split_once('%').map(|(_, zone)| zone.to_owned());
    Some(SshConnection {
        client: address(client, client_port)?,
        server: address(server, server_port)?,
        zone,
    })
}

/// The ssh session that this process belongs to, if there is one.
pub fn current(root: &Root) -> Result<Option<Session>, HostError> {
    let own = std::env::var("SSH_CONNECTION").ok();
    let above = || above(root, std::os::unix::process::parent_id());
    let Some(ends) = own.as_deref().and_then(parse).or_else(above) else { return Ok(None) };
    let mut netlink = Netlink::route()?;
    let links = netlink.links()?;
    let SshConnection { client, server, zone } = ends;
    let names: BTreeMap<u32, &str> =
        links.iter().map(|link| (link.index, link.name.as_str())).into_map();
    // A route lookup without the zone takes any device for a link-local address.
    let zone = zone.as_deref().and_then(|zone| by_zone(zone, &names)).map(str::to_owned);
    let device = match &zone {
        Some(device) => Some(device.as_str()),
        None => netlink.device_towards(client.ip())?.and_then(|index| names.get(&index).copied()),
    };
    // All that it stands on: the ports of a bond or bridge, the device of a VLAN.
    let below = device.map(|name| stacked(root, name, "lower_")).unwrap_or_default();
    let devices = device.map(str::to_owned).into_iter().chain(below).collect();
    Ok(Some(Session { client, server, alive: is_alive(client, server), devices, zone }))
}

/// The device of a zone: its name, or its index (RFC 4007, section 11).
fn by_zone<'a>(zone: &str, names: &BTreeMap<u32, &'a str>) -> Option<&'a str> {
    let by_name = names.values().copied().find(|name| *name == zone);
    by_name.or_else(|| names.get(&zone.parse().ok()?).copied())
}

fn is_alive(client: SocketAddr, server: SocketAddr) -> bool {
    let ask =
        |v6| QueueAsk { tcp: true, v6, local_port: server.port(), remote_port: client.port() };
    let Ok(mut netlink) = Netlink::sock_diag() else { return false };
    [false, true].into_iter().any(|v6| {
        let sockets = netlink.queues(ask(v6)).unwrap_or_default();
        sockets.iter().any(|socket| socket.remote.ip().to_canonical() == client.ip())
    })
}

/// The session in the environment of process `pid` or one above it.
fn above(root: &Root, mut pid: u32) -> Option<SshConnection> {
    for _ in 0..ANCESTORS_MAX {
        if pid <= 1 {
            return None;
        }
        let environment = root.bytes(&format!("/proc/{pid}/environ")).unwrap_or_default();
        let found = environment
            .split(|byte| *byte == 0)
            .filter_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix("SSH_CONNECTION="))
            .find_map(parse);
        if found.is_some() {
            return found;
        }
        pid = task::read(root, pid.cast_signed(), None).ok()?.ppid.cast_unsigned();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_read() {
        let ends = parse("203.0.113.9 50022 192.0.2.1 22").unwrap();
        assert_eq!((ends.client.port(), ends.server.to_string().as_str()), (50022, "192.0.2.1:22"));
        assert_eq!(ends.zone, None);
        let ends = parse("fe80::1%eth0 1 fe80::2 22").unwrap();
        assert_eq!(
            (ends.client.ip().to_string().as_str(), ends.zone.as_deref()),
            ("fe80::1", Some("eth0"))
        );
        let ends = parse("::ffff:203.0.113.9 1 ::ffff:192.0.2.1 22").unwrap();
        assert!(ends.client.is_ipv4(), "a mapped address is routed as IPv4");
        for text in ["", "a b c d", "1.2.3.4 1 5.6.7.8", "1.2.3.4 70000 5.6.7.8 22"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_zone_names_the_device() {
        let names = BTreeMap::from([(2, "eth0"), (3, "eth1"), (7, "3")]);
        assert_eq!(by_zone("eth1", &names), Some("eth1"));
        assert_eq!(by_zone("2", &names), Some("eth0"));
        assert_eq!(by_zone("3", &names), Some("3"), "a name comes first");
        assert_eq!(by_zone("gone", &names), None);
    }

    #[test]
    fn a_process_by_an_odd_name_does_not_end_the_search() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, environ) in [(50, ""), (40, "SSH_CONNECTION=192.0.2.9 1 192.0.2.1 22\0")] {
            let place = dir.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("environ"), environ).unwrap();
            let stat = [b"50 (\xff)\xfe) S 40", " 0".repeat(48).as_bytes()].concat();
            std::fs::write(place.join("stat"), stat).unwrap();
        }
        let ends = above(&Root::tree(dir.path()).unwrap(), 50).unwrap();
        assert_eq!(ends.client.to_string(), "192.0.2.9:1");
    }
}
