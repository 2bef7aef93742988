//! Whether a window of the exporter counts, and whether its BPF probes have failed.

use std::time::Duration;

use rxpath_record::watch::WatchFrame;

/// A window of this many times its planned length is thrown away: the machine was stopped, or has no time for this.
const LATE: f64 = 3.0;
/// Shorter windows are planned as if they were of this length: on a busy machine they are late for nothing.
const LEAST_PLANNED: Duration = Duration::from_secs(1);

/// Whether a window lasted too long for the longest that was planned.
pub fn is_late(window_s: f64, planned: [Duration; 2]) -> bool {
    let longest = planned.into_iter().fold(LEAST_PLANNED, Duration::max);
    window_s > LATE * longest.as_secs_f64()
}

/// Why a window has no BPF probes, when the one before had them.
pub fn lost_probes<'a>(had_probes: &mut bool, frame: &'a WatchFrame) -> Option<&'a str> {
    let why = frame.gaps.get(WatchFrame::ALL_PROBES).map(String::as_str);
    let had_probes = std::mem::replace(had_probes, why.is_none());
    why.filter(|_| had_probes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_that_fail_are_said_once_each_time() {
        let window = |why: Option<&str>| WatchFrame {
            gaps: why
                .map(|why| (WatchFrame::ALL_PROBES.to_owned(), why.to_owned()))
                .into_iter()
                .collect(),
            ..WatchFrame::default()
        };
        let (good, bad) = (window(None), window(Some("no table")));
        let mut had_probes = true;
        for (frame, said) in
            [(&bad, Some("no table")), (&bad, None), (&good, None), (&bad, Some("no table"))]
        {
            assert_eq!(lost_probes(&mut had_probes, frame), said);
        }
        // What did not load was said at the start.
        assert_eq!(lost_probes(&mut false, &bad), None);
    }

    #[test]
    fn a_window_is_late_after_three_times_the_longest_that_was_planned() {
        let s = Duration::from_secs;
        for (window_s, planned, late) in [
            (29.9, [s(10), s(10)], false),
            (30.1, [s(10), s(10)], true),
            // It was planned before the interval grew or shrank.
            (59.9, [s(20), s(10)], false),
            (59.9, [s(10), s(20)], false),
            (60.1, [s(20), s(10)], true),
            // Short windows on a busy machine.
            (2.9, [Duration::from_millis(100); 2], false),
            (3.1, [Duration::from_millis(100); 2], true),
        ] {
            assert_eq!(is_late(window_s, planned), late, "{window_s} {planned:?}");
        }
    }
}
