//! What a ledger in datagrams is made of: the path, and what both programs or the kernel say of them.

use rxpath_live::live::hooks::xdp_program;
use rxpath_load::udp::result::{LoadResult, ServeResult, SocketResult, XdpReceiveLedger};
use rxpath_load::udp::serve::options::ServeSettings;
use rxpath_record::counters::Moved;
use rxpath_record::ledger::{Bypass, LedgerInput, PathFacts, ReceiverSaid, SenderSaid};
use serde::Deserialize;

use crate::scenario::spec::{Variant, Workload};
use crate::testbed::Testbed;
use crate::trial::kernel_lines;
use crate::trial::measurements::Measurements;

/// Facts of the way. What the receiver's own XDP program takes is counted, unlike what other hooks take.
pub(super) fn path(testbed: &dyn Testbed, raw: &Measurements) -> PathFacts {
    let settings = ServeSettings::deserialize(raw.serve.settings.clone()).ok();
    let Some(own) = settings.and_then(|settings| settings.xdp_program) else {
        return super::path(testbed, &raw.hooks);
    };
    let own = xdp_program(&own.device);
    let others: Vec<String> = raw.hooks.iter().filter(|hook| **hook != own).cloned().collect();
    let mut path = super::path(testbed, &others);
    super::napi_may_run(&mut path);
    path
}

/// What the ledger is made of. The results are those of our own programs.
pub(super) fn ledger_input(
    variant: &Variant,
    path: PathFacts,
    (sent, served): (Option<&LoadResult>, Option<&ServeResult>),
    moved: &Moved,
) -> LedgerInput {
    let kernel = |side: &str, counter: &str| {
        kernel_lines::both_families(
            |name| moved.values.get(name).map(|n| (*n).max(0) as u64),
            side,
            counter,
        )
    };
    let sender = if let Some(load) = sent {
        sender_said(load)
    } else {
        foreign_sender(kernel("tx", "OutDatagrams") + kernel("tx", "SndbufErrors"), &path, moved)
    };
    let payload_bytes = variant.load.datagrams().map(|datagrams| datagrams.size_bytes);
    let receiver = match (served, &variant.serve) {
        (Some(serve), _) => ReceiverSaid {
            delivered_packets: serve.delivered_packets + serve.dropped_in_xdp_packets.unwrap_or(0),
            in_flight_packets: serve.sockets.iter().map(in_flight).sum::<u64>()
                + serve.xdp.map_or(0, |xdp| xdp.unread_packets),
            socket_drops: Some(serve.sockets.iter().map(|socket| socket.drops_packets).collect()),
            gro: variant.serve.datagrams().is_some_and(|datagrams| datagrams.gro),
            payload_bytes,
            sequence_lost_packets: serve.sequence.checked.then_some(serve.sequence.lost_packets),
            bypass: serve.xdp.map(bypass),
            ..ReceiverSaid::default()
        },
        (None, Workload::External(_)) => ReceiverSaid {
            delivered_packets: kernel("rx", "InDatagrams"),
            may_refuse: true,
            by_kernel: true,
            ..ReceiverSaid::default()
        },
        (None, Workload::Own(_)) => ReceiverSaid { payload_bytes, ..ReceiverSaid::default() },
    };
    LedgerInput { sender, receiver, path, reasoned: None }
}

/// What a foreign program sent: its UDP datagrams, or the device's frames when it goes around UDP.
fn foreign_sender(udp: u64, path: &PathFacts, moved: &Moved) -> SenderSaid {
    let device = |counter: &str| {
        let name = path.tx_device.as_ref().map(|device| format!("tx/link.{device}.{counter}"));
        name.and_then(|name| moved.values.get(&name)).map_or(0, |n| (*n).max(0) as u64)
    };
    let raw = udp == 0;
    let sent = if raw { device("tx.packets") + device("tx.dropped") } else { udp };
    SenderSaid {
        offered_packets: sent,
        sent_packets: sent,
        raw,
        by_kernel: true,
        ..SenderSaid::default()
    }
}

/// What our own sender says.
pub(in crate::trial) fn sender_said(load: &LoadResult) -> SenderSaid {
    SenderSaid {
        offered_packets: load.offered_packets,
        sent_packets: load.sent_packets,
        send_errors: load.send_errors.clone(),
        segments_per_send: load.segments_per_send.max(1),
        raw: load.bypasses_udp,
        refused_frames: load.frames.and_then(|frames| frames.refused_packets).unwrap_or(0),
        ..SenderSaid::default()
    }
}

/// What the receiver's own XDP program took.
fn bypass(of: XdpReceiveLedger) -> Bypass {
    Bypass {
        taken_packets: of.redirected_packets + of.dropped_packets,
        program_drops_packets: of.dropped_packets,
        socket_drops_packets: of.socket_dropped_packets + of.ring_full_packets,
    }
}

/// Datagrams that draining left in a socket: their memory over one datagram's.
fn in_flight(socket: &SocketResult) -> u64 {
    match socket.truesize_bytes {
        Some(truesize @ 1..) => socket.rmem_bytes / truesize,
        _ => u64::from(socket.rmem_bytes > 0),
    }
}
