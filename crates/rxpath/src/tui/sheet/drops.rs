//! The drops as rows.

use rxpath_record::watch::{DropRow, Frame};

use super::{Cell, Row, Sheet, number, per_s, word};

pub(super) fn sheet(frame: &Frame) -> Sheet {
    Sheet {
        columns: vec![
            number("drops/s", 8),
            number("total", 9),
            word("reason", 20),
            word("device", 8),
            word("proto", 6),
            number("port", 5),
            word("place", 20),
        ],
        rows: frame.drops.iter().map(row).collect(),
        empty: "nothing was dropped since watching began".into(),
    }
}

fn row(drop: &DropRow) -> Row {
    let port = if drop.port == 0 { "-".to_owned() } else { drop.port.to_string() };
    Row {
        // Includes everything that makes two rows different: with equal ids, the cursor would never reach the second
        // row.
        id: format!(
            "{} {} {} {} port {} socket {} netns {}",
            drop.place,
            drop.reason,
            drop.device,
            drop.protocol,
            drop.port,
            drop.socket_inode,
            drop.netns
        ),
        item: 0,
        cells: vec![
            Cell::loss(drop.packets_pps),
            Cell::number(drop.packets_total as f64, drop.packets_total.to_string()),
            Cell::text(drop.reason.clone()),
            Cell::text(drop.device.clone()),
            Cell::text(drop.transport.clone()),
            Cell::number(drop.port.into(), port),
            Cell::text(drop.place.clone()),
        ],
        detail: vec![
            ("place".into(), drop.place.clone()),
            ("reason".into(), drop.reason.clone()),
            ("protocol".into(), format!("{} {}", drop.protocol, drop.transport).trim().to_owned()),
            (
                "socket".into(),
                if drop.socket_inode == 0 {
                    String::new()
                } else {
                    format!("inode {}", drop.socket_inode)
                },
            ),
            ("drops".into(), per_s(drop.packets_pps, "packets")),
            ("since watching began".into(), format!("{} packets", drop.packets_total)),
            ("socket open in".into(), drop.processes.join(", ")),
            ("counted by".into(), drop.source.clone()),
        ],
    }
}
