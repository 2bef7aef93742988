//! Counters that only grow: how far each has come since it began, and how much of that in a window just before.
//!
//! A count since boot says that something happened, not that it happens: it may be a week old, and a setting that was
//! changed since is judged by its past. So counters are read twice. A finding that rests on a counter asks for a change
//! only when the counter rose between the two readings ([`Evidence`]).

use std::collections::BTreeMap;
use std::time::Duration;

use rxpath_core::Fact;
use rxpath_core::number::grouped;
use rxpath_host::Root;
use rxpath_host::read::counter::Width;
use rxpath_host::read::nic::{HostAnswers, Nic};
use rxpath_host::read::procfs::softnet::CpuLine;
use rxpath_host::read::snapshot::Counters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Gap;

/// Less than this share of all packets is an accident, whatever the setting is.
pub const RARE_RATIO: f64 = 1e-6;

/// What a counter counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Since it began: boot, the start of a driver, the making of a namespace or group.
    pub total: u64,
    /// Between the two readings; `None` with one reading, or when the counter began again between them.
    pub recent: Option<u64>,
}

/// What a count says about now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing was ever counted.
    Never,
    /// Nothing was counted between the readings: what was counted is older.
    Old,
    /// There was one reading: nobody knows how old the count is.
    Unknown,
    /// It rose between the readings.
    Now,
}

impl Evidence {
    /// What to do about a count that is not known to rise; `None` for one that rises.
    pub fn remedy(self) -> Option<String> {
        match self {
            Self::Old => Some(
                "nothing now: watch under traffic, for longer than this time (`rxpath check --window 60s`)"
                    .into(),
            ),
            Self::Unknown => Some(
                "find out whether it still counts: `rxpath check` on the host, or a new capture"
                    .into(),
            ),
            Self::Never | Self::Now => None,
        }
    }
}

impl Count {
    /// The count of two readings of a counter of this width.
    pub fn of(width: Width, first: u64, later: Option<u64>) -> Self {
        let recent = later.and_then(|later| width.step(first, later));
        Self { total: later.unwrap_or(first), recent }
    }

    /// Both counts together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let recent = self.recent.zip(other.recent).map(|(a, b)| a.saturating_add(b));
        Self { total: self.total.saturating_add(other.total), recent }
    }

    /// The sum of counts; nothing counted, and read twice, when there are none.
    pub fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self { total: 0, recent: Some(0) }, Self::plus)
    }

    /// What it says about now.
    pub fn evidence(self) -> Evidence {
        match (self.total, self.recent) {
            (_, Some(1..)) => Evidence::Now,
            (0, _) => Evidence::Never,
            (_, Some(0)) => Evidence::Old,
            (_, None) => Evidence::Unknown,
        }
    }

    /// What was counted between the two readings; what never counted anything did not count then either.
    pub fn in_window(self) -> Result<u64, Gap> {
        let known = self.recent.or((self.total == 0).then_some(0));
        let why = "the counters were read once: what counts now is unknown";
        known.ok_or_else(|| Gap::Absent(why.into()))
    }

    /// The part of `all` that it is, for the time that counts: between the readings when it rose there, else since the
    /// counters began. `None` when nothing was counted at all.
    pub(crate) fn ratio_of(self, all: Self) -> Option<f64> {
        let (part, all) = match (self.recent, all.recent) {
            (Some(part @ 1..), Some(all)) => (part, all),
            _ => (self.total, all.total),
        };
        (all > 0).then(|| part as f64 / all as f64)
    }
}

/// How the counters were read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Watched {
    /// Time between the two readings; `None` when there was one.
    pub window: Option<Duration>,
    /// How long the host was up at the last reading.
    pub uptime: Option<Duration>,
}

/// A count as it stands in a report.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// Since the counter began.
    pub since_start_total: u64,
    /// Between the two readings; absent when there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_window_total: Option<u64>,
    /// Time between the two readings, in ms; absent when there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_ms: Option<u64>,
    /// How long the host was up, in s.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uptime_s: Option<f64>,
}

impl Watched {
    /// `26,076 packets dropped since boot (1 h 07 min), none in the last 250 ms`.
    pub fn tell(&self, count: Count, what: &str, since: &str) -> String {
        let up = self.uptime.map_or_else(String::new, |uptime| match since {
            "boot" => format!(" ({})", long(uptime)),
            _ => format!(" (the host is up {})", long(uptime)),
        });
        let total = grouped(count.total);
        let recent = match (count.recent, self.window) {
            (Some(0), Some(window)) => format!("none in the last {}", short(window)),
            (Some(n), Some(window)) => {
                format!("{} of them in the last {}", grouped(n), short(window))
            }
            (Some(0), None) => "none between two readings".into(),
            (Some(n), None) => format!("{} of them between two readings", grouped(n)),
            _ => "read once: how old the count is, is unknown".into(),
        };
        let what = if count.total == 1 { of_one(what) } else { what.to_owned() };
        format!("{total} {what} since {since}{up}, {recent}")
    }

    /// `in the last 250 ms`.
    pub fn span(&self) -> String {
        match self.window {
            Some(window) => format!("in the last {}", short(window)),
            None => "between two readings".into(),
        }
    }

    /// The count for a report.
    pub fn counted(&self, count: Count) -> Counted {
        Counted {
            since_start_total: count.total,
            in_window_total: count.recent,
            window_ms: self.window.and_then(|window| u64::try_from(window.as_millis()).ok()),
            uptime_s: self.uptime.map(|uptime| uptime.as_secs_f64()),
        }
    }
}

/// Words for several things, for one of them: the first plural loses its s.
fn of_one(what: &str) -> String {
    let mut words: Vec<&str> = what.split(' ').collect();
    if let Some(word) = words.iter_mut().find(|word| word.ends_with('s')) {
        *word = &word[..word.len() - 1];
    }
    words.join(" ")
}

/// `1 h 07 min`, `3 d 4 h`, `12 s`.
fn long(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {minutes:02} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// `250 ms`, `30 s`.
fn short(time: Duration) -> String {
    if time < Duration::from_secs(10) { format!("{} ms", time.as_millis()) } else { long(time) }
}

/// The second reading.
#[derive(Clone, Debug)]
pub(super) struct Later {
    pub counters: Counters,
    pub softnet: Fact<Vec<(u32, CpuLine)>>,
    pub answers: HostAnswers,
    pub devices: BTreeMap<String, LaterDevice>,
    /// Files of counters, by path; of the running host.
    pub files: BTreeMap<String, Fact<String>>,
    /// Where the files are in a captured tree.
    pub tree: Option<Root>,
}

/// The second reading of a device's counters.
#[derive(Clone, Debug)]
pub struct LaterDevice {
    /// `statistics/*` by name.
    pub statistics: BTreeMap<String, u64>,
    /// Counters of the driver; everything else is a gap.
    pub nic: Nic,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(total: u64, recent: Option<u64>) -> Count {
        Count { total, recent }
    }

    #[test]
    fn only_a_counter_that_rose_is_evidence_of_now() {
        assert_eq!(count(0, None).evidence(), Evidence::Never);
        assert_eq!(count(5, None).evidence(), Evidence::Unknown);
        assert_eq!(count(5, Some(0)).evidence(), Evidence::Old);
        assert_eq!(count(5, Some(1)).evidence(), Evidence::Now);
    }

    #[test]
    fn one_reading_says_nothing_about_now_unless_nothing_was_ever_counted() {
        assert_eq!(count(5, Some(2)).in_window(), Ok(2));
        assert_eq!(count(0, None).in_window(), Ok(0));
        assert!(count(5, None).in_window().is_err());
        let watched = Watched { window: Some(Duration::from_millis(250)), uptime: None };
        assert_eq!(watched.span(), "in the last 250 ms");
    }

    #[test]
    fn a_wrap_between_the_readings_is_seen_and_a_reset_is_unknown() {
        let wrapped = Count::of(Width::U32, u64::from(u32::MAX), Some(4));
        assert_eq!(wrapped, count(4, Some(5)));
        assert_eq!(wrapped.evidence(), Evidence::Now);
        assert_eq!(Count::of(Width::U64, 9, Some(3)), count(3, None));
        assert_eq!(Count::of(Width::U64, 9, None), count(9, None));
    }

    #[test]
    fn one_unknown_part_makes_the_sum_unknown() {
        assert_eq!(Count::sum([count(1, Some(1)), count(2, Some(0))]), count(3, Some(1)));
        assert_eq!(Count::sum([count(1, Some(1)), count(2, None)]), count(3, None));
        assert_eq!(Count::sum([]), count(0, Some(0)));
    }

    #[test]
    fn a_ratio_is_of_one_time() {
        let all = count(1000, Some(10));
        assert_eq!(count(500, Some(5)).ratio_of(all), Some(0.5));
        assert_eq!(count(1, Some(0)).ratio_of(all), Some(0.001));
        assert_eq!(count(1, None).ratio_of(count(0, None)), None);
    }

    #[test]
    fn a_count_is_told_with_its_age() {
        let watched = Watched {
            window: Some(Duration::from_millis(250)),
            uptime: Some(Duration::from_secs(4020)),
        };
        assert_eq!(
            watched.tell(count(26_076, Some(0)), "packets dropped", "boot"),
            "26,076 packets dropped since boot (1 h 07 min), none in the last 250 ms"
        );
        assert_eq!(
            watched.tell(count(9, Some(2)), "packets", "the driver was loaded"),
            "9 packets since the driver was loaded (the host is up 1 h 07 min), 2 of them in the last 250 ms"
        );
        for (several, one) in [
            (
                "connections found a listener's queue full",
                "1 connection found a listener's queue full",
            ),
            ("new neighbours refused", "1 new neighbour refused"),
            ("times out of budget", "1 time out of budget"),
        ] {
            let told = Watched::default().tell(count(1, None), several, "boot");
            assert!(told.starts_with(&format!("{one} since boot")), "{told}");
        }
        let once = Watched::default().tell(count(9, None), "packets", "boot");
        assert_eq!(once, "9 packets since boot, read once: how old the count is, is unknown");
        assert_eq!(long(Duration::from_secs(59)), "59 s");
        assert_eq!(long(Duration::from_secs(3 * 86_400 + 4 * 3600)), "3 d 4 h");
        assert_eq!(short(Duration::from_secs(30)), "30 s");
    }
}
