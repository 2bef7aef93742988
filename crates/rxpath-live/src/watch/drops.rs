//! Drops of a window: by reason and place where the tracepoint is read, else by the counter that owns the place.
//!
//! What no function of the kernel frees is in no tracepoint: packets that found no free descriptor, and connection
//! requests that a full accept queue refuses, whose packets are consumed as if they had been taken
//! (net/ipv4/tcp_input.c `tcp_rcv_state_process`, `tcp_conn_request`). Their counters stand next to the tracepoint's rows.

use rxpath_record::counters::Snapshot;
use rxpath_record::watch::DropRow;

use super::Window;
use super::counters::moved;
use super::places::TCP_LOST;
use crate::live::PLACES;

/// Rows of a frame at most.
pub(super) const MOST_ROWS: usize = 200;
/// Connection requests that a listener refused.
const LISTEN: &str = "TcpExt.ListenDrops";

pub(super) fn rows(window: &Window<'_>, first: &Snapshot, now: &Snapshot) -> Vec<DropRow> {
    let mut rows = match window.seen {
        Ok(seen) if !seen.gaps.contains_key("drops by reason") => {
            let mut rows = traced(seen);
            rows.extend(counter(window, (first, now), LISTEN, &[LISTEN]).map(|row| DropRow {
                reason: "listen queue full".into(),
                source: format!("{LISTEN}; the tracepoint sees the last step of a handshake only"),
                ..row
            }));
            rows
        }
        _ => counted(window, first, now),
    };
    rows.extend(at_devices(window));
    rows.sort_by(|a, b| {
        b.packets_pps.total_cmp(&a.packets_pps).then(b.packets_total.cmp(&a.packets_total))
    });
    rows.truncate(MOST_ROWS);
    rows
}

fn traced(seen: &super::Seen) -> Vec<DropRow> {
    let row = |(drop, total): &(rxpath_bpf::drops::SkbDrop, u64)| DropRow {
        place: drop.place.clone(),
        reason: drop.reason.clone(),
        device: drop.dev.clone().unwrap_or_default(),
        netns: drop.netns,
        protocol: drop.protocol.clone(),
        transport: drop.transport.clone().unwrap_or_else(|| drop.protocol.clone()),
        port: drop.port,
        socket_inode: drop.socket_inode,
        processes: drop.processes.clone(),
        packets_pps: drop.packets as f64 / seen.drops_counted_s.max(1e-3),
        packets_total: *total,
        source: "tracepoint skb:kfree_skb".into(),
    };
    seen.drops.iter().map(row).collect()
}

/// One row for these counters together, once they moved since watching began.
fn counter(
    window: &Window<'_>,
    (first, now): (&Snapshot, &Snapshot),
    place: &str,
    names: &[&str],
) -> Option<DropRow> {
    let total = moved(first, now, names).into_value().filter(|total| *total > 0)?;
    Some(DropRow {
        place: place.to_owned(),
        transport: if names[0].starts_with("Tcp") { "tcp".into() } else { String::new() },
        packets_pps: window.rates.per_s(names).into_value().unwrap_or(0.0),
        packets_total: total,
        source: names.join(" + "),
        ..DropRow::default()
    })
}

fn counted(window: &Window<'_>, first: &Snapshot, now: &Snapshot) -> Vec<DropRow> {
    let mut rows: Vec<DropRow> = PLACES
        .iter()
        .filter_map(|(place, names)| counter(window, (first, now), &format!("{place:?}"), names))
        .collect();
    // Only those that own their losses: others count the same ones once more.
    rows.extend(
        TCP_LOST.iter().filter_map(|(name, ..)| counter(window, (first, now), name, &[name])),
    );
    let cpus: Vec<String> =
        window.between.cpus.iter().map(|cpu| format!("softnet.cpu{}.dropped", cpu.cpu)).collect();
    let names: Vec<&str> = cpus.iter().map(String::as_str).collect();
    let backlog = moved(first, now, &names).into_value().unwrap_or(0);
    let backlog_pps = window.softnet_per_s("dropped").into_value().unwrap_or(0.0);
    // The backlog's drops are counted at the device as well (net/core/dev.c enqueue_to_backlog).
    let links = window.links;
    let others = links.dropped_total.saturating_sub(backlog);
    let others_pps = (links.dropped_pps - backlog_pps).max(0.0);
    for (place, total, pps, source) in [
        ("Backlog", backlog, backlog_pps, "softnet_stat dropped"),
        ("behind the ring", others, others_pps, "rtnetlink rx dropped, less softnet_stat dropped"),
    ] {
        if total > 0 {
            rows.push(DropRow {
                place: place.into(),
                packets_pps: pps,
                packets_total: total,
                source: source.into(),
                ..DropRow::default()
            });
        }
    }
    rows
}

fn at_devices(window: &Window<'_>) -> impl Iterator<Item = DropRow> {
    window.links.lost.iter().map(|lost| DropRow {
        place: "NIC/ring".into(),
        reason: lost.reason.into(),
        device: lost.device.clone(),
        packets_pps: lost.pps,
        packets_total: lost.total,
        source: lost.source.into(),
        ..DropRow::default()
    })
}
