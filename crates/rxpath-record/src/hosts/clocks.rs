//! How the clocks of the hosts of a run compare, and the one-way delays that they allow.

use rxpath_core::number::span;
use rxpath_core::{Nanos, PathSide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifest::{HostPart, Manifest, VariantSummary};

/// How far one clock may be from an even pace: 600 ppm, more than the 500 ppm to which the kernel limits NTP's frequency
/// correction (`MAXFREQ`, include/linux/timex.h).
pub const DRIFT_PPM: u64 = 600;

/// How much faster one clock ran than another, from two comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockDrift {
    /// Middle of the interval that the comparisons allow. **Unit** parts per million.
    pub ahead_ppm: f64,
    /// Half of its width. **Unit** parts per million.
    pub error_ppm: f64,
    /// Time between the comparisons. **Unit** ns.
    pub span_ns: u64,
}

impl ClockDrift {
    /// For people: `1.2 +-0.3 ppm over 15s`.
    pub fn text(&self) -> String {
        let span = Nanos(self.span_ns);
        format!("{:.1} +-{:.1} ppm over {span}", self.ahead_ppm, self.error_ppm)
    }

    /// How much faster this clock ran than another that was compared with the same third one.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        Self {
            ahead_ppm: self.ahead_ppm - other.ahead_ppm,
            error_ppm: self.error_ppm + other.error_ppm,
            span_ns: self.span_ns.min(other.span_ns),
        }
    }
}

/// How far a sender's clock is ahead of a receiver's, by datagrams on the measured path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathOffset {
    /// Middle of the interval that the exchanges allow. **Unit** ns.
    pub ahead_ns: i64,
    /// Half of its width. **Unit** ns.
    pub error_ns: u64,
}

/// The clocks of a sender and a receiver: by the comparison of each with the coordinator's, or by datagrams on the measured path
/// if these show it more closely.
#[derive(Clone, Debug, PartialEq)]
pub struct PairClocks {
    /// The sender.
    pub sender: String,
    /// The receiver.
    pub receiver: String,
    /// How far the sender's clock was ahead: when the run began, on the measured path when it ended. **Unit** ns.
    pub ahead_ns: i64,
    /// How far that may be wrong. **Unit** ns.
    pub error_ns: u64,
    /// How much faster the sender's clock ran.
    pub drift: Option<ClockDrift>,
    /// Both hosts have one clock: there is nothing to compare.
    pub is_one: bool,
    /// It is known by datagrams on the measured path.
    pub is_by_path: bool,
}

impl PairClocks {
    fn of((sender, tx): (&String, &HostPart), (receiver, rx): (&String, &HostPart)) -> Self {
        let is_one = tx.clock.is_some() && tx.clock == rx.clock;
        // Each was compared with the coordinator's at an instant of its own.
        let compared = tx.clock_at_ns.zip(rx.clock_at_ns);
        let between_ns = compared.map_or(0, |(tx, rx)| tx.abs_diff(rx));
        let apart_ns = between_ns.saturating_mul(2 * DRIFT_PPM) / 1_000_000;
        let errors = [tx.clock_error_ns, rx.clock_error_ns, apart_ns];
        let control = PathOffset {
            ahead_ns: tx.clock_ahead_ns.saturating_sub(rx.clock_ahead_ns),
            error_ns: errors.into_iter().fold(0, u64::saturating_add),
        };
        let path = tx.path_clocks.get(receiver).filter(|path| path.error_ns < control.error_ns);
        let known = if is_one { PathOffset::default() } else { *path.unwrap_or(&control) };
        let drift = tx.drift.zip(rx.drift).filter(|_| !is_one);
        Self {
            sender: sender.clone(),
            receiver: receiver.clone(),
            ahead_ns: known.ahead_ns,
            error_ns: known.error_ns,
            drift: drift.map(|(tx, rx)| tx.less(&rx)),
            is_one,
            is_by_path: path.is_some() && !is_one,
        }
    }

    /// When in the run the clocks were ahead by that: a comparison over the measured path is made once the load is over.
    pub fn when(&self) -> &'static str {
        if self.is_by_path { "at the end" } else { "at the start" }
    }

    /// For people: `gen1 -> sut known to +-8.9us at the end on the measured path, apart by 1.2 +-0.3 ppm over 15s`.
    pub fn text(&self) -> String {
        if self.is_one {
            return format!("{} -> {} one clock", self.sender, self.receiver);
        }
        let apart = self.drift.map(|drift| {
            let drift = ClockDrift { ahead_ppm: drift.ahead_ppm.abs(), ..drift };
            format!(", apart by {}", drift.text())
        });
        let by = if self.is_by_path { " on the measured path" } else { "" };
        let (error, apart) = (Nanos(self.error_ns), apart.unwrap_or_default());
        let when = self.when();
        format!("{} -> {} known to +-{error} {when}{by}{apart}", self.sender, self.receiver)
    }
}

/// One-way delays of a variant between hosts: medians over its trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathDelays {
    /// Median and 99th percentile, where the clocks allow them. **Unit** us.
    pub one_way_us: Option<[f64; 2]>,
    /// How far these may be wrong; `None` where both hosts have one clock, and without them. **Unit** us.
    pub bound_us: Option<f64>,
    /// Median and 99th percentile above the least delay of each trial. **Unit** us.
    pub above_least_us: Option<[f64; 2]>,
}

impl PathDelays {
    /// For people: `one-way delay p50 212us, p99 1.9ms, each +-19us; above its least p50 171us, p99 1.86ms`.
    pub fn text(&self) -> String {
        let both = |[p50, p99]: [f64; 2]| format!("p50 {}, p99 {}", us(p50), us(p99));
        let bound = self.bound_us.map(us);
        let one_way = match (self.one_way_us, bound) {
            (Some(found), Some(bound)) => format!("{}, each +-{bound}", both(found)),
            (Some(found), None) => both(found),
            // Clocks that are not known well enough, or a clock that jumped: the warning of each trial says which.
            (None, _) => "not given (warning no-one-way-delay)".into(),
        };
        let above = self.above_least_us.map(|found| format!("; above its least {}", both(found)));
        format!("one-way delay {one_way}{}", above.unwrap_or_default())
    }
}

fn us(value: f64) -> String {
    span(value / 1e6)
}

impl Manifest {
    /// The clocks of each sender with each of its receivers; nothing where the run was on one machine.
    pub fn pair_clocks(&self) -> Vec<PairClocks> {
        let of = |side| self.hosts.iter().filter(move |(_, part)| part.side == side);
        let pairs = of(PathSide::Tx).flat_map(|tx| {
            let own = of(PathSide::Rx).filter(|(receiver, _)| tx.1.is_paired_with(receiver));
            own.map(|rx| PairClocks::of(tx, rx)).collect::<Vec<_>>()
        });
        pairs.collect()
    }
}

impl VariantSummary {
    /// Its one-way delays, if any was measured.
    pub fn delays(&self) -> Option<PathDelays> {
        let both = |name: &str| {
            let of = |quantile: &str| self.median(&format!("{name}_{quantile}_us"));
            Some([of("p50")?, of("p99")?])
        };
        let delays = PathDelays {
            one_way_us: both("one_way_delay"),
            bound_us: self.median("one_way_delay_bound_us"),
            above_least_us: both("delay_above_least"),
        };
        (delays != PathDelays::default()).then_some(delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Metric;

    /// What the control connections show of two such hosts.
    const AT_START: &str = "known to +-80us at the start, apart by 1.5 +-0.4 ppm over 9s";

    fn part(side: PathSide, ahead_ns: i64, ahead_ppm: f64) -> HostPart {
        HostPart {
            clock_ahead_ns: ahead_ns,
            clock_error_ns: 40_000,
            drift: Some(ClockDrift { ahead_ppm, error_ppm: 0.2, span_ns: 9_000_000_000 }),
            ..HostPart::of(side)
        }
    }

    #[test]
    fn the_clocks_of_a_pair_have_the_errors_of_both() {
        let hosts = [
            ("gen1".to_owned(), part(PathSide::Tx, 5_000, 3.0)),
            ("gen2".to_owned(), HostPart { drift: None, ..part(PathSide::Tx, 0, 0.0) }),
            ("sut".to_owned(), part(PathSide::Rx, 7_000, 1.5)),
        ];
        let manifest = Manifest { hosts: hosts.into(), ..Manifest::default() };
        let all = manifest.pair_clocks();
        assert_eq!((all[0].ahead_ns, all[0].error_ns), (-2_000, 80_000));
        let texts: Vec<String> = all.iter().map(PairClocks::text).collect();
        let wanted =
            [format!("gen1 -> sut {AT_START}"), "gen2 -> sut known to +-80us at the start".into()];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn clocks_that_were_compared_at_different_times_may_have_come_apart() {
        let second = 1_000_000_000;
        let at = |side, at_ns| HostPart { clock_at_ns: Some(at_ns), ..part(side, 5_000, 3.0) };
        let error_ns = |tx: &HostPart, rx: &HostPart| {
            PairClocks::of((&"gen1".to_owned(), tx), (&"sut".to_owned(), rx)).error_ns
        };
        let (tx, rx) = (at(PathSide::Tx, 10 * second), at(PathSide::Rx, 10 * second + 5_000_000));
        // 6 us in 5 ms, 12 ms in 10 s.
        assert_eq!(error_ns(&tx, &rx), 86_000);
        assert_eq!(error_ns(&tx, &at(PathSide::Rx, 0)), 12_080_000);
        assert_eq!(error_ns(&tx, &part(PathSide::Rx, 0, 0.0)), 80_000, "an earlier version");
    }

    #[test]
    fn clocks_are_those_of_chosen_pairs_only() {
        let sender =
            |to: &str| HostPart { sends_to: vec![to.into()], ..HostPart::of(PathSide::Tx) };
        let hosts = [
            ("gen1".to_owned(), sender("sut2")),
            ("gen2".to_owned(), sender("sut")),
            ("sut".to_owned(), HostPart::of(PathSide::Rx)),
            ("sut2".to_owned(), HostPart::of(PathSide::Rx)),
        ];
        let all = Manifest { hosts: hosts.into(), ..Manifest::default() }.pair_clocks();
        let names: Vec<[&str; 2]> =
            all.iter().map(|pair| [pair.sender.as_str(), pair.receiver.as_str()]).collect();
        assert_eq!(names, [["gen1", "sut2"], ["gen2", "sut"]]);
    }

    #[test]
    fn the_measured_path_is_named_where_it_shows_the_clocks_more_closely() {
        let of = |error_ns| {
            let path = PathOffset { ahead_ns: -2_500, error_ns };
            let path_clocks = [("sut".to_owned(), path)].into();
            let gen1 = HostPart { path_clocks, ..part(PathSide::Tx, 5_000, 3.0) };
            let hosts =
                [("gen1".to_owned(), gen1), ("sut".to_owned(), part(PathSide::Rx, 7_000, 1.5))];
            let all = Manifest { hosts: hosts.into(), ..Manifest::default() }.pair_clocks();
            (all[0].ahead_ns, all[0].text())
        };
        let text = "gen1 -> sut known to +-8us at the end on the measured path, apart by 1.5 +-0.4 ppm over 9s";
        assert_eq!(of(8_000), (-2_500, text.to_owned()));
        assert_eq!(of(80_000), (-2_000, format!("gen1 -> sut {AT_START}")));
    }

    #[test]
    fn hosts_on_one_clock_have_nothing_to_compare() {
        let on = |clock, side| HostPart { clock, ..part(side, 5_000, 3.0) };
        let hosts = [
            ("gen1".to_owned(), on(Some(0), PathSide::Tx)),
            ("gen2".to_owned(), on(Some(1), PathSide::Tx)),
            ("sut".to_owned(), on(Some(0), PathSide::Rx)),
        ];
        let manifest = Manifest { hosts: hosts.into(), ..Manifest::default() };
        let all = manifest.pair_clocks();
        assert_eq!((all[0].error_ns, all[0].text().as_str()), (0, "gen1 -> sut one clock"));
        assert!(all[1].text().starts_with("gen2 -> sut known to"), "{:?}", all[1]);
    }

    #[test]
    fn delays_are_given_with_their_bound_or_refused_with_their_warning() {
        let of = |values: &[(&str, f64)]| {
            let metric = |median| Metric {
                median,
                min: median,
                max: median,
                interval: None,
                values: vec![median],
            };
            let all = values.iter().map(|(name, value)| ((*name).to_owned(), metric(*value)));
            let summary = VariantSummary { metrics: all.collect(), ..VariantSummary::default() };
            summary.delays().map(|delays| delays.text())
        };
        let least = [("delay_above_least_p50_us", 171.0), ("delay_above_least_p99_us", 1_860.0)];
        let above = "; above its least p50 171us, p99 1.86ms";
        let mut all = vec![("one_way_delay_p50_us", 212.0), ("one_way_delay_p99_us", 1_900.0)];
        assert_eq!(of(&all).unwrap(), "one-way delay p50 212us, p99 1.9ms");
        all.push(("one_way_delay_bound_us", 19.0));
        all.extend(least);
        let given = format!("one-way delay p50 212us, p99 1.9ms, each +-19us{above}");
        assert_eq!(of(&all).unwrap(), given);
        let refused = format!("one-way delay not given (warning no-one-way-delay){above}");
        assert_eq!(of(&all[2..]).unwrap(), refused, "as older runs have it");
        assert_eq!(of(&all[3..]).unwrap(), refused);
        assert_eq!(of(&[("delivered_pps", 1.0)]), None);
    }
}
