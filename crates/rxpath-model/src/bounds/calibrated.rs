//! Costs of a calibration as parameters of the bounds: only for parameters that the user did not give.

use rxpath_core::{Bytes, ItemCount, Nanos};

use super::parameters::Parameters;
use crate::calibration::Calibration;

impl Parameters {
    /// Takes from a calibration what is not known yet, and gives the names of what it took.
    ///
    /// The reader pays a call per datagram; the ring is emptied by a NAPI thread, whose polls and wake-ups are in its
    /// cost per packet; the backlog of RPS pays an interrupt between CPUs per packet, which is the dearest case.
    pub fn calibrated(&mut self, calibration: &Calibration) -> Vec<&'static str> {
        let value = |key: &str| calibration.value(key).map(|value| value.round() as u64);
        let sum = |keys: &[&str]| keys.iter().map(|key| value(key)).sum::<Option<u64>>();
        let size = calibration.conditions.size_bytes;
        let mut taken = Vec::new();
        let mut take = |name, slot: &mut Option<Nanos>, value: Option<u64>| {
            if let (None, Some(ns)) = (&slot, value.filter(|ns| *ns > 0)) {
                *slot = Some(Nanos(ns));
                taken.push(name);
            }
        };
        take("service_ns", &mut self.service_ns, sum(&["reader.call_ns", "reader.packet_ns"]));
        take("packet_ns", &mut self.packet_ns, value("softirq.packet_ns"));
        let backlog = sum(&["rps.packet_ns", "rps.ipi_ns"]);
        let backlog = backlog.map(|ns| ns + value("rps.poll_ns").unwrap_or(0));
        take("backlog_packet_ns", &mut self.backlog_packet_ns, backlog);
        if let (None, Some(ring)) = (&self.ring, value("nic.ring")) {
            self.ring = Some(ItemCount(ring));
            taken.push("ring");
        }
        // The kernel's memory for a datagram is known for one size only.
        let same_size = self.size.as_ref().is_none_or(|own| own.0 == size);
        if let (true, None, Some(truesize)) = (same_size, &self.truesize, value("socket.truesize"))
        {
            self.truesize = Some(Bytes(truesize));
            self.size = Some(Bytes(size));
            taken.extend(["truesize", "size"]);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::calibration::{CalibratedHost, Conditions, Estimate, SCHEMA};

    fn made() -> Calibration {
        let costs = [
            ("reader.call_ns", 300.0),
            ("reader.packet_ns", 700.4),
            ("softirq.packet_ns", 900.0),
            ("rps.packet_ns", 800.0),
            ("rps.ipi_ns", 5000.0),
            ("rps.poll_ns", 2000.0),
            ("nic.ring", 255.0),
            ("socket.truesize", 832.0),
        ];
        let costs =
            costs.map(|(key, value)| (key.to_owned(), Estimate::exact(value, "ns", "told")));
        Calibration {
            schema: SCHEMA.into(),
            made: String::new(),
            host: CalibratedHost::default(),
            conditions: Conditions { size_bytes: 32, ..Conditions::default() },
            parameters: BTreeMap::from(costs),
            caveats: Vec::new(),
        }
    }

    #[test]
    fn what_is_given_wins_and_the_rest_is_taken() {
        let mut own = Parameters { ring: Some(ItemCount(1024)), ..Parameters::default() };
        let taken = own.calibrated(&made());
        assert_eq!(own.ring, Some(ItemCount(1024)));
        assert_eq!(own.service_ns, Some(Nanos(1000)));
        assert_eq!(own.backlog_packet_ns, Some(Nanos(7800)));
        assert_eq!((own.truesize, own.size), (Some(Bytes(832)), Some(Bytes(32))));
        assert_eq!(taken, ["service_ns", "packet_ns", "backlog_packet_ns", "truesize", "size"]);
    }

    #[test]
    fn the_memory_of_another_size_is_not_taken() {
        let mut own = Parameters { size: Some(Bytes(1472)), ..Parameters::default() };
        let taken = own.calibrated(&made());
        assert_eq!(own.truesize, None);
        assert!(!taken.contains(&"truesize"));
    }
}
