//! When a link loses its carrier in a window, by the kernel's own report.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_host::read::netlink::{LinkEvents, NetworkLink};

use crate::clock::monotonic_ns;

/// Listens to the links that carry an experiment's packets. A loss has the instant at which its report was read.
pub struct Carriers {
    /// `None` if nothing is reported here or reports were lost: then counters alone show a loss, without an instant.
    events: Option<LinkEvents>,
    /// How often the carrier of each device had changed before.
    before: BTreeMap<String, u32>,
    lost_ns: BTreeMap<String, u64>,
}

impl Carriers {
    /// Listens from now on, as yet to no device.
    pub fn listen() -> Self {
        let events = LinkEvents::open().ok();
        Self { events, before: BTreeMap::new(), lost_ns: BTreeMap::new() }
    }

    /// Listens to these devices, of which it is given how often their carrier changed before.
    #[must_use]
    pub fn of(self, before: BTreeMap<String, u32>) -> Self {
        Self { before, ..self }
    }

    /// Reads what was reported since the last call. Never waits.
    pub fn note(&mut self) {
        let Some(events) = &mut self.events else { return };
        match events.take() {
            Ok(links) => {
                let now_ns = monotonic_ns();
                links.iter().for_each(|link| self.reported(link, now_ns));
            }
            Err(_) => self.events = None,
        }
    }

    fn reported(&mut self, link: &NetworkLink, at_ns: u64) {
        let before = self.before.get(&link.name).copied();
        let Some((before, now)) = before.zip(link.carrier_changes) else { return };
        let changes = now.wrapping_sub(before);
        // One change that ends with a carrier is no loss. Two may come in one report.
        if changes > 1 || (changes == 1 && link.carrier == Some(false)) {
            self.lost_ns.entry(link.name.clone()).or_insert(at_ns);
        }
    }

    /// How long after the begin of the window each device lost its carrier first, where that was reported. **Unit** s.
    pub fn lost_s(&self, from_ns: u64) -> BTreeMap<String, f64> {
        let lost = self.lost_ns.iter();
        lost.map(|(device, at_ns)| (device.clone(), at_ns.saturating_sub(from_ns) as f64 / 1e9))
            .into_map()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ens1(carrier_changes: u32, carrier: bool) -> NetworkLink {
        NetworkLink {
            name: "ens1".into(),
            carrier: Some(carrier),
            carrier_changes: Some(carrier_changes),
            ..NetworkLink::default()
        }
    }

    /// When it was lost, of reports at 1, 2, ... s; the window begins at 0.5 s.
    fn lost_s(reports: &[NetworkLink]) -> Option<f64> {
        let mut carriers = Carriers::listen().of([("ens1".to_owned(), 2)].into());
        for (second, link) in (1..).zip(reports) {
            carriers.reported(link, second * 1_000_000_000);
        }
        carriers.lost_s(500_000_000).get("ens1").copied()
    }

    #[test]
    fn a_carrier_is_lost_when_that_is_reported_first() {
        assert_eq!(lost_s(&[]), None);
        // Another change of the link.
        assert_eq!(lost_s(&[ens1(2, true)]), None);
        let again = [ens1(2, true), ens1(3, false), ens1(4, true), ens1(5, false)];
        assert_eq!(lost_s(&again), Some(1.5));
        // Lost and back in one report.
        assert_eq!(lost_s(&[ens1(4, true)]), Some(0.5));
        // It had none, and gets one.
        assert_eq!(lost_s(&[ens1(3, true)]), None);
    }

    #[test]
    fn other_devices_and_kernels_that_count_no_changes_have_no_instant() {
        let other = NetworkLink { name: "ens2".into(), ..ens1(3, false) };
        let uncounted = NetworkLink { carrier_changes: None, ..ens1(3, false) };
        assert_eq!(lost_s(&[other, uncounted]), None);
    }
}
