//! When a link loses its carrier in a window, by the kernel's own report.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_host::read::netlink::{LinkEvents, NetworkLink};

use crate::clock::monotonic_ns;

/// Listens to the links that carry an experiment's packets, from a moment before the window on. A loss in the window has the instant
/// at which its report was read.
pub struct Carriers {
    /// `None` if nothing is reported here or reports were lost: then counters alone show a loss, without an instant.
    events: Option<LinkEvents>,
    /// How often the carrier of each device had changed before.
    before: BTreeMap<String, u32>,
    /// When each device lost its carrier first: `None` before the window.
    lost_ns: BTreeMap<String, Option<u64>>,
    has_begun: bool,
}

impl Carriers {
    /// Listens from now on, as yet to no device.
    pub fn listen() -> Self {
        let events = LinkEvents::open().ok();
        Self { events, before: BTreeMap::new(), lost_ns: BTreeMap::new(), has_begun: false }
    }

    /// Listens to these devices, of which it is given how often their carrier changed before.
    #[must_use]
    pub fn of(self, before: BTreeMap<String, u32>) -> Self {
        Self { before, ..self }
    }

    /// The window begins: what was reported until now was before it. Never waits.
    pub fn begin(&mut self) {
        self.note();
        self.has_begun = true;
    }

    /// Reads what was reported since the last call. Never waits.
    pub fn note(&mut self) {
        let Some(events) = &mut self.events else { return };
        match events.take() {
            Ok(links) => {
                let now_ns = monotonic_ns();
                for link in &links {
                    self.reported(link, now_ns);
                }
            }
            Err(_) => self.events = None,
        }
    }

    fn reported(&mut self, link: &NetworkLink, at_ns: u64) {
        let before = self.before.get(&link.name).copied();
        let Some((before, now)) = before.zip(link.carrier_changes) else { return };
        // A report from before the devices were read has fewer.
        let changes = now.saturating_sub(before);
        // One change that ends with a carrier is no loss. Two may come in one report.
        if changes > 1 || (changes == 1 && link.carrier == Some(false)) {
            self.lost_ns.entry(link.name.clone()).or_insert(self.has_begun.then_some(at_ns));
        }
    }

    /// When each device lost its carrier first, where that was reported, in words that `the window` follows: `1.2 s into`.
    pub fn lost_when(&self, from_ns: u64) -> BTreeMap<String, String> {
        let when = |at_ns: Option<u64>| match at_ns {
            Some(at_ns) => format!("{:.1} s into", at_ns.saturating_sub(from_ns) as f64 / 1e9),
            None => "just before".to_owned(),
        };
        self.lost_ns.iter().map(|(device, at_ns)| (device.clone(), when(*at_ns))).into_map()
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

    /// When it was lost, of reports before the window, which begins at 0.5 s, and of reports at 1, 2, ... s.
    fn lost_when(earlier: &[NetworkLink], reports: &[NetworkLink]) -> Option<String> {
        let mut carriers = Carriers::listen().of([("ens1".to_owned(), 2)].into());
        for link in earlier {
            carriers.reported(link, 400_000_000);
        }
        carriers.begin();
        for (second, link) in (1..).zip(reports) {
            carriers.reported(link, second * 1_000_000_000);
        }
        carriers.lost_when(500_000_000).remove("ens1")
    }

    #[test]
    fn a_carrier_is_lost_when_that_is_reported_first() {
        assert_eq!(lost_when(&[], &[]), None);
        // Another change of the link.
        assert_eq!(lost_when(&[], &[ens1(2, true)]), None);
        let again = [ens1(2, true), ens1(3, false), ens1(4, true), ens1(5, false)];
        assert_eq!(lost_when(&[], &again).unwrap(), "1.5 s into");
        // Lost and back in one report.
        assert_eq!(lost_when(&[], &[ens1(4, true)]).unwrap(), "0.5 s into");
        // It had none, and gets one.
        assert_eq!(lost_when(&[], &[ens1(3, true)]), None);
    }

    #[test]
    fn a_loss_that_was_reported_before_the_window_has_no_instant_in_it() {
        let back = [ens1(4, true)];
        assert_eq!(lost_when(&[ens1(3, false)], &back).unwrap(), "just before");
        assert_eq!(lost_when(&[ens1(3, false)], &[]).unwrap(), "just before");
        assert_eq!(lost_when(&[ens1(2, true)], &back).unwrap(), "0.5 s into");
        // Of a loss that the first reading of the link has already.
        assert_eq!(lost_when(&[ens1(1, false)], &back).unwrap(), "0.5 s into");
    }

    #[test]
    fn other_devices_and_kernels_that_count_no_changes_have_no_instant() {
        let other = NetworkLink { name: "ens2".into(), ..ens1(3, false) };
        let uncounted = NetworkLink { carrier_changes: None, ..ens1(3, false) };
        assert_eq!(lost_when(&[], &[other, uncounted]), None);
    }
}
