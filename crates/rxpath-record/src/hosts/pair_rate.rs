//! What one sender got done with one receiver over TCP or HTTP: in a trial, and over the trials of a variant.

use rxpath_core::number::{counted, si, span};
use rxpath_stats::quantile::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::metric;

/// What one sender got done with one receiver over TCP or HTTP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairRate {
    /// The sender.
    pub sender: String,
    /// The receiver.
    pub receiver: String,
    /// The metric of the trial of which this is a part: `delivered_bps`, `achieved_tps` or `achieved_rps`.
    pub metric: String,
    /// The pair's part in the window, by the sender's count: of a stream, what its kernel took and what it read. **Unit** of
    /// the metric.
    pub value: f64,
    /// Over the whole trial: bytes that programs read, transactions or requests completed; `None` if a receiver of a stream
    /// did not report its bytes.
    pub done_total: Option<u64>,
    /// Errors of the whole trial, of every kind.
    pub errors_count: u64,
    /// Times behind `p99_us`; 0 of a stream.
    pub timed_count: u64,
    /// 99th percentile of the response times of the whole trial, or of the service times where there is no schedule. `None`
    /// of a stream, and of too few times.
    pub p99_us: Option<f64>,
}

impl PairRate {
    /// For people: `gen1 -> sut: 12k requests/s, p99 310us`.
    pub fn text(&self) -> String {
        let mut parts = vec![format!("{} {}", si(self.value), metric::unit(&self.metric))];
        parts.extend(self.p99_us.map(|us| format!("p99 {}", span(us / 1e6))));
        parts.extend((self.errors_count > 0).then(|| counted(self.errors_count, "error")));
        format!("{} -> {}: {}", self.sender, self.receiver, parts.join(", "))
    }
}

impl Manifest {
    /// What each sender got done with each receiver over TCP or HTTP in the trials of a variant that its figures are made of:
    /// counts are added; rate and p99 are medians over the trials, as those of the variant's metrics.
    pub fn pair_rates(&self, variant: &str) -> Vec<PairRate> {
        let mut all: Vec<Vec<&PairRate>> = Vec::new();
        for pair in self.counted(variant).into_iter().flat_map(|trial| &trial.pair_rates) {
            let is_its =
                |it: &&PairRate| (&it.sender, &it.receiver) == (&pair.sender, &pair.receiver);
            match all.iter_mut().find(|trials| trials.iter().any(is_its)) {
                Some(trials) => trials.push(pair),
                None => all.push(vec![pair]),
            }
        }
        all.iter().filter_map(|trials| of_trials(trials)).collect()
    }
}

fn of_trials(trials: &[&PairRate]) -> Option<PairRate> {
    let first = *trials.first()?;
    let values: Vec<f64> = trials.iter().map(|it| it.value).collect();
    let p99s: Vec<f64> = trials.iter().filter_map(|it| it.p99_us).collect();
    Some(PairRate {
        value: median(&values)?,
        done_total: trials.iter().map(|it| it.done_total).sum(),
        errors_count: trials.iter().map(|it| it.errors_count).sum(),
        timed_count: trials.iter().map(|it| it.timed_count).sum(),
        p99_us: median(&p99s),
        ..first.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Trial;

    fn pair(receiver: &str, value: f64, p99_us: Option<f64>) -> PairRate {
        PairRate {
            sender: "gen1".into(),
            receiver: receiver.into(),
            metric: "achieved_rps".into(),
            value,
            done_total: Some(10),
            errors_count: 1,
            timed_count: 10,
            p99_us,
        }
    }

    #[test]
    fn counts_of_trials_are_added_and_rates_are_their_median() {
        let trial = |rates: [f64; 2], p99_us| Trial {
            variant: "base".into(),
            block: 1,
            pair_rates: vec![pair("sut", rates[0], p99_us), pair("sut2", rates[1], None)],
            ..Trial::default()
        };
        let trials = vec![
            trial([10.0, 1.0], Some(7.0)),
            trial([30.0, 2.0], None),
            trial([20.0, 3.0], Some(9.0)),
        ];
        let manifest = Manifest { trials, ..Manifest::default() };
        let all = manifest.pair_rates("base");
        let wanted = |one: PairRate| PairRate {
            done_total: Some(30),
            errors_count: 3,
            timed_count: 30,
            ..one
        };
        assert_eq!(all, [wanted(pair("sut", 20.0, Some(8.0))), wanted(pair("sut2", 2.0, None))]);
    }

    #[test]
    fn a_pair_is_told_with_its_latency_and_its_errors() {
        let of = |p99_us, errors_count| {
            PairRate { errors_count, ..pair("sut", 12_000.0, p99_us) }.text()
        };
        assert_eq!(of(Some(310.0), 0), "gen1 -> sut: 12k requests/s, p99 310us");
        assert_eq!(of(None, 2), "gen1 -> sut: 12k requests/s, 2 errors");
    }
}
