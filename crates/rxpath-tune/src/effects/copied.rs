//! Sysctls whose value the kernel copies to others.
//!
//! The question it answers: *which other sysctls does this write set?* So that they come back with it.

use rxpath_host::{Group, Root, Target};

/// Of `net.ipv6.conf.all`, those that are written to every device; the others stand next to the devices' own.
///
/// **Source** net/ipv6/addrconf.c (6.18): `addrconf_fixup_forwarding`, `addrconf_fixup_linkdown`,
/// `addrconf_sysctl_addr_gen_mode`.
const FROM_ALL_IPV6: [&str; 3] = ["forwarding", "ignore_routes_with_linkdown", "addr_gen_mode"];

/// The settings that a write of this sysctl takes along.
pub(super) fn copied(key: &str, root: &Root) -> Vec<Target> {
    let key = key.replace('.', "/");
    let parts: Vec<&str> = key.split('/').collect();
    match parts.as_slice() {
        ["net", "ipv4", "ip_forward"] | ["net", "ipv4", "conf", "all", "forwarding"] => {
            forwarding(root)
        }
        ["net", "ipv6", "conf", "all", name] if FROM_ALL_IPV6.contains(name) => {
            of_each(root, ("ipv6", "conf"), name)
        }
        // One value in two units (net/ipv6/route.c `ipv6_route_table_template`).
        ["net", "ipv6", "route", "gc_min_interval"] => {
            vec![sysctl("net/ipv6/route/gc_min_interval_ms".into())]
        }
        // Devices follow the default until somebody writes theirs (net/ipv4/devinet.c `devinet_copy_dflt_conf`).
        ["net", "ipv4", "conf", "default", name] => of_each(root, ("ipv4", "conf"), name),
        // The same for neighbours (net/core/neighbour.c `neigh_copy_dflt_parms`).
        ["net", family, "neigh", "default", name] => same_value(name)
            .into_iter()
            .flat_map(|name| of_each(root, (family, "neigh"), name))
            .collect(),
        ["net", family, "neigh", dev, name] => same_value(name)
            .into_iter()
            .filter(|other| *other != *name)
            .map(|other| sysctl(format!("net/{family}/neigh/{dev}/{other}")))
            .collect(),
        _ => Vec::new(),
    }
}

/// Names of one value in two units, of which the coarser may read as before when the finer does not.
///
/// **Source** net/core/neighbour.c `neigh_sysctl_template` (6.18).
const SAME_VALUE: [[&str; 2]; 3] = [
    ["retrans_time", "retrans_time_ms"],
    ["base_reachable_time", "base_reachable_time_ms"],
    ["unres_qlen", "unres_qlen_bytes"],
];

/// All names of a neighbour's value.
fn same_value(name: &str) -> Vec<&str> {
    let same = SAME_VALUE.iter().find(|names| names.contains(&name));
    same.map_or_else(|| vec![name], |names| names.to_vec())
}

/// Forwarding is copied to every device, takes LRO off them, and sets whether redirects are believed.
///
/// **Source** net/ipv4/devinet.c `inet_forward_change`.
fn forwarding(root: &Root) -> Vec<Target> {
    let mut all = of_each(root, ("ipv4", "conf"), "forwarding");
    all.push(sysctl("net/ipv4/conf/all/accept_redirects".into()));
    let devices = root.list("/proc/sys/net/ipv4/conf").unwrap_or_default();
    let real = devices.into_iter().filter(|dev| !matches!(dev.as_str(), "all" | "default" | "lo"));
    all.extend(real.map(|dev| Target::Group { dev, group: Group::Features }));
    all
}

/// The sysctl of this name of every device, and of `all` and `default`.
fn of_each(root: &Root, (family, table): (&str, &str), name: &str) -> Vec<Target> {
    let devices = root.list(&format!("/proc/sys/net/{family}/{table}")).unwrap_or_default();
    let keys = devices.into_iter().map(|dev| format!("net/{family}/{table}/{dev}/{name}"));
    keys.map(sysctl).collect()
}

/// With dots, unless a device's name has one.
fn sysctl(key: String) -> Target {
    Target::Sysctl { key: if key.contains('.') { key } else { key.replace('/', ".") } }
}
