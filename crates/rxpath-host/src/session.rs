//! Over which devices the ssh session runs that this process was started from.
//!
//! The question it answers: *which link must not be taken down, or the person at the other end is cut off?* The
//! environment says it where it is kept; `sudo` and `su` drop it, so the processes above are asked too.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use crate::netlink::{Netlink, QueueAsk};
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
}

/// `SSH_CONNECTION`: client address and port, server address and port.
///
/// **Source** ssh(1), ENVIRONMENT.
pub fn parse(text: &str) -> Option<(SocketAddr, SocketAddr)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [client, client_port, server, server_port] = words.as_slice() else { return None };
    // A link-local address carries its zone: fe80::1%eth0.
    let address = |ip: &str, port: &str| {
        let ip: IpAddr = ip.split('%').next()?.parse().ok()?;
        Some(SocketAddr::new(ip.to_canonical(), port.parse().ok()?))
    };
    Some((address(client, client_port)?, address(server, server_port)?))
}

/// The ssh session that this process belongs to, if there is one.
pub fn current(root: &Root) -> Result<Option<Session>, HostError> {
    let own = std::env::var("SSH_CONNECTION").ok();
    let Some((client, server)) = own.as_deref().and_then(parse).or_else(|| above(root)) else {
        return Ok(None);
    };
    let mut netlink = Netlink::route()?;
    let links = netlink.links()?;
    let by_index = |index: u32| links.iter().find(|link| link.index == index);
    let mut devices = BTreeSet::new();
    if let Some(link) = netlink.device_towards(client.ip())?.and_then(by_index) {
        devices.insert(link.name.clone());
    }
    for name in devices.clone() {
        below(root, &name, &mut devices);
    }
    Ok(Some(Session { client, server, alive: is_alive(client, server), devices }))
}

/// A device and all that it stands on: the ports of a bond or bridge, the device of a VLAN.
fn below(root: &Root, name: &str, found: &mut BTreeSet<String>) {
    let entries = root.list(&format!("/sys/class/net/{name}")).unwrap_or_default();
    for lower in entries.iter().filter_map(|entry| entry.strip_prefix("lower_")) {
        if found.insert(lower.to_owned()) {
            below(root, lower, found);
        }
    }
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

/// The session in the environment of a process above this one.
fn above(root: &Root) -> Option<(SocketAddr, SocketAddr)> {
    let mut pid = std::os::unix::process::parent_id();
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
        let stat = root.text(&format!("/proc/{pid}/stat")).ok()?;
        pid = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_read() {
        let (client, server) = parse("203.0.113.9 50022 192.0.2.1 22").unwrap();
        assert_eq!((client.port(), server.to_string().as_str()), (50022, "192.0.2.1:22"));
        let (client, _) = parse("fe80::1%eth0 1 fe80::2 22").unwrap();
        assert_eq!(client.ip().to_string(), "fe80::1");
        let (client, _) = parse("::ffff:203.0.113.9 1 ::ffff:192.0.2.1 22").unwrap();
        assert!(client.is_ipv4(), "a mapped address is routed as IPv4");
        for text in ["", "a b c d", "1.2.3.4 1 5.6.7.8", "1.2.3.4 70000 5.6.7.8 22"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn ports_below_a_bridge_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["br0/lower_bond0", "bond0/lower_eth0", "bond0/lower_eth1", "eth0/x"] {
            std::fs::create_dir_all(dir.path().join("sys/class/net").join(path)).unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        let mut found = BTreeSet::from(["br0".to_owned()]);
        below(&root, "br0", &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["bond0", "br0", "eth0", "eth1"]);
    }
}
