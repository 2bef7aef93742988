//! The sockets as rows.

use rxpath_core::Bytes;
use rxpath_record::watch::{Frame, SocketRow};

use super::{Cell, Row, Sheet, number, per_s, percent, word};

pub(super) fn sheet(frame: &Frame) -> Sheet {
    Sheet {
        columns: vec![
            word("proto", 10),
            word("local", 21),
            number("queued", 10),
            number("max %", 6),
            number("limit", 10),
            number("drops/s", 8),
            word("program", 12),
        ],
        rows: frame.sockets.iter().map(row).collect(),
        empty: format!("nothing waits in any of {} sockets", frame.sockets_count),
    }
}

fn amount(socket: &SocketRow, value: u64) -> String {
    if socket.protocol == "tcp-listen" { value.to_string() } else { Bytes(value).to_string() }
}

fn row(socket: &SocketRow) -> Row {
    let unit = if socket.protocol == "tcp-listen" { "connections" } else { "of truesize" };
    let programs = socket.processes.join(", ");
    Row {
        id: format!("{} {} inode {}", socket.protocol, socket.local, socket.inode),
        item: 0,
        cells: vec![
            Cell::text(socket.protocol.clone()),
            Cell::text(socket.local.clone()),
            Cell::number(socket.queued as f64, amount(socket, socket.queued)),
            Cell::filled(socket.filled_ratio(), 0.5, 0.9),
            Cell::number(socket.limit as f64, amount(socket, socket.limit)),
            Cell::loss(socket.drops_pps),
            Cell::text(if programs.is_empty() { "-".into() } else { programs.clone() }),
        ],
        detail: vec![
            (
                "remote".into(),
                if socket.remote.is_empty() { "any".into() } else { socket.remote.clone() },
            ),
            ("queued now".into(), format!("{} {unit}", amount(socket, socket.queued))),
            ("most in the window".into(), format!("{} {unit}", amount(socket, socket.queued_max))),
            ("limit".into(), format!("{} {unit}", amount(socket, socket.limit))),
            ("filled at most".into(), percent(socket.filled_ratio())),
            ("drops".into(), per_s(socket.drops_pps, "packets")),
            ("drops since its creation".into(), socket.drops_total.to_string()),
            (
                "open in".into(),
                match (programs.is_empty(), socket.processes_gap.is_empty()) {
                    (true, true) => "no visible program (root sees all)".into(),
                    (true, false) => socket.processes_gap.clone(),
                    (false, _) => programs,
                },
            ),
        ],
    }
}
