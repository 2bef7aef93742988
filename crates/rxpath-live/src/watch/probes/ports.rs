//! For whom network softirqs worked: the share of each port in the packets that were received in turns.

use std::collections::BTreeMap;

use rxpath_bpf::stages::Stages;
use rxpath_bpf::stages::ports::PortPackets;
use rxpath_core::IntoMap;
use rxpath_host::HostError;
use rxpath_record::watch::PortName;

/// The last reading, and the packets since shares were taken.
#[derive(Debug, Default)]
pub(super) struct Ports {
    before: BTreeMap<(u32, u16), u64>,
    received_before: u64,
    packets: BTreeMap<PortName, u64>,
    received: u64,
    /// Whether anything was read since shares were taken.
    is_sampled: bool,
    /// What was taken last.
    shares: BTreeMap<PortName, f64>,
}

impl Ports {
    /// Adds what came since the last reading.
    pub(super) fn read(&mut self, probe: &Stages) -> Result<(), HostError> {
        self.add(&probe.ports()?, probe.packets()?);
        Ok(())
    }

    fn add(&mut self, rows: &[PortPackets], received: u64) {
        let mut now = BTreeMap::new();
        for row in rows {
            let key = (row.protocol, row.port);
            let before = now.insert(key, row.packets).or_else(|| self.before.get(&key).copied());
            // A port whose place another took meanwhile begins at 0 again.
            let more = row.packets.checked_sub(before.unwrap_or(0)).unwrap_or(row.packets);
            *self.packets.entry((protocol(row.protocol), row.port)).or_default() += more;
        }
        (self.before, self.is_sampled) = (now, true);
        let before = std::mem::replace(&mut self.received_before, received);
        self.received += received.saturating_sub(before);
    }

    /// The shares since they were asked for last; those of then, where nothing was read since. A sum of less than 1 is
    /// what reached no socket.
    pub(super) fn take(&mut self) -> BTreeMap<PortName, f64> {
        let (packets, received) =
            (std::mem::take(&mut self.packets), std::mem::take(&mut self.received));
        // A socket may take the datagrams of one aggregate singly.
        let all = packets.values().sum::<u64>().max(received);
        if std::mem::take(&mut self.is_sampled) {
            let share = |(name, packets): (PortName, u64)| (name, packets as f64 / all as f64);
            let some = packets.into_iter().filter(|(_, packets)| *packets > 0);
            self.shares = some.map(share).into_map();
        }
        self.shares.clone()
    }
}

fn protocol(number: u32) -> &'static str {
    match number {
        6 => "tcp",
        17 => "udp",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(packets: [u64; 3]) -> Vec<PortPackets> {
        let ports = [(17, 53), (6, 0), (6, 443)];
        let row = |((protocol, port), packets)| PortPackets { protocol, port, packets };
        ports.into_iter().zip(packets).map(row).collect()
    }

    #[test]
    fn shares_are_of_what_came_since_and_stay_while_nobody_looks() {
        let mut ports = Ports::default();
        ports.add(&rows([10, 0, 30]), 80);
        ports.add(&rows([20, 0, 40]), 100);
        let right: BTreeMap<PortName, f64> = [(("udp", 53), 0.2), (("tcp", 443), 0.4)].into();
        assert_eq!(ports.take(), right);
        assert_eq!(ports.take(), right);
        // A sample without packets.
        ports.add(&rows([20, 0, 40]), 100);
        assert_eq!(ports.take(), BTreeMap::new());
        // Datagrams of aggregates: more than were received.
        ports.add(&rows([50, 10, 40]), 110);
        let right: BTreeMap<PortName, f64> = [(("udp", 53), 0.75), (("tcp", 0), 0.25)].into();
        assert_eq!(ports.take(), right);
    }

    #[test]
    fn a_port_that_lost_its_place_begins_at_zero_again() {
        let mut ports = Ports::default();
        ports.add(&rows([50, 10, 40]), 100);
        ports.take();
        let half: BTreeMap<PortName, f64> = [(("udp", 53), 0.5)].into();
        ports.add(&rows([5, 10, 40]), 110);
        assert_eq!(ports.take(), half);
        // It came again only after a reading without it, and has more than it had.
        ports.add(&rows([5, 10, 40])[1..], 110);
        ports.add(&rows([8, 10, 40]), 126);
        assert_eq!(ports.take(), half);
    }
}
