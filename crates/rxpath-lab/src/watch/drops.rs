//! Drops of a window: by reason and place where the tracepoint is read, else by the counter that owns the place.

use rxpath_record::counters::Snapshot;
use rxpath_record::watch::DropRow;

use super::Window;
use super::counters::moved;
use crate::live::{BESIDE, PLACES};

/// Rows of a frame at most.
const ROWS: usize = 200;

pub(super) fn rows(window: &Window<'_>, first: &Snapshot, now: &Snapshot) -> Vec<DropRow> {
    let mut rows = match window.seen {
        Ok(seen) if !seen.gaps.contains_key("drops by reason") => traced(window, seen),
        _ => counted(window, first, now),
    };
    rows.sort_by(|a, b| {
        b.packets_pps.total_cmp(&a.packets_pps).then(b.packets_total.cmp(&a.packets_total))
    });
    rows.truncate(ROWS);
    rows
}

fn traced(window: &Window<'_>, seen: &super::Seen) -> Vec<DropRow> {
    let row = |(drop, total): &(rxpath_bpf::drops::Drop, u64)| DropRow {
        place: drop.place.clone(),
        reason: drop.reason.clone(),
        device: drop.dev.clone().unwrap_or_default(),
        transport: drop.transport.clone().unwrap_or_else(|| drop.protocol.clone()),
        port: drop.port,
        processes: drop.processes.clone(),
        packets_pps: drop.packets as f64 / window.window_s,
        packets_total: *total,
        source: "tracepoint skb:kfree_skb".into(),
    };
    seen.drops.iter().map(row).collect()
}

fn counted(window: &Window<'_>, first: &Snapshot, now: &Snapshot) -> Vec<DropRow> {
    let mut rows = Vec::new();
    let mut row = |place: String, names: &[&str]| {
        let total = moved(first, now, names).into_value().unwrap_or(0);
        if total > 0 {
            rows.push(DropRow {
                place,
                packets_pps: window.rates.per_s(names).into_value().unwrap_or(0.0),
                packets_total: total,
                source: names.join(" + "),
                ..DropRow::default()
            });
        }
    };
    for (place, names) in PLACES.iter().filter(|(_, names)| !names.is_empty()) {
        row(format!("{place:?}"), names);
    }
    for name in BESIDE {
        row(name.to_owned(), &[name]);
    }
    let cpus: Vec<String> =
        window.between.cpus.iter().map(|cpu| format!("softnet.cpu{}.dropped", cpu.cpu)).collect();
    let names: Vec<&str> = cpus.iter().map(String::as_str).collect();
    let total = moved(first, now, &names).into_value().unwrap_or(0);
    if total > 0 {
        let each = window.between.cpus.iter().map(|cpu| cpu.cpu);
        rows.push(DropRow {
            place: "Backlog".into(),
            packets_pps: window.rates.softnet_per_s("dropped", each).into_value().unwrap_or(0.0),
            packets_total: total,
            source: "softnet_stat dropped".into(),
            ..DropRow::default()
        });
    }
    rows
}
