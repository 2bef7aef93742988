//! Addresses as users type them: `IP:PORT`, `[v6]:PORT`, `[fe80::1%eth0]:PORT`, `HOST:PORT`.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

use crate::zone;

/// The address that the text stands for. For a host name: the first address from the resolver.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(addr) = text.parse() {
        return Ok(addr);
    }
    if let Ok(v6) = text.parse::<Ipv6Addr>() {
        let with_port = text.rsplit_once(':').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok());
        let would = with_port
            .map_or_else(|| format!("[{v6}]:4321"), |(host, port)| format!("[{host}]:{port}"));
        return Err(format!("an IPv6 address stands in brackets, with its port behind: {would}"));
    }
    let (host, port) = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.starts_with('[') || host.ends_with(']'))
        .ok_or_else(|| format!("the port is missing: {text}:4321"))?;
    let port: u16 =
        port.parse().map_err(|_| format!("`{port}` is no port: a number from 0 to 65535"))?;
    if host.is_empty() {
        return Err(format!("the host is missing: 127.0.0.1:{port}"));
    }
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return zone::address(inner, port);
    }
    if host.contains(':') {
        return Err(format!("an IPv6 address stands in brackets: [{host}]:{port}"));
    }
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|error| format!("`{host}` has no address: {error}"))?;
    found.into_iter().next().ok_or_else(|| format!("`{host}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_taken() {
        assert_eq!(address("127.0.0.1:9").unwrap().to_string(), "127.0.0.1:9");
        assert_eq!(address("[::1]:9").unwrap().to_string(), "[::1]:9");
        let SocketAddr::V6(zoned) = address("[fe80::1%lo]:4321").unwrap() else { panic!("no v6") };
        assert_eq!((zoned.port(), zoned.scope_id()), (4321, 1));
        assert_eq!(address("[fe80::1%lo]:4321"), address("[fe80::1%1]:4321"));
        let local = address("localhost:80").unwrap();
        assert!(local.ip().is_loopback() && local.port() == 80, "{local}");
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (text, says) in [
            ("127.0.0.1", "the port is missing: 127.0.0.1:4321"),
            ("localhost", "the port is missing: localhost:4321"),
            ("[::1]", "the port is missing: [::1]:4321"),
            ("::1", "[::1]:4321"),
            ("::1:4321", "[::1]:4321"),
            ("fe80::1%lo:9", "[fe80::1%lo]:9"),
            ("127.0.0.1:70000", "`70000` is no port: a number from 0 to 65535"),
            ("127.0.0.1:http", "`http` is no port"),
            (":4321", "the host is missing: 127.0.0.1:4321"),
            ("[fe80::1%no-such-link]:9", "this host has no interface `no-such-link`"),
            ("[1.2.3.4]:9", "`1.2.3.4` is not an IPv6 address"),
            ("no-such-host.invalid:9", "`no-such-host.invalid` has no address"),
        ] {
            let error = address(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
