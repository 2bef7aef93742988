//! The result of a search for the highest rate that holds: bounds, the trials behind them, and the sentence about it.

use rxpath_core::units::si;
pub use rxpath_stats::load_class::Class as LoadClass;
pub use rxpath_stats::load_search::SearchEnd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verdict::DiagnosisVerdict;

/// The highest rate that holds under objectives, as two bounds. **Source** RFC 9971.
///
/// Rates count [`Capacity::unit`] per second, so that a reader needs one set of names for every protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// The variant that was loaded.
    pub variant: String,
    /// What the rates count: `datagrams`, `transactions` or `requests`.
    pub unit: String,
    /// The highest rate that holds; `None` if none does.
    pub lower_per_s: Option<f64>,
    /// The lowest rate that fails; `None` if no rate that was offered does.
    pub upper_per_s: Option<f64>,
    /// What arrives of the lower bound's rate in the worst trial that counts.
    pub conditional_throughput_per_s: Option<f64>,
    /// Whether both bounds are there, as close as the goal asks, and confirmed by fresh trials.
    pub regular: bool,
    /// Why the search ended.
    pub ended: SearchEnd,
    /// What had to hold.
    pub goal: CapacityGoal,
    /// Trials at the lower bound that were made after it was chosen; `None` if there were none.
    pub fresh: Option<FreshTrials>,
    /// Every rate that was tried, from the lowest.
    pub loads: Vec<TriedLoad>,
    /// The diagnosis of the failing trials at the upper bound.
    pub limited_by: Option<DiagnosisVerdict>,
    /// Trials, those that were repeated included.
    pub trials_count: u32,
    /// Trials that were repeated because other load on the machine disturbed them.
    pub void_count: u32,
    /// Time that the search took.
    pub search_s: f64,
}

/// What a rate must fulfil, and how rates are classified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityGoal {
    /// Largest loss of a good trial, as a share of the offered rate; of requests: those that failed.
    pub loss_ratio: f64,
    /// Latency of a good trial: quantile and limit, such as `p99<2ms`.
    pub latency: Option<String>,
    /// Length of a full trial.
    pub final_trial_s: f64,
    /// Length of all trials at a rate that is enough to classify it.
    pub duration_sum_s: f64,
    /// Share of this time that may be bad.
    pub exceed_ratio: f64,
    /// Largest distance of the bounds, as a share of the lower one.
    pub width_ratio: f64,
}

/// Trials at the lower bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FreshTrials {
    /// Those that met the objectives.
    pub good_count: u32,
    /// Those that missed them.
    pub bad_count: u32,
}

/// One rate and the trials at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedLoad {
    /// The target rate.
    pub rate_per_s: f64,
    /// Length of its good trials.
    pub good_s: f64,
    /// Length of its bad trials.
    pub bad_s: f64,
    /// What they say.
    pub class: LoadClass,
    /// Loss of each trial, as a share of the target rate.
    pub loss_ratios: Vec<f64>,
    /// Latency of each trial: the objective's quantile, else the 99th percentile; empty for datagrams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies_us: Vec<f64>,
}

impl Capacity {
    /// The answer in one sentence, without the limit.
    pub fn sentence(&self) -> String {
        let unit = &self.unit;
        let Some(lower) = self.lower_per_s else {
            let lowest = self.loads.first().map_or(0.0, |load| load.rate_per_s);
            return match self.ended {
                SearchEnd::LowestFails => format!(
                    "the lowest rate fails: {} {unit}/s do not hold ({})",
                    si(lowest),
                    self.objective()
                ),
                SearchEnd::SenderLimited => {
                    format!("the sender does not reach {} {unit}/s", si(lowest))
                }
                _ => format!("no rate is known to hold yet{}", self.fails()),
            };
        };
        let confirmed = self.fresh.filter(|fresh| fresh.good_count + fresh.bad_count > 0);
        let confirmed = confirmed.map_or_else(String::new, |fresh| {
            format!(
                " in {} of {} fresh trials of {} s",
                fresh.good_count,
                fresh.good_count + fresh.bad_count,
                si(self.goal.final_trial_s)
            )
        });
        let (lower, fails, objective) = (si(lower), self.fails(), self.objective());
        let reservation = self.reservation();
        format!("holds {lower} {unit}/s (lower bound{fails}): {objective}{confirmed}{reservation}")
    }

    /// `; 98.9k fails`, or why nothing does.
    fn fails(&self) -> String {
        match (self.upper_per_s, self.ended) {
            (Some(upper), _) => format!("; {} fails", si(upper)),
            (None, SearchEnd::SenderLimited) => "; the sender reaches no rate that fails".into(),
            (None, SearchEnd::MostHolds) => "; the highest rate allowed".into(),
            (None, _) => String::new(),
        }
    }

    /// What keeps the answer from being final.
    fn reservation(&self) -> &'static str {
        match self.ended {
            SearchEnd::Time => "; the time ended the search, so the bounds are not confirmed",
            SearchEnd::Interrupted => "; the search was cut, so the bounds are not confirmed",
            SearchEnd::FreshFailed => {
                "; lower bounds failed their fresh trials, so none is confirmed"
            }
            _ => "",
        }
    }

    /// The quantile that the latencies are.
    pub fn quantile(&self) -> &str {
        let named = self.goal.latency.as_deref().and_then(|latency| latency.split('<').next());
        named.unwrap_or("p99")
    }

    /// `loss <= 0.1 %, p99 < 2ms`.
    pub fn objective(&self) -> String {
        let loss = match (self.unit.as_str(), self.goal.loss_ratio) {
            ("datagrams", 0.0) => "no loss".into(),
            ("datagrams", ratio) => format!("loss <= {} %", si(ratio * 100.0)),
            (_, 0.0) => "no failed request".into(),
            (_, ratio) => format!("failed requests <= {} %", si(ratio * 100.0)),
        };
        match &self.goal.latency {
            Some(latency) => format!("{}, {loss}", latency.replacen('<', " < ", 1)),
            None => loss,
        }
    }

    /// What limits the rate at the upper bound.
    pub fn limit(&self) -> Option<String> {
        let (upper, verdict) = (self.upper_per_s?, self.limited_by.as_ref()?);
        Some(format!("at {} {}/s: {}", si(upper), self.unit, verdict.sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity() -> Capacity {
        Capacity {
            unit: "datagrams".into(),
            lower_per_s: Some(96_134.0),
            upper_per_s: Some(98_911.0),
            regular: true,
            ended: SearchEnd::Found,
            goal: CapacityGoal { loss_ratio: 0.001, final_trial_s: 1.0, ..Default::default() },
            fresh: Some(FreshTrials { good_count: 10, bad_count: 1 }),
            ..Capacity::default()
        }
    }

    #[test]
    fn the_sentence_says_what_holds_and_what_it_rests_on() {
        assert_eq!(
            capacity().sentence(),
            "holds 96.1k datagrams/s (lower bound; 98.9k fails): loss <= 0.1 % in 10 of 11 fresh trials of 1 s"
        );
        let mut requests = Capacity { unit: "requests".into(), fresh: None, ..capacity() };
        requests.goal.latency = Some("p99<2ms".into());
        requests.goal.loss_ratio = 0.0;
        assert_eq!(
            requests.sentence(),
            "holds 96.1k requests/s (lower bound; 98.9k fails): p99 < 2ms, no failed request"
        );
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let of = |ended, lower_per_s, upper_per_s| {
            let fresh = None;
            Capacity { ended, lower_per_s, upper_per_s, fresh, ..capacity() }.sentence()
        };
        let sender = of(SearchEnd::SenderLimited, Some(5e5), None);
        assert_eq!(
            sender,
            "holds 500k datagrams/s (lower bound; the sender reaches no rate that fails): loss <= 0.1 %"
        );
        let cut = of(SearchEnd::Interrupted, Some(5e5), Some(1e6));
        assert!(
            cut.ends_with("loss <= 0.1 %; the search was cut, so the bounds are not confirmed")
        );
        assert_eq!(of(SearchEnd::Interrupted, None, None), "no rate is known to hold yet");
        assert!(of(SearchEnd::LowestFails, None, Some(100.0)).starts_with("the lowest rate fails"));
    }
}
