//! How the datagrams were split between several receiving sockets.

use rxpath_record::evidence::SocketUse;

use super::per_variant::names;
use super::roof;
use crate::plot::{Axis, COLOURS, Chart, Curve};
use crate::prelude::*;

struct Row<'a> {
    name: String,
    variant: &'a str,
    trial: u32,
    socket: &'a SocketUse,
    total: u64,
}

/// Delivered and dropped datagrams of each socket, where a variant has more than one.
pub(super) fn split(run: &Run) -> Option<Figure> {
    let mut rows = Vec::new();
    for (variant, trial) in run.shown() {
        let sockets = &trial.evidence.sockets;
        let total = sockets.iter().map(|s| s.delivered_packets).sum();
        if sockets.len() > 1 {
            rows.extend(sockets.iter().map(|socket| Row {
                name: format!("{} · {}", crate::page::part::cut(&variant.name, 22), socket.index),
                variant: &variant.name,
                trial: trial.trial,
                socket,
                total,
            }));
        }
    }
    (!rows.is_empty()).then(|| Figure {
        title: "Split between sockets".into(),
        caption: "Datagrams of the median trial by receiving socket. With SO_REUSEPORT the kernel picks the socket by \
                  a hash of the flow: with few flows a socket can stay empty."
            .into(),
        keys: vec![
            Key::block(COLOURS[0], 8.0, "delivered"),
            Key::block(COLOURS[1], 8.0, "dropped at the socket"),
        ],
        panels: vec![Panel::by_width("sock", |size| chart(&rows, size))],
        table: table(&rows),
    })
}

fn chart(rows: &[Row], size: (&str, f64)) -> Chart {
    let end = |row: &Row| (row.socket.delivered_packets + row.socket.drops_packets) as f64;
    let mut curves = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let delivered = row.socket.delivered_packets as f64;
        for (ends, colour) in [((0.0, delivered), COLOURS[0]), ((delivered, end(row)), COLOURS[1])]
        {
            if ends.1 > ends.0 {
                curves.push(Curve::bar(ends, (rows.len() - at) as f64, colour, 12.0));
            }
        }
    }
    let names = names(rows.iter().map(|row| row.name.as_str()), size.1);
    let x = Axis::to(roof(rows.iter().map(end)), "datagrams in the trial", number::short);
    Chart { curves, ..Chart::of_rows(size, "Datagrams by receiving socket", names, 24.0, x) }
}

fn table(rows: &[Row]) -> Table {
    let heads = "variant | #trial | #socket | #delivered | #share of delivered | \
                 #dropped at the socket | #receive buffer | #holds, datagrams | #largest queue";
    let rows = rows.iter().map(|row| {
        let socket = row.socket;
        vec![
            row.variant.into(),
            row.trial.to_string(),
            socket.index.to_string(),
            number::count(socket.delivered_packets),
            number::percent(socket.delivered_packets as f64, row.total as f64),
            number::count(socket.drops_packets),
            number::bytes(socket.rcvbuf_bytes as f64),
            socket.capacity_packets.map_or("not known".into(), number::count),
            number::bytes(socket.queue_max_bytes as f64),
        ]
    });
    Table::of(heads, rows)
}
