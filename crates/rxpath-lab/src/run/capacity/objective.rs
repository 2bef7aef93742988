//! What a trial must fulfil to be good: loss, and the latency of requests.

use std::fmt;

use rxpath_core::Nanos;
use rxpath_load::quantiles::Quantiles;
use rxpath_record::capacity::CapacityGoal;
use rxpath_record::manifest::Trial;
use rxpath_stats::load_search::TrialOutcome::{self, Bad, Good, Short, Void};

use crate::scenario::spec::Protocol;
use crate::trial::result::WorkloadResult;

/// A sender that offers less than this share of the target rate did not reach it, and of requests: a server that
/// answers less did not keep up.
const REACHED_RATIO: f64 = 0.97;
/// A receiver that reads less than this share of the offered rate, less the allowed loss, falls behind, though a large buffer
/// hides the loss in a short trial. Below 1, because the ends of the window are those of both programs' own lines.
const KEPT_UP_RATIO: f64 = 0.98;
/// Share of the window from which a thread counts as busy all the time.
const BUSY_RATIO: f64 = 0.95;
/// A server with less than this is not what limits a busy client.
const IDLE_SERVER_RATIO: f64 = 0.8;

/// What a trial must fulfil.
#[derive(Clone, Debug, PartialEq)]
pub struct Objectives {
    /// Largest loss, as a share of the offered rate; of requests: those that failed.
    pub loss_ratio: f64,
    /// Largest latency, with requests.
    pub latency: Option<Latency>,
}

/// A limit for a quantile of the time from a request's intended time to the end of its reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    pub(super) quantile: &'static Quantile,
    /// The limit.
    pub below: Nanos,
}

/// A quantile that clients report.
#[derive(Debug, PartialEq)]
pub(super) struct Quantile {
    /// As it is typed.
    name: &'static str,
    /// As metrics name it.
    metric: &'static str,
    /// Share of requests that take longer.
    pub above_ratio: f64,
}

const QUANTILES: [Quantile; 5] = [
    Quantile { name: "mean", metric: "mean", above_ratio: 0.5 },
    Quantile { name: "p50", metric: "p50", above_ratio: 0.5 },
    Quantile { name: "p90", metric: "p90", above_ratio: 0.1 },
    Quantile { name: "p99", metric: "p99", above_ratio: 0.01 },
    Quantile { name: "p99.9", metric: "p999", above_ratio: 0.001 },
];
/// The quantile that is recorded where no objective names one.
const USUAL: &Quantile = &QUANTILES[3];

/// The loss of an objective. As all of them, the error says what is wrong, and what would be right.
fn loss(text: &str, value: &str) -> Result<f64, String> {
    let percent = match value.strip_suffix('%') {
        Some(number) => number.trim().parse::<f64>().ok(),
        None if value.parse::<f64>().is_ok_and(|number| number.abs() < f64::EPSILON) => Some(0.0),
        None if value.parse::<f64>().is_ok() => {
            return Err(format!("`{text}`: the loss {value} has no unit; for example `loss=0.1%`"));
        }
        None => None,
    };
    let percent = percent.filter(|percent| (0.0..100.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| {
        format!("`{text}`: a loss is from 0 % to less than 100 %; for example `loss=0.1%`")
    })
}

impl Quantile {
    /// Of a client's times. **Unit** us.
    fn of(&self, times: &Quantiles) -> f64 {
        match self.metric {
            "mean" => times.mean,
            "p50" => times.p50,
            "p90" => times.p90,
            "p99" => times.p99,
            _ => times.p999,
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}", self.quantile.name, self.below)
    }
}

/// What a trial showed at its target rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shown {
    pub outcome: TrialOutcome,
    pub loss_ratio: f64,
    pub latency_us: Option<f64>,
}

impl Default for Objectives {
    fn default() -> Self {
        Self { loss_ratio: 0.001, latency: None }
    }
}

impl Objectives {
    /// Adds one objective, as it is typed: `loss=0.1%` or `p99<2ms`.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right. A latency of datagrams is wrong: they have no reply.
    pub fn add(&mut self, text: &str, protocol: Protocol) -> Result<(), String> {
        let at = text.find(['=', '<']).ok_or_else(|| {
            format!(
                "`{text}` is no objective: it has no limit; for example `loss=0.1%` or `p99<2ms`"
            )
        })?;
        let (name, sign, value) = (text[..at].trim(), &text[at..=at], text[at + 1..].trim());
        let value = value.strip_prefix('=').unwrap_or(value).trim();
        if name == "loss" {
            self.loss_ratio = loss(text, value)?;
            return Ok(());
        }
        let known = || QUANTILES.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
        let quantile =
            QUANTILES.iter().find(|quantile| quantile.name == name).ok_or_else(|| {
                format!("`{text}` is no objective: `{name}` is none of loss, {}", known())
            })?;
        if sign == "=" {
            return Err(format!("`{text}`: a latency has an upper limit; write `{name}<{value}`"));
        }
        if value.parse::<f64>().is_ok() {
            return Err(format!(
                "`{text}`: the limit {value} has no unit; for example `{name}<2ms`"
            ));
        }
        let below: Nanos = value.parse().map_err(|error| format!("`{text}`: {error}"))?;
        if below.0 == 0 {
            return Err(format!("`{text}`: nothing answers in no time; for example `{name}<2ms`"));
        }
        if !protocol.over_tcp() {
            return Err(format!("`{}`: a datagram has no reply to wait for", text.trim()));
        }
        self.latency = Some(Latency { quantile, below });
        Ok(())
    }

    /// Objectives with commas between them.
    ///
    /// # Errors
    /// As [`Objectives::add`].
    pub fn parse(text: &str, protocol: Protocol) -> Result<Self, String> {
        let mut all = Self::default();
        text.split(',').try_for_each(|one| all.add(one, protocol))?;
        Ok(all)
    }

    /// Their part of the record.
    pub(super) fn recorded(&self) -> CapacityGoal {
        let Self { loss_ratio, latency } = *self;
        let latency = latency.map(|latency| latency.to_string());
        CapacityGoal { loss_ratio, latency, ..CapacityGoal::default() }
    }

    /// Judges a trial; `None` when it has no rates though nothing disturbed it.
    pub(super) fn judge(&self, trial: &Trial, target: f64, protocol: Protocol) -> Option<Shown> {
        let shown = if protocol.over_tcp() {
            self.of_requests(trial, target, protocol)
        } else {
            self.of_datagrams(trial, target)
        };
        // In a short window a program that waits for its CPU says nothing. A silent sender is no limit of the receiver.
        let is_sent = trial.metrics.get("offered_pps").is_some_and(|pps| *pps > 0.0);
        let outcome = if is_sent { Bad { loss_ratio: 1.0 } } else { Short };
        let silent = Shown { outcome, loss_ratio: 1.0, latency_us: None };
        let mut shown = shown.or_else(|| trial.void.is_some().then_some(silent))?;
        if trial.void.is_some() {
            let is_good = (shown.outcome != Short).then_some(matches!(shown.outcome, Good { .. }));
            shown.outcome = Void { is_good, loss_ratio: shown.loss_ratio };
        }
        Some(shown)
    }

    /// What must arrive of a rate.
    fn must_arrive(&self, rate: f64) -> f64 {
        rate * (1.0 - self.loss_ratio)
    }

    fn of_datagrams(&self, trial: &Trial, target: f64) -> Option<Shown> {
        let metric = |name: &str| trial.metrics.get(name).copied();
        let (offered, delivered) = (metric("offered_pps")?, metric("delivered_pps")?);
        let loss_ratio = metric("loss_ratio")?.max(0.0);
        let keeps_up = delivered >= KEPT_UP_RATIO * self.must_arrive(offered);
        let outcome = if loss_ratio > self.loss_ratio || !keeps_up {
            Bad { loss_ratio }
        } else if offered < REACHED_RATIO * target {
            Short
        } else {
            Good { loss_ratio }
        };
        Some(Shown { outcome, loss_ratio, latency_us: None })
    }

    fn of_requests(&self, trial: &Trial, target: f64, protocol: Protocol) -> Option<Shown> {
        let metric = |name: &str| trial.metrics.get(name).copied();
        let answered = metric(protocol.main_metric())?;
        let quantile = self.latency.map_or(USUAL, |latency| latency.quantile);
        let client = WorkloadResult::recorded(trial, protocol, false);
        let failed = failed_ratio(trial, client.as_ref());
        let loss_ratio = (1.0 - answered / target).clamp(failed, 1.0);
        let [service, response] = client.as_ref().map_or([None, None], WorkloadResult::times);
        // Metrics leave a quantile out where few requests lie above it, as in the short trials of the climb. The client's
        // own is then close to the maximum, which errs to the low side.
        let latency_us = [("response_time", response), ("service_time", service)]
            .into_iter()
            .find_map(|(time, own)| {
                metric(&format!("{time}_{}_us", quantile.metric))
                    .or_else(|| own.map(|own| quantile.of(own)))
            });
        let too_late = self
            .latency
            .is_some_and(|latency| latency_us.is_none_or(|us| us * 1e3 >= latency.below.0 as f64));
        let outcome = if failed > self.loss_ratio || too_late {
            Bad { loss_ratio }
        } else if answered < REACHED_RATIO * self.must_arrive(target) {
            if client_limits(trial) { Short } else { Bad { loss_ratio } }
        } else {
            Good { loss_ratio }
        };
        Some(Shown { outcome, loss_ratio, latency_us })
    }
}

/// Requests of the whole trial that failed, as a share of all.
fn failed_ratio(trial: &Trial, client: Option<&WorkloadResult>) -> f64 {
    let failed = trial.metrics.get("errors_count").copied().unwrap_or(0.0);
    let done = client.and_then(WorkloadResult::done).and_then(|(done, _)| done).unwrap_or(0) as f64;
    if failed > 0.0 { failed / (failed + done).max(1.0) } else { 0.0 }
}

/// Whether the client had no time left while the server had.
fn client_limits(trial: &Trial) -> bool {
    let most = |threads: &[rxpath_record::evidence::ThreadUse]| {
        threads.iter().map(|thread| thread.running_ratio).fold(0.0, f64::max)
    };
    most(&trial.evidence.sender_threads) >= BUSY_RATIO
        && most(&trial.evidence.receiver_threads) < IDLE_SERVER_RATIO
}

#[cfg(test)]
mod tests;
