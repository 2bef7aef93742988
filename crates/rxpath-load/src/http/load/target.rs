//! From the URL to an address that accepts connections.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::http::load::url::Url;
use crate::zone;

/// How long the first connection may take.
const REACH_MS: u64 = 5_000;
/// What helps where all local ports are in use.
pub(super) const PORTS_CURE: &str = "keep connections alive, use fewer connections, another --source address, or a wider net.ipv4.ip_local_port_range";

/// All addresses of the host, in the resolver's order.
pub(super) fn resolve(url: &Url) -> Result<Vec<SocketAddr>, LoadError> {
    // An address needs no resolver; a missing zone gets our own error.
    if url.host.contains(':') {
        let addr = zone::address(&url.host, url.port);
        return addr.map(|addr| vec![addr]).map_err(|why| LoadError::usage(why, ""));
    }
    let refused = |source: io::Error| LoadError::Address {
        op: "resolve",
        addr: url.host.clone(),
        source,
        hint: format!("`getent ahosts {}` asks the same resolver", url.host),
    };
    let mut addrs: Vec<SocketAddr> =
        (url.host.as_str(), url.port).to_socket_addrs().map_err(refused)?.collect();
    addrs.dedup();
    if addrs.is_empty() {
        let none = io::Error::new(ErrorKind::NotFound, "the name resolves to no address");
        return Err(refused(none));
    }
    Ok(addrs)
}

/// The first of the addresses that accepts a connection.
pub(super) fn reach(addrs: &[SocketAddr], source: Option<IpAddr>) -> Result<SocketAddr, LoadError> {
    let mut first = None;
    for addr in addrs {
        if source.is_some_and(|source| source.is_ipv4() != addr.is_ipv4()) {
            continue;
        }
        let reached = Socket::tcp_from(*addr, source)
            .and_then(|socket| socket.connect_within(*addr, REACH_MS));
        match reached {
            Ok(()) => return Ok(*addr),
            Err(error) => first = first.or(Some((*addr, error))),
        }
    }
    let Some((addr, error)) = first else {
        let what = format!("--source {}: the host has no address of this family", said(source));
        let known: Vec<_> = addrs.iter().map(ToString::to_string).collect();
        return Err(LoadError::usage(what, format!("the host has {}", known.join(", "))));
    };
    Err(refusal(addr, source, error, addrs.len()))
}

fn said(source: Option<IpAddr>) -> String {
    source.map_or_else(String::new, |source| source.to_string())
}

fn refusal(addr: SocketAddr, source: Option<IpAddr>, error: io::Error, addrs: usize) -> LoadError {
    let hint = match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => {
            format!("no server listens on port {} there: start it first", addr.port())
        }
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            format!("no route to it: `ip route get {}` shows the kernel's route lookup", addr.ip())
        }
        Some(libc::ETIMEDOUT) => {
            "no answer within 5 s: a firewall that drops, or a host that is down".into()
        }
        Some(libc::EADDRNOTAVAIL) if source.is_some() => {
            format!(
                "{} is not an address of this host: `ip address` lists its addresses",
                said(source)
            )
        }
        Some(libc::EADDRNOTAVAIL) => PORTS_CURE.into(),
        Some(libc::EINVAL) if addr.is_ipv6() => {
            format!(
                "link-local addresses need their interface: http://[{}%25eth0]:{}/, where eth0 stands for its name",
                addr.ip(),
                addr.port()
            )
        }
        Some(libc::EACCES | libc::EPERM) => "a firewall of this host refuses it".into(),
        _ => String::new(),
    };
    let addr = match addrs {
        1 => addr.to_string(),
        n => format!("{addr} (the first of {n} addresses, none accepted a connection)"),
    };
    LoadError::Address { op: "connect", addr, source: error, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_server_needs_its_interface() {
        let invalid = io::Error::from_raw_os_error(libc::EINVAL);
        let error = refusal("[fe80::1]:4397".parse().unwrap(), None, invalid, 1);
        assert!(error.hint().unwrap().contains("http://[fe80::1%25eth0]:4397/"), "{error}");
    }
}
