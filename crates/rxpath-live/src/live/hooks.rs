//! Hooks in front of IP that may drop without a counter that is read here: XDP, tc, netfilter's ingress.
//!
//! Where there is none nothing is missed; where that is not known, a warning says so.

use std::collections::BTreeMap;

use nix::errno::Errno;
use rxpath_core::IntoMap;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::ioctl::driver_stats;
use rxpath_host::read::netlink::netfilter::Family;
use rxpath_host::read::netlink::nft_tables::is_loaded;
use rxpath_host::read::netlink::{DeviceQdisc, NetworkLink, XdpMode};
use rxpath_host::read::tcx;
use rxpath_host::{HostError, Root};

/// What may be lost in them unseen; `reasons` when the kernel's drop reasons are watched, which name tc's drops.
pub(crate) fn unseen(root: &Root, links: &[NetworkLink], reasons: bool) -> Vec<String> {
    let up = up(links);
    let mut all: Vec<String> = xdp(&up).into_iter().collect();
    if !reasons {
        all.extend(filters(root, &up));
        all.extend(tunnels(&up));
    }
    all
}

/// Everything that hangs in front of IP and may drop, in words; nothing where there is nothing.
pub fn attached(root: &Root, links: &[NetworkLink]) -> Vec<String> {
    let up = up(links);
    let with = up.iter().filter(|link| !link.xdp.is_empty());
    let mut all: Vec<String> = with.map(|link| xdp_program(&link.name)).collect();
    all.extend(filters(root, &up));
    all
}

fn up(links: &[NetworkLink]) -> Vec<&NetworkLink> {
    links.iter().filter(|link| link.is_up() && link.name != "lo").collect()
}

fn filters(root: &Root, up: &[&NetworkLink]) -> impl Iterator<Item = String> {
    let qdiscs = Netlink::route().and_then(|mut route| route.qdiscs());
    [tc(up, qdiscs), netfilter(root, up), bridge(root, up)].into_iter().flatten()
}

/// Names of devices in a text; `None` where there is no device.
pub(super) fn joined<'a>(links: impl Iterator<Item = &'a NetworkLink>) -> Option<String> {
    let names: Vec<&str> = links.map(|link| link.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A device's XDP program among the words of [`attached`].
pub fn xdp_program(device: &str) -> String {
    format!("what the XDP program of {device} drops")
}

/// Tunnels whose outer packets end at a socket of the kernel's: UDP counts these as delivered, whatever becomes of them.
const TUNNELS: [&str; 5] = ["vxlan", "geneve", "wireguard", "gtp", "bareudp"];

/// What a tunnel refuses (another network id, an unknown key) has a reason, and no counter of UDP's.
fn tunnels(links: &[&NetworkLink]) -> Option<String> {
    let is_one =
        |link: &&NetworkLink| link.kind.as_deref().is_some_and(|kind| TUNNELS.contains(&kind));
    let names = joined(links.iter().copied().filter(is_one))?;
    Some(format!("what tunnels ({names}) refuse: UDP counts their outer packets as delivered"))
}

/// What drivers count of their XDP programs' drops, of devices that have one (veth `rx_queue_N_xdp_drops`, igb and ice
/// `xdp_drop`, mlx5 `rx_xdp_drop`): programs in generic mode are counted by none.
pub(super) fn xdp_drops(links: &[NetworkLink]) -> BTreeMap<String, u64> {
    let with = links.iter().filter(|link| link.is_up() && !link.xdp.is_empty());
    with.filter_map(|link| {
        let counted = driver_stats(&link.name).ok()?;
        let mut own = counted.iter().filter(|(name, _)| name.contains("xdp_drop")).peekable();
        own.peek()?;
        // Some have a sum next to its parts: either is all of it.
        let (parts, sums): (Vec<_>, Vec<_>) =
            own.partition(|(name, _)| name.contains(|digit: char| digit.is_ascii_digit()));
        let add = |list: Vec<&(String, u64)>| list.into_iter().map(|(_, count)| count).sum::<u64>();
        Some((link.name.clone(), add(parts).max(add(sums))))
    })
    .into_map()
}

/// What XDP programs dropped between two readings of that, by device.
pub(super) fn dropped([before, now]: [&BTreeMap<String, u64>; 2]) -> Vec<(String, u64)> {
    let moved = now
        .iter()
        .filter_map(|(dev, count)| Some((dev.clone(), count.saturating_sub(*before.get(dev)?))));
    moved.filter(|(_, packets)| *packets > 0).collect()
}

fn xdp(links: &[&NetworkLink]) -> Option<String> {
    let counted = |link: &NetworkLink| {
        link.xdp.iter().all(|program| program.mode == XdpMode::Native)
            && driver_stats(&link.name)
                .is_ok_and(|all| all.iter().any(|(name, _)| name.contains("xdp_drop")))
    };
    let uncounted = |link: &&NetworkLink| !link.xdp.is_empty() && !counted(link);
    let names = joined(links.iter().copied().filter(uncounted))?;
    Some(format!("{}: no counter that is read has it", xdp_program(&names)))
}

fn tc(links: &[&NetworkLink], qdiscs: Result<Vec<DeviceQdisc>, HostError>) -> Option<String> {
    let qdiscs = match qdiscs {
        Ok(qdiscs) => qdiscs,
        // A kernel without tc has no such request.
        Err(HostError::Kernel { errno, .. }) if errno == Errno::EOPNOTSUPP as i32 => Vec::new(),
        // Any of them may have a filter.
        Err(error) => {
            return (!links.is_empty())
                .then(|| format!("what filters at tc ingress drop: {error}"));
        }
    };
    let hooked = |link: &NetworkLink| {
        let own = qdiscs.iter().filter(|qdisc| qdisc.index == link.index);
        own.into_iter().any(|qdisc| ["ingress", "clsact"].contains(&qdisc.kind.as_str()))
    };
    let mut with: Vec<&str> =
        links.iter().filter(|link| hooked(link)).map(|link| link.name.as_str()).collect();
    for link in links {
        match tcx::read(link.index) {
            Ok(programs) if programs.ingress.is_empty() => {}
            Ok(_) => with.push(&link.name),
            // Kernels without it have nothing attached.
            Err(HostError::Unsupported { .. } | HostError::Missing { .. }) => {}
            Err(error) => return Some(format!("what programs at tc ingress drop: {error}")),
        }
    }
    with.dedup();
    (!with.is_empty()).then(|| format!("what filters at tc ingress of {} drop", with.join(", ")))
}

/// Rules of the bridge family act on what bridges pass up, and IP's counters have none of it.
fn bridge(root: &Root, links: &[&NetworkLink]) -> Option<String> {
    let is_one = |link: &&NetworkLink| link.kind.as_deref() == Some("bridge");
    let names = joined(links.iter().copied().filter(is_one))?;
    if !is_loaded(root).unwrap_or(true) {
        return None;
    }
    let what = format!("what rules of the bridge family drop on {names}");
    match Netlink::netfilter().and_then(|mut netlink| netlink.nft_tables()) {
        Ok(tables) => {
            tables.iter().any(|t| t.family == "bridge" && t.objects_count > 0).then_some(what)
        }
        Err(HostError::Unsupported { .. }) => None,
        Err(error) => Some(format!("{what}: {error}")),
    }
}

fn netfilter(root: &Root, links: &[&NetworkLink]) -> Option<String> {
    let what = "what netfilter's ingress hooks drop";
    let names: Vec<String> = links.iter().map(|link| link.name.clone()).collect();
    let found = Netlink::netfilter().and_then(|mut netlink| match netlink.hooks(&names) {
        Ok(hooks) => {
            let ingress = hooks.iter().filter(|hook| hook.family == Family::Netdev);
            let on: Vec<&str> = ingress.filter_map(|hook| hook.device.as_deref()).collect();
            Ok((!on.is_empty()).then(|| format!("{what} on {}", on.join(", "))))
        }
        // Kernels that do not list hooks: rules of nftables alone hang there, in tables of two families.
        Err(HostError::Unsupported { .. }) => Ok(tables(root, &mut netlink)?.then(|| {
            format!("{what}: there are tables of nftables, and this kernel lists no hooks")
        })),
        Err(error) => Err(error),
    });
    found.unwrap_or_else(|error| Some(format!("{what}: {error}")))
}

/// Whether nftables has tables in which a chain at ingress may be.
fn tables(root: &Root, netlink: &mut Netlink) -> Result<bool, HostError> {
    if !is_loaded(root)? {
        return Ok(false);
    }
    match netlink.nft_tables() {
        Ok(tables) => Ok(tables.iter().any(|table| {
            table.objects_count > 0 && ["netdev", "inet"].contains(&table.family.as_str())
        })),
        Err(HostError::Unsupported { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_at_tc_ingress_that_cannot_be_listed_may_be_there() {
        let refused = |errno: Errno| {
            let op = "list qdiscs".to_owned();
            Err(HostError::Kernel { op, errno: errno as i32, extack: None })
        };
        // No kernel has a device of this number.
        let link = NetworkLink { index: 4_000_000, name: "eth9".into(), ..NetworkLink::default() };
        let told = tc(&[&link], refused(Errno::EPERM)).unwrap();
        assert!(told.starts_with("what filters at tc ingress drop: list qdiscs"), "{told}");
        assert_eq!(tc(&[], refused(Errno::EPERM)), None);
        // Nor has a kernel without tc any filter.
        let told = tc(&[&link], refused(Errno::EOPNOTSUPP));
        assert!(!told.is_some_and(|told| told.contains("list qdiscs")));
    }

    #[test]
    fn a_tunnel_may_refuse_what_udp_counts_as_delivered() {
        let link = |name: &str, kind: &str| NetworkLink {
            name: name.into(),
            kind: Some(kind.into()),
            ..NetworkLink::default()
        };
        let (veth, vxlan) = (link("veth0", "veth"), link("vx0", "vxlan"));
        assert_eq!(tunnels(&[&veth]), None);
        let told = tunnels(&[&veth, &vxlan]).unwrap();
        assert!(told.starts_with("what tunnels (vx0) refuse"), "{told}");
    }
}
