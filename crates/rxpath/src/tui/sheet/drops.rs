//! The drops as rows.

use rxpath_core::number::grouped;
use rxpath_record::watch::{DropRow, WatchFrame};

use super::{Cell, Columns, Sheet, Told, number, per_s, word};

const COLUMNS: Columns<DropRow, 7> = [
    (number("drops/s", 8), |it| Cell::loss(it.packets_pps)),
    (number("total", 9), |it| Cell::number(it.packets_total as f64, it.packets_total.to_string())),
    (word("reason", 20), |it| Cell::text(it.reason.clone())),
    (word("device", 8), |it| Cell::text(it.device.clone())),
    (word("proto", 6), |it| Cell::text(it.transport.clone())),
    (number("port", 5), |it| {
        let port = if it.port == 0 { "-".to_owned() } else { it.port.to_string() };
        Cell::number(it.port.into(), port)
    }),
    (word("place", 20), |it| Cell::text(it.place.clone())),
];

pub(super) fn sheet(frame: &WatchFrame) -> Sheet {
    Sheet::of(&frame.drops, COLUMNS, row, "nothing was dropped since watching began")
}

fn row(drop: &DropRow) -> Told {
    let DropRow { place, reason, device, protocol, port, socket_inode, netns, .. } = drop;
    let socket = if *socket_inode == 0 { String::new() } else { format!("inode {socket_inode}") };
    let detail = vec![
        ("place", place.clone()),
        ("reason", reason.clone()),
        ("protocol", format!("{protocol} {}", drop.transport).trim().to_owned()),
        ("socket", socket),
        ("drops", per_s(drop.packets_pps, "packets")),
        ("since watching began", format!("{} packets", grouped(drop.packets_total))),
        ("socket open in", drop.processes.join(", ")),
        ("counted by", drop.source.clone()),
    ];
    // Includes everything that makes two rows different: with equal ids, the cursor would never reach the second row.
    let id = format!(
        "{place} {reason} {device} {protocol} port {port} socket {socket_inode} netns {netns}"
    );
    (id, detail)
}
