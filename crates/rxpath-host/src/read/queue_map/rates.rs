//! How many packets each queue took between two readings of the map.

use rxpath_core::Fact;
use serde::Serialize;

use super::{DeviceQueues, Row};

/// What moved in one queue between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRate {
    /// Device.
    pub device: String,
    /// Queue.
    pub queue: u32,
    /// Packets a second.
    pub packets_pps: Fact<f64>,
    /// Drops a second.
    pub drops_pps: Fact<f64>,
    /// Interrupts a second.
    pub interrupts_per_s: Fact<f64>,
}

/// The rates of every queue of `now`, from the reading `span_s` before.
pub fn rates(before: &[DeviceQueues], now: &[DeviceQueues], span_s: f64) -> Vec<QueueRate> {
    let mut found = Vec::new();
    for device in now {
        let old = before.iter().find(|old| old.device == device.device);
        for row in &device.rows {
            let old = old.and_then(|old| old.row(row.queue));
            let taken = |row: &Row| row.irq.clone().map(|irq| irq.taken_total);
            found.push(QueueRate {
                device: device.device.clone(),
                queue: row.queue,
                packets_pps: rate(old.map(|old| &old.packets_total), &row.packets_total, span_s),
                drops_pps: rate(old.map(|old| &old.drops_total), &row.drops_total, span_s),
                interrupts_per_s: rate(old.map(taken).as_ref(), &taken(row), span_s),
            });
        }
    }
    found
}

/// The rate of a counter; a gap when it was set back (a driver that rebuilt its queues) or is not known.
fn rate(before: Option<&Fact<u64>>, now: &Fact<u64>, span_s: f64) -> Fact<f64> {
    match (before.and_then(Fact::value), now) {
        (Some(before), Fact::Ok { value }) if value >= before && span_s > 0.0 => {
            Fact::ok((value - before) as f64 / span_s)
        }
        (Some(_), Fact::Ok { .. }) => Fact::absent("the counter was set back"),
        (None, Fact::Ok { .. }) => Fact::absent("was not there at the reading before"),
        (_, gap) => gap.clone().map(|_| 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_was_set_back_has_no_rate() {
        assert_eq!(rate(Some(&Fact::ok(10)), &Fact::ok(30), 2.0), Fact::ok(10.0));
        assert!(rate(Some(&Fact::ok(10)), &Fact::ok(3), 2.0).gap().unwrap().contains("set back"));
        assert!(rate(None, &Fact::ok(3), 2.0).gap().unwrap().contains("before"));
        let gone: Fact<u64> = Fact::absent("no counter");
        assert_eq!(rate(Some(&Fact::ok(10)), &gone, 2.0).gap().unwrap(), "absent: no counter");
    }
}
