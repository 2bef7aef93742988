//! When a link loses its carrier in a trial, up to the end of its window, by the kernel's own report.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_host::read::netlink::{LinkEvents, NetworkLink};

use crate::clock::monotonic_ns;

/// A loss that was less long before the window has no number.
const LEAST_NS: u64 = 50_000_000;

/// Listens to the links that carry an experiment's packets, from the order to measure a window on. A loss has the instant at which
/// its report was read.
pub struct Carriers {
    /// `None` if nothing is reported here or reports were lost: then counters alone show a loss, without an instant.
    events: Option<LinkEvents>,
    /// How often the carrier of each device has changed, by its last report or reading; others are not listened to.
    pub(super) changes: BTreeMap<String, u32>,
    /// When each device lost its carrier first: until the links were read a moment ahead of the window, and since.
    lost_ns: [BTreeMap<String, u64>; 2],
    is_near: bool,
}

impl Carriers {
    /// Listens from now on, as yet to no device.
    pub fn listen() -> Self {
        let events = LinkEvents::open().ok();
        let lost_ns = [BTreeMap::new(), BTreeMap::new()];
        Self { events, changes: BTreeMap::new(), lost_ns, is_near: false }
    }

    /// The links were read again, a moment ahead of the window: what is reported later and is in this reading was before it.
    pub fn near(&mut self, read: BTreeMap<String, u32>) {
        for (device, changes) in read {
            if let Some(known) = self.changes.get_mut(&device) {
                *known = changes.max(*known);
            }
        }
        self.is_near = true;
    }

    /// The window begins: what was reported until now was before it. Never waits.
    pub fn begin(&mut self, from_ns: u64) {
        self.note_by(|| monotonic_ns().min(from_ns));
    }

    /// Reads what was reported since the last call. Never waits.
    pub fn note(&mut self) {
        self.note_by(monotonic_ns);
    }

    fn note_by(&mut self, clock_ns: impl FnOnce() -> u64) {
        let Some(events) = &mut self.events else { return };
        match events.take() {
            Ok(links) => {
                let now_ns = clock_ns();
                for link in &links {
                    self.reported(link, now_ns);
                }
            }
            Err(_) => self.events = None,
        }
    }

    fn reported(&mut self, link: &NetworkLink, at_ns: u64) {
        let Some(known) = self.changes.get_mut(&link.name) else { return };
        let Some(now) = link.carrier_changes else { return };
        // A report from before the devices were read has fewer.
        let changes = now.saturating_sub(*known);
        *known = now.max(*known);
        // One change that ends with a carrier is no loss. Two may come in one report.
        if changes > 1 || (changes == 1 && link.carrier == Some(false)) {
            let part = &mut self.lost_ns[usize::from(self.is_near)];
            part.entry(link.name.clone()).or_insert(at_ns);
        }
    }

    /// When each device lost its carrier first, where that was reported, in words that `the window` follows: `1.2 s into`. Until the
    /// links were read ahead of the window, and since.
    pub fn lost_when(&self, from_ns: u64) -> [BTreeMap<String, String>; 2] {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let when = |at_ns: u64| {
            if at_ns > from_ns {
                format!("{:.1} s into", seconds(at_ns - from_ns))
            } else if from_ns - at_ns >= LEAST_NS {
                format!("{:.1} s before", seconds(from_ns - at_ns))
            } else {
                "just before".to_owned()
            }
        };
        self.lost_ns.each_ref().map(|part| {
            part.iter().map(|(device, at_ns)| (device.clone(), when(*at_ns))).into_map()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BEGIN_NS: u64 = 5_000 * MS;

    fn ens1(carrier_changes: u32, carrier: bool) -> NetworkLink {
        NetworkLink {
            name: "ens1".into(),
            carrier: Some(carrier),
            carrier_changes: Some(carrier_changes),
            ..NetworkLink::default()
        }
    }

    /// Of reports at these milliseconds after the order. The links are read again at 4.85 s, with so many changes, and the window
    /// begins at 5 s.
    fn lost_when(reports: &[(u64, NetworkLink)], read_again: u32) -> [Option<String>; 2] {
        let mut carriers = Carriers::listen();
        carriers.changes.insert("ens1".to_owned(), 2);
        let (early, late): (Vec<_>, Vec<_>) = reports.iter().partition(|(at, _)| *at < 4_850);
        for (at, link) in early {
            carriers.reported(link, at * MS);
        }
        carriers.near([("ens1".to_owned(), read_again)].into());
        for (at, link) in late {
            carriers.reported(link, at * MS);
        }
        carriers.lost_when(BEGIN_NS).map(|mut part| part.remove("ens1"))
    }

    fn since(reports: &[(u64, NetworkLink)]) -> Option<String> {
        let [before, since] = lost_when(reports, 2);
        assert_eq!(before, None, "{reports:?}");
        since
    }

    #[test]
    fn a_carrier_is_lost_when_that_is_reported_first() {
        assert_eq!(since(&[]), None);
        // Another change of the link.
        assert_eq!(since(&[(5_500, ens1(2, true))]), None);
        let again = [(5_500, 2, true), (6_500, 3, false), (7_500, 4, true), (8_500, 5, false)];
        let again = again.map(|(at, changes, carrier)| (at, ens1(changes, carrier)));
        assert_eq!(since(&again).unwrap(), "1.5 s into");
        // Lost and back in one report.
        assert_eq!(since(&[(5_500, ens1(4, true))]).unwrap(), "0.5 s into");
        // It had none, and gets one.
        assert_eq!(since(&[(5_500, ens1(3, true))]), None);
        // A report of before the first reading of the links.
        let old = [(5_100, ens1(1, false)), (5_500, ens1(4, true))];
        assert_eq!(since(&old).unwrap(), "0.5 s into");
    }

    #[test]
    fn a_loss_in_ramp_and_settle_says_how_long_before_the_window_it_was() {
        let lost = || (1_200, ens1(3, false));
        let before = |reports: &[(u64, NetworkLink)]| lost_when(reports, 4);
        let words = Some("3.8 s before".to_owned());
        assert_eq!(before(&[lost(), (1_300, ens1(4, true))]), [words.clone(), None]);
        // It is back in a report that comes late.
        assert_eq!(before(&[lost(), (5_300, ens1(4, true))]), [words.clone(), None]);
        // Again in the window.
        let again = [lost(), (1_300, ens1(4, true)), (6_200, ens1(5, false))];
        assert_eq!(before(&again), [words, Some("1.2 s into".to_owned())]);
        // A loss that the reading ahead of the window has, and that is reported in the window.
        assert_eq!(before(&[(5_300, ens1(4, true))]), [None, None]);
    }

    #[test]
    fn a_loss_a_moment_before_the_window_is_not_in_it() {
        let at = |ms: u64| since(&[(ms, ens1(3, false))]);
        assert_eq!(at(4_900).unwrap(), "0.1 s before");
        assert_eq!(at(4_990).unwrap(), "just before");
        // What is read when the window begins has its begin.
        assert_eq!(at(5_000).unwrap(), "just before");
    }

    #[test]
    fn other_devices_and_kernels_that_count_no_changes_have_no_instant() {
        let other = NetworkLink { name: "ens2".into(), ..ens1(3, false) };
        let uncounted = NetworkLink { carrier_changes: None, ..ens1(3, false) };
        assert_eq!(since(&[(5_500, other), (5_600, uncounted)]), None);
    }
}
