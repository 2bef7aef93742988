//! The counters that a kernel would show, and their ledger, computed by the same arithmetic as for a real run.

use std::collections::BTreeMap;

use rxpath_core::{IntoMap, PathSide};
use rxpath_record::counters::{Moved, name};
use rxpath_record::ledger::{
    Ledger, LedgerInput, LedgerUnit, Link, PathFacts, ReceiverSaid, SenderSaid,
};

use super::super::parameters::Law;
use super::super::world::World;

/// The simulated device.
const DEVICE: &str = "sim";

impl World<'_> {
    pub(in crate::sim) fn ledger(&self) -> (Ledger, Moved) {
        let moved = self.moved();
        let tally = &self.tally;
        let socket_drops = self.sockets.iter().map(|socket| socket.drops).collect();
        let queued: u64 = self.queues.iter().map(|queue| queue.ring.len()).sum::<u64>()
            + self.cpus.iter().map(|cpu| cpu.backlog.len()).sum::<u64>()
            + self.sockets.iter().map(|socket| socket.queue.len()).sum::<u64>()
            + self.in_hand();
        let input = LedgerInput {
            sender: SenderSaid {
                offered_packets: tally.offered,
                sent_packets: tally.offered,
                ..SenderSaid::default()
            },
            receiver: ReceiverSaid {
                delivered_packets: self.threads.iter().map(|thread| thread.used.delivered).sum(),
                in_flight_packets: queued,
                socket_drops: Some(socket_drops),
                payload_bytes: Some(self.p.size as u32),
                ..ReceiverSaid::default()
            },
            path: PathFacts {
                tx_device: None,
                rx_device: Some(DEVICE.into()),
                link: Link::Nic,
                input_rules: Some(Vec::new()),
                ingress_rules: Some(Vec::new()),
                egress_rules: Some(Vec::new()),
                ..PathFacts::default()
            },
            reasoned: None,
        };
        let mut ledger = Ledger::from_counters(&input, &moved);
        if matches!(self.p.law, Law::Tcp { .. }) {
            ledger.unit = LedgerUnit::Segment;
        }
        (ledger, moved)
    }

    /// Each counter where the kernel counts it; none is made from another.
    fn moved(&self) -> Moved {
        let taken: u64 = self.queues.iter().map(|queue| queue.ring.left).sum();
        let missed: u64 = self.queues.iter().map(|queue| queue.drops).sum();
        let backlog_drops: u64 = self.cpus.iter().map(|cpu| cpu.backlog_drops).sum();
        let through_backlog: u64 = self.cpus.iter().map(|cpu| cpu.backlog.left).sum();
        let at_ip = if self.p.rps_cpus.is_empty() { taken } else { through_backlog };
        let full: u64 = self.sockets.iter().map(|socket| socket.drops).sum();
        let queued: u64 = self.sockets.iter().map(|socket| socket.queue.left).sum();
        let mut values = BTreeMap::from([
            (name::link(PathSide::Rx, DEVICE, "rx.packets"), taken),
            (name::link(PathSide::Rx, DEVICE, "rx.missed_errors"), missed),
            (name::link(PathSide::Rx, DEVICE, "rx.dropped"), backlog_drops),
            (name::snmp(PathSide::Rx, "Ip", "InReceives"), at_ip),
            (name::snmp(PathSide::Rx, "Ip", "InDelivers"), at_ip),
            (name::snmp(PathSide::Rx, "IpExt", "InNoECTPkts"), at_ip),
            (name::snmp(PathSide::Rx, "Udp", "RcvbufErrors"), full),
            (name::snmp(PathSide::Rx, "Udp", "InErrors"), full),
            (name::snmp(PathSide::Rx, "Udp", "InDatagrams"), queued),
        ]);
        for (cpu, of) in self.cpus.iter().enumerate() {
            values.insert(name::softnet(cpu as u32, "dropped"), of.backlog_drops);
        }
        values.retain(|_, value| *value > 0);
        let values = values.into_iter().map(|(name, value)| (name, value as i64)).into_map();
        Moved { values, gaps: BTreeMap::new() }
    }
}
