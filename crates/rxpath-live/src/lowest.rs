//! Which devices a packet comes in through first.
//!
//! A packet that comes through a stack of devices is counted by each of them. What arrived is counted at the lowest
//! ones: a bridge, bond or VRF repeats what its ports count, a VLAN or macvlan what the device below counts, a tunnel
//! what came in its packets through another device.

use std::collections::BTreeSet;

use rxpath_core::SortFew;
use rxpath_host::read::netlink::NetworkLink;

/// Devices whose `IFLA_LINK` is the other end of a cable and no device below.
const CABLES: [&str; 3] = ["veth", "netkit", "vxcan"];
/// Devices whose packets came in inside of others, through a device that is counted (drivers/net/vxlan, net/ipv4/ip_gre.c
/// and others); `ifb` takes what another device received (drivers/net/ifb.c).
const INSIDE: [&str; 17] = [
    "vxlan",
    "geneve",
    "bareudp",
    "gtp",
    "wireguard",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "erspan",
    "ip6erspan",
    "ipip",
    "sit",
    "ip6tnl",
    "vti",
    "xfrm",
    "ifb",
];

/// Devices that repeat what their ports count, and have nothing to count without one.
const OF_PORTS: [&str; 4] = ["bridge", "bond", "team", "vrf"];

/// Indices of the devices that repeat no other device of this namespace, loopback left out.
pub(crate) fn lowest(links: &[NetworkLink]) -> BTreeSet<u32> {
    let here: BTreeSet<u32> = links.iter().map(|link| link.index).collect();
    let masters: BTreeSet<u32> = links.iter().filter_map(|link| link.master).collect();
    let inside = |link: &&NetworkLink| INSIDE.contains(&link.kind.as_deref().unwrap_or_default());
    let stacked = |link: &&NetworkLink| {
        let kind = link.kind.as_deref().unwrap_or_default();
        let over = link.peer_index.filter(|_| !link.peer_elsewhere && !CABLES.contains(&kind));
        masters.contains(&link.index)
            || OF_PORTS.contains(&kind)
            || over.is_some_and(|below| below != link.index && here.contains(&below))
    };
    let lowest: Vec<&NetworkLink> =
        links.iter().filter(|link| !is_loopback(link) && !stacked(link)).collect();
    // Moved into a namespace of its own, a tunnel is all there is.
    let tunnels_only = lowest.iter().all(inside);
    lowest.into_iter().filter(|link| tunnels_only || !inside(link)).map(|link| link.index).collect()
}

/// Devices that have others below them which carry all their packets.
const OVER_OTHERS: [&str; 3] = ["bond", "team", "vlan"];

/// Whether packets of a device of this kind are those of devices below it.
pub fn is_over_others(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| OVER_OTHERS.contains(&kind))
}

/// The devices through which a device's packets really go, by their index: the members of a bond or team, what a VLAN lies
/// over, and what is below those. Nothing for other devices, and where what is below lies in another namespace.
pub fn below<'a>(links: &'a [NetworkLink], name: &str) -> Vec<&'a NetworkLink> {
    let mut open: Vec<&NetworkLink> = links.iter().filter(|link| link.name == name).collect();
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    while let Some(link) = open.pop() {
        if !seen.insert(link.index) {
            continue;
        }
        let over = link.peer_index.filter(|_| !link.peer_elsewhere);
        let carries = |other: &&NetworkLink| match link.kind.as_deref() {
            Some("vlan") => over == Some(other.index),
            kind if is_over_others(kind) => other.master == Some(link.index),
            _ => false,
        };
        let next: Vec<&NetworkLink> = links.iter().filter(carries).collect();
        if next.is_empty() {
            found.push(link);
        }
        open.extend(next);
    }
    found.retain(|link| link.name != name);
    found.sort_few_by_key(|link| link.index);
    found
}

/// Whether it has `IFF_LOOPBACK`.
pub(crate) fn is_loopback(link: &NetworkLink) -> bool {
    link.flags & nix::net::if_::InterfaceFlags::IFF_LOOPBACK.bits() as u32 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: u32 = nix::net::if_::InterfaceFlags::IFF_LOOPBACK.bits() as u32;

    fn link(index: u32, kind: Option<&str>) -> NetworkLink {
        NetworkLink {
            index,
            name: format!("dev{index}"),
            kind: kind.map(str::to_owned),
            ..NetworkLink::default()
        }
    }

    #[test]
    fn packets_of_a_vlan_on_a_bond_go_through_the_members() {
        let slave = |index| NetworkLink { master: Some(10), ..link(index, None) };
        let vlan =
            |index, below| NetworkLink { peer_index: Some(below), ..link(index, Some("vlan")) };
        let links = [
            slave(3),
            slave(2),
            link(10, Some("bond")),
            vlan(11, 10),
            vlan(12, 4),
            link(4, None),
            NetworkLink { peer_elsewhere: true, ..vlan(13, 4) },
            link(14, Some("bond")),
            // It lies over itself, as no kernel would have it.
            vlan(15, 15),
        ];
        let of = |name: &str| -> Vec<u32> {
            below(&links, name).into_iter().map(|link| link.index).collect()
        };
        assert_eq!((of("dev11"), of("dev10")), (vec![2, 3], vec![2, 3]));
        assert_eq!(of("dev12"), [4]);
        for alone in ["dev4", "dev13", "dev14", "dev15", "none"] {
            assert!(of(alone).is_empty(), "{alone}");
        }
    }

    #[test]
    fn a_device_over_another_one_is_not_counted_again() {
        let slave = |index| NetworkLink { master: Some(10), ..link(index, None) };
        let vlan =
            |index, below| NetworkLink { peer_index: Some(below), ..link(index, Some("vlan")) };
        let links = [
            slave(2),
            slave(3),
            link(10, Some("bond")),
            vlan(11, 10),
            // A macvlan whose device below lies in another namespace is the lowest here, whatever its number.
            NetworkLink { peer_index: Some(2), peer_elsewhere: true, ..link(12, Some("macvlan")) },
            // Both ends of a veth pair.
            NetworkLink { peer_index: Some(14), ..link(13, Some("veth")) },
            NetworkLink { peer_index: Some(13), master: Some(15), ..link(14, Some("veth")) },
            link(15, Some("bridge")),
            link(16, Some("wireguard")),
            // Another name for itself: no device below.
            NetworkLink { peer_index: Some(17), ..link(17, Some("dummy")) },
            // Of no ports: what it has is this host's own.
            link(18, Some("bridge")),
            NetworkLink { flags: LOOPBACK, ..link(1, None) },
        ];
        assert_eq!(lowest(&links), [2, 3, 12, 13, 14, 17].into());
        assert_eq!(lowest(&links[8..9]), [16].into(), "alone in its namespace");
    }
}
