//! How the datagrams were split between several receiving sockets.

use rxpath_record::evidence::SocketUse;

use super::roof;
use super::stacked::{Bar, panel, table};
use crate::plot::{Axis, COLOURS};
use crate::prelude::*;

const HEADS: &str = "variant | #trial | #socket | #delivered | #share of delivered | #dropped at the socket | \
                     #receive buffer | #holds, datagrams | #largest queue";

/// Delivered and dropped datagrams of each socket, where a variant has more than one.
pub(super) fn split(run: &Run) -> Option<Figure> {
    let mut bars = Vec::new();
    for (variant, trial) in run.shown() {
        let sockets = &trial.evidence.sockets;
        let total: u64 = sockets.iter().map(|s| s.delivered_packets).sum();
        if sockets.len() > 1 {
            let bar = |socket| bar(&variant.name, trial.trial, socket, total);
            bars.extend(sockets.iter().map(bar));
        }
    }
    let ends = bars.iter().map(|bar: &Bar| bar.parts.iter().map(|(part, _)| part).sum::<f64>());
    let x = Axis::to(roof(ends), "datagrams in the trial", number::short);
    (!bars.is_empty()).then(|| Figure {
        title: "Split between sockets".into(),
        caption: "Datagrams of the median trial by receiving socket. With SO_REUSEPORT the kernel picks the socket by \
                  a hash of the flow: with few flows a socket can stay empty."
            .into(),
        keys: vec![
            Key::block(COLOURS[0], 8.0, "delivered"),
            Key::block(COLOURS[1], 8.0, "dropped at the socket"),
        ],
        panels: vec![panel("sock", "Datagrams by receiving socket", &bars, &x)],
        table: table(HEADS, &bars),
    })
}

fn bar(variant: &str, trial: u32, socket: &SocketUse, total: u64) -> Bar {
    let (delivered, drops) = (socket.delivered_packets, socket.drops_packets);
    Bar {
        name: format!("{} · {}", cut(variant, 22), socket.index),
        parts: vec![(delivered as f64, COLOURS[0]), (drops as f64, COLOURS[1])],
        cells: vec![
            variant.into(),
            trial.to_string(),
            socket.index.to_string(),
            number::count(delivered),
            number::percent(delivered as f64, total as f64),
            number::count(drops),
            number::bytes(socket.rcvbuf_bytes as f64),
            socket.capacity_packets.map_or("not known".into(), number::count),
            number::bytes(socket.queue_max_bytes as f64),
        ],
    }
}
