//! Programs and filters that drop packets before IP: XDP, tc, tcx, and nftables at ingress. Also firewalls that are
//! evaluated rule by rule.

use rxpath_core::number::grouped;
use rxpath_host::read::counter::Width;
use rxpath_host::read::nic::{Nic, QdiscFacts};

use crate::prelude::*;

/// Fewer packets in the window say nothing.
const ENOUGH: u64 = 50;
/// Dropping this share of all packets or more is a finding; a filter that drops less works as intended.
const MUCH_RATIO: f64 = 0.5;
/// GRO merges up to some 130 packets into one that IP counts. If IP counts fewer than that, packets did not reach it.
const JOINED_RATIO: f64 = 1.0 / 150.0;

/// This many rules in one chain are a long list.
const LONG: u32 = 200;

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("ingress-drops", Check::Active(ingress)), ("firewall-length", Check::Host(length))];

/// What a filter saw and dropped in the window.
struct Filtered {
    place: &'static str,
    dropped: u64,
    of: u64,
}

impl Filtered {
    fn ratio(&self) -> f64 {
        self.dropped as f64 / self.of.max(1) as f64
    }
}

fn ingress_qdisc(qdiscs: &[QdiscFacts]) -> Option<&QdiscFacts> {
    qdiscs.iter().find(|qdisc| ["ingress", "clsact"].contains(&qdisc.kind.as_str()))
}

/// What the ingress qdisc's filters dropped.
fn by_tc(ask: &Ask<'_>, device: &Device) -> Result<Option<Filtered>, Gap> {
    let Some(first) = ingress_qdisc((&device.nic.qdiscs).known()?) else { return Ok(None) };
    let later = ask.facts.later_device(device).and_then(|later| later.nic.qdiscs.value());
    let later = later.and_then(|all| ingress_qdisc(all));
    let of = |width: Width, get: fn(&QdiscFacts) -> Option<u64>| match get(first) {
        Some(count) => Count::of(width, count, later.and_then(get)).in_window(),
        None => Ok(0),
    };
    let dropped = of(Width::U32, |qdisc| qdisc.drops_total)?;
    Ok(Some(Filtered { place: "tc", dropped, of: of(Width::U64, |qdisc| qdisc.packets_total)? }))
}

/// XDP drops counted by the driver: mlx5, virtio_net, ena and veth count them, most others do not.
fn xdp_drops(nic: &Nic) -> Option<u64> {
    let stats = nic.driver_stats.value()?;
    let mut own = stats.iter().filter(|(name, _)| name.contains("xdp_drop")).peekable();
    own.peek()?;
    Some(own.fold(0, |sum, (_, count)| sum.saturating_add(*count)))
}

fn by_xdp(ask: &Ask<'_>, device: &Device, received: u64) -> Result<Option<Filtered>, Gap> {
    let Some(first) = xdp_drops(&device.nic) else { return Ok(None) };
    let later = ask.facts.later_device(device).and_then(|later| xdp_drops(&later.nic));
    let dropped = Count::of(Width::U64, first, later).in_window()?;
    Ok(Some(Filtered { place: "XDP", dropped, of: received.max(dropped) }))
}

/// Programs and chains on this device before IP, by name.
fn early(ask: &Ask<'_>, device: &Device) -> Result<Vec<&'static str>, Gap> {
    let mut all = Vec::new();
    if if_there((&device.nic.link).known())?.is_some_and(|link| !link.xdp_programs.is_empty()) {
        all.push("XDP");
    }
    if if_there((&device.nic.tcx).known())?.is_some_and(|tcx| !tcx.ingress.is_empty()) {
        all.push("tcx");
    }
    let chains = if_there((&ask.facts.answers.nft_chains).known())?.map_or(&[][..], Vec::as_slice);
    if chains.iter().any(|chain| {
        chain.hook == "ingress" && chain.device.as_ref().is_none_or(|name| *name == device.name)
    }) {
        all.push("nftables at ingress");
    }
    Ok(all)
}

/// Packets that all devices but loopback sent in the window.
pub(super) fn sent(ask: &Ask<'_>) -> Result<u64, Gap> {
    let devices = ask.facts.all_devices()?.iter().filter(|device| !device.is_loopback());
    let counts = devices.map(|device| {
        let count = ask.facts.device_count(device, "tx_packets").known();
        // A device that is down was read once, and sends nothing.
        count.and_then(Count::in_window).unwrap_or(0)
    });
    Ok(counts.fold(0, u64::saturating_add))
}

/// Whether the device's received packets appear nowhere else: IP did not receive them, and no device forwarded them.
///
/// XDP may pass packets to AF_XDP or send them back on the same device; no counter that all drivers have shows this. A
/// tcx program may redirect packets to a device of another namespace. So XDP or tcx alone prove nothing.
fn is_nowhere(ask: &Ask<'_>, device: &Device, received: u64, hooks: &[&str]) -> Result<bool, Gap> {
    // A bridge or a bond above this device receives the packets.
    if hooks.contains(&"XDP") || device.master.value().is_some() {
        return Ok(false);
    }
    let others = ask.facts.all_devices()?.iter().filter(|other| !other.is_loopback()).count();
    if hooks.contains(&"tcx") && others > 1 {
        return Ok(false);
    }
    let least = (received as f64 * JOINED_RATIO) as u64;
    let mut arrived = ask.facts.count("Ip.InReceives").known()?.in_window()?;
    if let Ok(six) = ask.facts.count("Ip6.InReceives").known() {
        arrived = arrived.saturating_add(six.in_window()?);
    }
    Ok(arrived <= least && sent(ask)? <= least)
}

fn ingress(ask: &Ask<'_>, device: &Device) -> Checked {
    let tc = by_tc(ask, device);
    let hooks = early(ask, device)?;
    let has_tc = tc.as_ref().is_ok_and(Option::is_some);
    if hooks.is_empty() && !has_tc {
        return tc
            .and_then(|_| Answer::silent("neither XDP, tc nor nftables take packets before IP"));
    }
    let received = ask.facts.device_count(device, "rx_packets").known()?.in_window()?;
    let mut filters: Vec<Filtered> = tc.ok().flatten().into_iter().collect();
    if hooks.contains(&"XDP") {
        filters.extend(by_xdp(ask, device, received)?);
    }
    let span = ask.facts.watched.span();
    if let Some(filter) = filters.iter().find(|it| it.dropped >= ENOUGH && it.ratio() >= MUCH_RATIO)
    {
        let told = format!(
            "{} dropped {} of {} packets {span} ({})",
            filter.place,
            grouped(filter.dropped),
            grouped(filter.of),
            percent(filter.ratio())
        );
        return dropping(told, device);
    }
    if received >= ENOUGH && !hooks.is_empty() && is_nowhere(ask, device, received, &hooks)? {
        let told = format!(
            "{} packets received {span} did not reach IP; hooks before IP: {}",
            grouped(received),
            hooks.join(", ")
        );
        return dropping(told, device);
    }
    let is_counted = filters.iter().any(|filter| filter.place == "XDP");
    if hooks.contains(&"XDP") && !is_counted {
        return Err(Gap::Absent("the driver does not count what XDP drops".into()));
    }
    Answer::fine(format!(
        "{} packets received {span}; most were not dropped before IP, according to the counters that exist",
        grouped(received)
    ))
}

fn dropping(told: String, device: &Device) -> Checked {
    Answer::observed(told).advice(format!(
        "find the owner of the program or filter on {}; it is never removed by rxpath",
        device.name
    ))
}

fn length(ask: &Ask<'_>) -> Checked {
    let chains = (&ask.facts.answers.nft_chains).known()?;
    let receiving = ["prerouting", "input", "forward", "ingress"];
    // NAT chains see only the first packet of a connection.
    let walked: Vec<_> = chains
        .iter()
        .filter(|chain| receiving.contains(&chain.hook.as_str()) && chain.kind != "nat")
        .collect();
    let long: Vec<String> = walked
        .iter()
        .filter(|chain| chain.rules_count >= LONG)
        .map(|chain| {
            format!("{} {} {}: {} rules", chain.family, chain.table, chain.name, chain.rules_count)
        })
        .collect();
    if long.is_empty() {
        return Answer::fine(format!(
            "{} chains on the receive hooks, none with {LONG} rules",
            walked.len()
        ));
    }
    Answer::observed(long.join("; "))
        .advice("put addresses and ports into one set; firewall rules are never changed by rxpath")
}
