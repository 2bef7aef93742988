//! Packets that were dropped, by reason.

use std::collections::BTreeMap;

use rxpath_record::watch::DropRow;

use crate::families::{DROPPED, Families};
use crate::frame::OTHER;

/// How reasons begin that the kernel has a number for and no name: those of modules, which are in no list. The numbers mean
/// something else on another kernel.
const UNNAMED: [&str; 2] = ["reason ", "subsystem "];

impl Families {
    /// Those of a window of this length. `other` has the reasons without a series, and those without a name.
    pub(crate) fn drops(&mut self, rows: &[DropRow], window_s: f64) {
        let mut amounts: BTreeMap<[String; 3], f64> = BTreeMap::new();
        // Whether its reason can be a label.
        let is_known = |row: &&DropRow| {
            row.reason != OTHER && !UNNAMED.iter().any(|begin| row.reason.starts_with(begin))
        };
        for row in rows.iter().filter(is_known) {
            let reason = if row.reason.is_empty() { &row.place } else { &row.reason };
            let protocol = if row.transport.is_empty() { &row.protocol } else { &row.transport };
            let netns = if row.netns == 0 || row.netns == self.netns { "host" } else { OTHER };
            let key = [reason.clone(), protocol.clone(), netns.to_owned()];
            *amounts.entry(key).or_default() += row.packets_pps * window_s;
        }
        let turn = self.reasons.turn(amounts, window_s);
        self.own_series(DROPPED, &turn, <[String; 3]>::clone);
        let unknown =
            rows.iter().filter(|row| !is_known(row)).map(|row| row.packets_pps * window_s);
        self.add(DROPPED, &[OTHER, OTHER, OTHER], turn.other + unknown.sum::<f64>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a series after three windows of two seconds with these rows.
    fn after(rows: &[DropRow], labels: [&str; 3]) -> Option<f64> {
        let mut families = Families::new("1", 4).unwrap();
        (0..3).for_each(|_| families.drops(rows, 2.0));
        let text = families.text().unwrap();
        let [netns, protocol, reason] = labels;
        let series = format!(
            "rxpath_dropped_packets_total{{netns=\"{netns}\",protocol=\"{protocol}\",reason=\"{reason}\"}} "
        );
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    }

    fn row(reason: &str, netns: u32) -> DropRow {
        DropRow { reason: reason.into(), packets_pps: 5.0, netns, ..DropRow::default() }
    }

    #[test]
    fn drops_of_another_network_namespace_have_a_series_of_their_own() {
        let rows = [row("NO_SOCKET", 4), row("NO_SOCKET", 5), row("NO_SOCKET", 0)];
        // Of the third window: two windows before its admission went to the others.
        assert_eq!(after(&rows, ["host", "", "NO_SOCKET"]), Some(20.0));
        assert_eq!(after(&rows, ["other", "", "NO_SOCKET"]), Some(10.0));
    }

    #[test]
    fn a_reason_that_this_kernel_has_no_name_for_is_another() {
        let rows = [row("reason 999", 4), row("subsystem 1 reason 3", 4), row(OTHER, 4)];
        assert_eq!(after(&rows, [OTHER; 3]), Some(90.0));
        for reason in ["reason 999", "subsystem 1 reason 3"] {
            assert_eq!(after(&rows, ["host", "", reason]), None);
        }
    }

    #[test]
    fn packets_without_a_known_reason_take_no_place() {
        let rows = [row("NO_SOCKET", 4), row(OTHER, 0)];
        // And the two windows before the other row was admitted.
        assert_eq!(after(&rows, [OTHER; 3]), Some(30.0 + 20.0));
        assert_eq!(after(&rows, ["host", "", "NO_SOCKET"]), Some(10.0));
    }
}
