//! The sockets as rows.

use rxpath_core::Bytes;
use rxpath_record::watch::{SocketRow, WatchFrame};

use super::{Cell, Columns, Sheet, Told, number, per_s, percent, word};

const COLUMNS: Columns<SocketRow, 7> = [
    (word("proto", 10), |it| Cell::text(it.protocol.clone())),
    (word("local", 21), |it| Cell::text(it.local.clone())),
    (number("queued", 10), |it| Cell::number(it.queued as f64, amount(it, it.queued))),
    (number("max %", 6), |it| Cell::filled(it.filled_ratio(), 0.5, 0.9)),
    (number("limit", 10), |it| Cell::number(it.limit as f64, amount(it, it.limit))),
    (number("drops/s", 8), |it| Cell::loss(it.drops_pps)),
    (word("program", 12), |it| {
        let programs = it.processes.join(", ");
        Cell::text(if programs.is_empty() { "-".into() } else { programs })
    }),
];

pub(super) fn sheet(frame: &WatchFrame) -> Sheet {
    let empty = format!("nothing waits in any of {} sockets", frame.sockets_count);
    Sheet::of(&frame.sockets, COLUMNS, row, empty)
}

fn amount(socket: &SocketRow, value: u64) -> String {
    if socket.protocol == "tcp-listen" { value.to_string() } else { Bytes(value).to_string() }
}

fn row(socket: &SocketRow) -> Told {
    let unit = if socket.protocol == "tcp-listen" { "connections" } else { "of truesize" };
    let queued = |value| format!("{} {unit}", amount(socket, value));
    let remote = if socket.remote.is_empty() { "any".into() } else { socket.remote.clone() };
    let programs = socket.processes.join(", ");
    let open_in = match (programs.is_empty(), socket.processes_gap.is_empty()) {
        (true, true) => "no visible program (root sees all)".into(),
        (true, false) => socket.processes_gap.clone(),
        (false, _) => programs,
    };
    let detail = vec![
        ("remote", remote),
        ("queued now", queued(socket.queued)),
        ("most in the window", queued(socket.queued_max)),
        ("limit", queued(socket.limit)),
        ("filled at most", percent(socket.filled_ratio(), 2)),
        ("drops", per_s(socket.drops_pps, "packets")),
        ("drops since its creation", socket.drops_total.to_string()),
        ("open in", open_in),
    ];
    (format!("{} {} inode {}", socket.protocol, socket.local, socket.inode), detail)
}
