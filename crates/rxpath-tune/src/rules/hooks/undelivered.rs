//! Packets that IP receives but does not deliver: firewalls, routes and hooks drop them without a counter.

use rxpath_core::number::grouped;

use super::dropping::sent;
use crate::prelude::*;

/// Fewer packets in the window say nothing.
const ENOUGH: u64 = 50;
/// Losing this share of all packets or more is a finding; a firewall that drops less works as intended.
const MUCH_RATIO: f64 = 0.5;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("ip-undelivered", Check::Host(undelivered))];

/// Counters that explain packets which IP received but did not deliver.
const OWNERS: [&str; 8] = [
    "InDelivers",
    "InHdrErrors",
    "InAddrErrors",
    "InUnknownProtos",
    "InDiscards",
    "InNoRoutes",
    "InTruncatedPkts",
    "ReasmReqds",
];

/// The packets that one IP version received in the window, and those of them that counters explain.
fn flow(ask: &Ask<'_>, version: &str, forwarded: &str) -> Result<(u64, u64), Gap> {
    // A counter that this kernel lacks counts as 0.
    let count = |name: &str| moved(ask, name).map(Option::unwrap_or_default);
    let own = |name: &str| count(&format!("{version}.{name}"));
    let received = ask.facts.count(&format!("{version}.InReceives")).known()?.in_window()?;
    ask.facts.count(&format!("{version}.InDelivers")).known()?;
    let mut accounted = own(forwarded)?;
    for name in OWNERS {
        accounted = accounted.saturating_add(own(name)?);
    }
    if version == "Ip" {
        for name in ["IpExt.InNoRoutes", "IpExt.InTruncatedPkts", "TcpExt.IPReversePathFilter"] {
            accounted = accounted.saturating_add(count(name)?);
        }
    }
    Ok((received, accounted))
}

/// Nftables chains that may drop received packets, and other functions on the hooks.
fn suspects(ask: &Ask<'_>) -> Vec<String> {
    let on_the_way = |hook: &str| ["prerouting", "input", "forward"].contains(&hook);
    let mut named: Vec<String> = Vec::new();
    if let Some(chains) = ask.facts.answers.nft_chains.value() {
        for chain in chains.iter().filter(|chain| on_the_way(&chain.hook) && chain.kind != "nat") {
            let policy = if chain.drops_by_policy { "policy drop, " } else { "" };
            named.push(format!(
                "{} {} {} ({}{} rules)",
                chain.family, chain.table, chain.name, policy, chain.rules_count
            ));
        }
    }
    let tables = ask.facts.text("/proc/net/ip_tables_names").into_value().unwrap_or_default();
    named.extend(tables.split_whitespace().map(|table| format!("iptables {table}")));
    named
}

fn undelivered(ask: &Ask<'_>) -> Checked {
    let four = flow(ask, "Ip", "ForwDatagrams")?;
    // Without IPv6 there is no second table.
    let six = flow(ask, "Ip6", "OutForwDatagrams").ok();
    let sides = [Some(("IPv4", four)), six.map(|six| ("IPv6", six))];
    let mut fine = Vec::new();
    for (version, (received, accounted)) in sides.into_iter().flatten() {
        let lost = received.saturating_sub(accounted);
        let ratio = lost as f64 / received.max(1) as f64;
        let span = ask.facts.watched.span();
        let told = format!(
            "{} of {} {version} packets received {span} were neither delivered nor forwarded ({})",
            grouped(lost),
            grouped(received),
            percent(ratio)
        );
        if lost < ENOUGH || ratio < MUCH_RATIO {
            fine.push(told);
            continue;
        }
        // IPVS and programs on hooks forward packets without an IP counter.
        if sent(ask)? >= lost {
            fine.push(format!("{told}; as many left again"));
            continue;
        }
        let suspects = suspects(ask);
        let hooks = if suspects.is_empty() {
            "no firewall chain is visible on the path: a route, or a program on a hook".to_owned()
        } else {
            format!("on the path: {}", suspects.join(", "))
        };
        return Answer::observed(format!("{told}; {hooks}"))
            .advice("check the named chains, and `ip route show table all type blackhole`; firewall rules are never \
                     changed by rxpath");
    }
    Answer::fine(fine.join("; "))
}
