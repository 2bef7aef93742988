//! An IPv6 address with the interface that a link-local one needs: `fe80::1%eth0`.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// The address of `fe80::1`, `fe80::1%eth0` or `fe80::1%2` with a port.
///
/// **Errors** as text: not an IPv6 address, or no such interface in this network namespace.
pub(crate) fn address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let (ip, zone) = text.split_once('%').map_or((text, None), |(ip, zone)| (ip, Some(zone)));
    let ip: Ipv6Addr = ip.parse().map_err(|_| format!("`{ip}` is not an IPv6 address"))?;
    let scope = match zone {
        None => 0,
        Some(zone) => index(zone).ok_or_else(|| {
            format!("this host has no interface `{zone}`; `ip link` lists its interfaces")
        })?,
    };
    Ok(SocketAddrV6::new(ip, port, 0, scope).into())
}

/// What a link-local address without its interface lacks, with the address and port as they were typed.
pub(crate) fn missing(addr: SocketAddr) -> String {
    let (ip, port) = (addr.ip(), addr.port());
    format!(
        "link-local addresses need their interface: [{ip}%2]:{port}, where 2 stands for the number of the interface \
         (`ip link` lists them; a name is taken too)"
    )
}

/// An interface by its name, or by its number.
fn index(zone: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(zone)
        .ok()
        .or_else(|| zone.parse().ok().filter(|index| *index > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_the_address_and_port_that_were_typed() {
        let hint = missing("[fe80::1]:4397".parse().unwrap());
        assert!(hint.contains("[fe80::1%2]:4397, where 2 stands for the number of the"), "{hint}");
    }
}
