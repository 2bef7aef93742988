//! Readers that fail, counted by what they read: a scraper may come when all is read again.

use std::collections::BTreeSet;

use rxpath_record::watch::WatchFrame;

/// How gaps begin of which each device may have one.
pub(crate) const OF_DEVICE: &str = "queues of ";
/// And those of single counters: each that is in one of a window's two readings alone.
pub(crate) const OF_COUNTER: &str = "machine/";
const PROBES: &str = "probes";
/// The readers of a window.
pub(crate) const READERS: [&str; 6] = ["counters", "devices", PROBES, "queues", "sockets", "tasks"];

/// Which of them left this gap. None for what was read: estimates, records without room, what is left out to keep the budget.
fn reader(gap: &str, why: &str) -> Option<&'static str> {
    match gap {
        _ if why.starts_with(WatchFrame::READ_SELDOM) => None,
        "snmp" | "netstat" | "snmp6" | "softnet" | "energy" => Some("counters"),
        "devices" => Some("devices"),
        "UDP sockets" | "TCP sockets" => Some("sockets"),
        "tasks" => Some("tasks"),
        "queues" => Some("queues"),
        WatchFrame::ALL_PROBES => Some(PROBES),
        gap => gap.starts_with(OF_DEVICE).then_some("queues"),
    }
}

/// What is no failure although it leaves a gap.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// What was read in no window so far: this host does not have it, or does not show it to this user. None before the first.
    never_read: Option<BTreeSet<String>>,
    /// Devices whose queues the last window has, and those that had some and fail since. Others are forgotten: each container
    /// brings a device with a new name.
    queues_of: BTreeSet<String>,
    /// The probes are left out to keep the budget.
    pub(crate) without_probes: bool,
}

impl Failures {
    /// The readers that failed in a window with these gaps.
    pub(crate) fn of(&mut self, frame: &WatchFrame) -> BTreeSet<&'static str> {
        let gaps = &frame.gaps;
        let never_read = self.never_read.get_or_insert_with(|| gaps.keys().cloned().collect());
        never_read.retain(|what| gaps.contains_key(what));
        let was_read = |what: &str| match what.strip_prefix(OF_DEVICE) {
            // A device may come later.
            Some(device) => self.queues_of.contains(device),
            None => !never_read.contains(what),
        };
        let failed = gaps.iter().filter(|(what, _)| was_read(what));
        let mut readers: BTreeSet<&'static str> =
            failed.filter_map(|(what, why)| reader(what, why)).collect();
        if self.without_probes {
            readers.remove(PROBES);
        }
        self.queues_of.retain(|device| gaps.contains_key(&format!("{OF_DEVICE}{device}")));
        self.queues_of.extend(frame.queues.iter().map(|queue| queue.device.clone()));
        readers
    }
}

#[cfg(test)]
mod tests {
    use rxpath_record::watch::QueueRow;

    use super::*;
    use crate::families::Families;
    use crate::governor::{Governor, WindowCost};

    fn frame(gaps: &[&str]) -> WatchFrame {
        let gaps = gaps.iter().map(|what| ((*what).to_owned(), "no".to_owned())).collect();
        WatchFrame { gaps, ..WatchFrame::default() }
    }

    fn queue_of(device: &str) -> QueueRow {
        QueueRow { device: device.into(), ..QueueRow::default() }
    }

    fn count(families: &Families, source: &str) -> Option<f64> {
        let series = format!("rxpath_collect_errors_total{{source=\"{source}\"}} ");
        let text = families.text().unwrap();
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    }

    #[test]
    fn a_reader_that_worked_and_fails_counts_once_a_window() {
        let mut families = Families::new("1", 1).unwrap();
        // A host without IPv6, and an exporter that may not list TCP's sockets at first.
        let queues = vec![queue_of("eth0"), queue_of("eth1")];
        families.own(&WatchFrame { queues, ..frame(&["snmp6", "TCP sockets"]) });
        for reader in READERS {
            assert_eq!(count(&families, reader), Some(0.0), "{reader}");
        }
        for gaps in [
            ["snmp6", "verdict", "queues of eth0", "queues of eth1"].as_slice(),
            &["snmp6", "devices", "TCP sockets", "UDP sockets", "tasks"],
            &["snmp6", "devices", "softnet", "owners of sockets"],
        ] {
            families.own(&frame(gaps));
        }
        for (reader, failures) in
            [("counters", 1.0), ("devices", 2.0), ("sockets", 1.0), ("tasks", 1.0), ("queues", 1.0)]
        {
            assert_eq!(count(&families, reader), Some(failures), "{reader}");
        }
        assert_eq!(count(&families, PROBES), Some(0.0));
    }

    #[test]
    fn probes_that_are_lost_count_and_those_that_the_budget_forbids_do_not() {
        let (mut families, mut governor) = (Families::new("1", 1).unwrap(), Governor::new(0.01));
        families.governed(&governor);
        families.own(&frame(&[]));
        families.own(&frame(&[WatchFrame::ALL_PROBES]));
        assert_eq!(count(&families, PROBES), Some(1.0));
        let dear = WindowCost { window_s: 60.0, threads_s: 9.0, programs_s: 0.0 };
        while governor.course().with_probes {
            governor.window(dear);
        }
        families.governed(&governor);
        families.own(&frame(&[WatchFrame::ALL_PROBES]));
        assert_eq!(count(&families, PROBES), Some(1.0));
    }

    #[test]
    fn a_device_is_remembered_while_its_queues_are_there_and_no_longer() {
        let mut failures = Failures::default();
        let mut window = |device: &str, gaps: &[&str]| {
            let queues = vec![queue_of(device)];
            let failed = failures.of(&WatchFrame { queues, ..frame(gaps) });
            (failed.len(), failures.queues_of.len())
        };
        assert_eq!(window("eth0", &[]), (0, 1));
        // It fails for some windows while devices of containers come and go.
        for number in 0..100 {
            assert_eq!(window(&format!("veth{number}"), &["queues of eth0"]), (1, 2));
        }
        assert_eq!(window("eth1", &[]), (0, 1));
    }

    #[test]
    fn what_was_never_read_is_no_failure() {
        let mut families = Families::new("1", 1).unwrap();
        families.own(&frame(&[WatchFrame::ALL_PROBES]));
        // A device that came later.
        (0..3).for_each(|_| families.own(&frame(&[WatchFrame::ALL_PROBES, "queues of tun0"])));
        assert_eq!(count(&families, PROBES), Some(0.0));
        assert_eq!(count(&families, "queues"), Some(0.0));
    }

    #[test]
    fn a_list_that_is_read_seldom_and_records_without_room_are_no_failures() {
        let mut families = Families::new("1", 1).unwrap();
        families.own(&frame(&[]));
        let seldom =
            format!("{}5 minutes: the last list took 31 ms of CPU time", WatchFrame::READ_SELDOM);
        let mut dear = frame(&["slices of tasks"]);
        dear.gaps.insert("TCP sockets".into(), seldom);
        families.own(&dear);
        assert_eq!(count(&families, "sockets"), Some(0.0));
        assert_eq!(count(&families, "tasks"), Some(0.0));
    }
}
