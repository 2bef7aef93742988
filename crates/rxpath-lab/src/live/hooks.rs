//! Hooks in front of IP that may drop without a counter that is read here: XDP, tc, netfilter's ingress.
//!
//! Where there is none nothing is missed; where that cannot be told, that is said.

use rxpath_host::netlink::netfilter::Family;
use rxpath_host::netlink::nft_tables::is_loaded;
use rxpath_host::netlink::{Link, Netlink};
use rxpath_host::{HostError, Root, tcx};

/// What may be lost in them unseen; `reasons` when the kernel's drop reasons are watched, which name tc's drops.
pub(crate) fn unseen(root: &Root, links: &[Link], reasons: bool) -> Vec<String> {
    let up: Vec<&Link> = links.iter().filter(|link| link.is_up() && link.name != "lo").collect();
    let mut all: Vec<String> = xdp(&up).into_iter().collect();
    if !reasons {
        all.extend(tc(&up));
    }
    all.extend(netfilter(root, &up));
    all
}

fn xdp(links: &[&Link]) -> Option<String> {
    let with: Vec<&str> =
        links.iter().filter(|link| !link.xdp.is_empty()).map(|link| link.name.as_str()).collect();
    (!with.is_empty()).then(|| {
        format!(
            "what the XDP program of {} drops: no counter of the kernel has it",
            with.join(", ")
        )
    })
}

fn tc(links: &[&Link]) -> Option<String> {
    let mut route = Netlink::route();
    let qdiscs = route.as_mut().ok().and_then(|route| route.qdiscs().ok()).unwrap_or_default();
    let hooked = |link: &Link| {
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

fn netfilter(root: &Root, links: &[&Link]) -> Option<String> {
    let what = "what netfilter's ingress hooks drop";
    let names: Vec<String> = links.iter().map(|link| link.name.clone()).collect();
    let mut netlink = match Netlink::netfilter() {
        Ok(netlink) => netlink,
        Err(error) => return Some(format!("{what}: {error}")),
    };
    match netlink.hooks(&names) {
        Ok(hooks) => {
            let ingress = hooks.iter().filter(|hook| hook.family == Family::Netdev);
            let on: Vec<&str> = ingress.filter_map(|hook| hook.device.as_deref()).collect();
            (!on.is_empty()).then(|| format!("{what} on {}", on.join(", ")))
        }
        // Kernels that do not list hooks: rules of nftables alone hang there, in tables of two families.
        Err(HostError::Unsupported { .. }) => match tables(root, &mut netlink) {
            Ok(false) => None,
            Ok(true) => Some(format!(
                "{what}: there are tables of nftables, and this kernel lists no hooks"
            )),
            Err(error) => Some(format!("{what}: {error}")),
        },
        Err(error) => Some(format!("{what}: {error}")),
    }
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
