//! What a trial must fulfil to be good: loss, and the latency of requests.

use std::fmt;

use rxpath_core::Nanos;
use rxpath_load::quantiles::Quantiles;
use rxpath_record::manifest::Trial;
use rxpath_stats::load_search::TrialOutcome::{self, Bad, Good, Short, Void};
use rxpath_stats::quantile::needed_values;

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
    quantile: &'static Quantile,
    /// The limit.
    pub below: Nanos,
}

/// A quantile that clients report.
#[derive(Debug, PartialEq)]
struct Quantile {
    /// As it is typed.
    name: &'static str,
    /// As metrics name it.
    metric: &'static str,
    /// Share of requests that take longer.
    above_ratio: f64,
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

/// One objective, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// `loss=0.1%`.
    Loss(f64),
    /// `p99<2ms`.
    Latency(Latency),
}

/// Why a text is no objective: what is wrong, and what would be right.
pub type Refused = String;

impl Objective {
    /// Reads `loss=0.1%` or `p99<2ms`.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let at = text.find(['=', '<']).ok_or_else(|| {
            format!(
                "`{text}` is no objective: it has no limit; for example `loss=0.1%` or `p99<2ms`"
            )
        })?;
        let (name, sign, value) = (text[..at].trim(), &text[at..=at], text[at + 1..].trim());
        let value = value.strip_prefix('=').unwrap_or(value).trim();
        if name == "loss" {
            return loss(text, value).map(Self::Loss);
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
        Ok(Self::Latency(Latency { quantile, below }))
    }
}

fn loss(text: &str, value: &str) -> Result<f64, Refused> {
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

impl Latency {
    /// Requests that a trial needs so that ten of them lie above the quantile.
    pub(super) fn needed_requests(&self) -> f64 {
        needed_values(self.quantile.above_ratio)
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
    /// Adds one objective, as it is typed.
    ///
    /// # Errors
    /// As [`Objective::parse`], and a latency of datagrams, which have no reply.
    pub fn add(&mut self, text: &str, protocol: Protocol) -> Result<(), Refused> {
        match Objective::parse(text)? {
            Objective::Loss(ratio) => self.loss_ratio = ratio,
            Objective::Latency(_) if !protocol.over_tcp() => {
                return Err(format!("`{}`: a datagram has no reply to wait for", text.trim()));
            }
            Objective::Latency(latency) => self.latency = Some(latency),
        }
        Ok(())
    }

    /// Objectives with commas between them.
    pub(crate) fn read(text: &str, protocol: Protocol) -> Result<Self, Refused> {
        let mut all = Self::default();
        text.split(',').try_for_each(|one| all.add(one, protocol))?;
        Ok(all)
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
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use rxpath_load::http::load::result::LoadResult;
    use rxpath_load::tcp::result::TransactionsResult;
    use rxpath_record::evidence::ThreadUse;

    use super::*;

    fn trial(metrics: &[(&str, f64)]) -> Trial {
        let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Trial { metrics, ..Trial::default() }
    }

    fn datagrams(offered: f64, delivered: f64, loss: f64) -> Trial {
        let metrics =
            [("offered_pps", offered), ("delivered_pps", delivered), ("loss_ratio", loss)];
        trial(&metrics)
    }

    fn client(result: &impl serde::Serialize) -> BTreeMap<String, serde_json::Value> {
        [("load".to_owned(), serde_json::json!({ "result": result }))].into()
    }

    fn objectives(latency: Option<&str>) -> Objectives {
        let latency = latency.map(|text| match Objective::parse(text).unwrap() {
            Objective::Latency(latency) => latency,
            Objective::Loss(_) => panic!("{text}"),
        });
        Objectives { loss_ratio: 0.001, latency }
    }

    fn of_udp(trial: &Trial) -> TrialOutcome {
        objectives(None).judge(trial, 100.0, Protocol::Udp).unwrap().outcome
    }

    #[test]
    fn what_is_typed_is_read() {
        let latency = |text| match Objective::parse(text) {
            Ok(Objective::Latency(latency)) => latency.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(Objective::parse("loss=0.1%"), Ok(Objective::Loss(0.001)));
        assert_eq!(Objective::parse("loss<1 %"), Ok(Objective::Loss(0.01)));
        assert_eq!(Objective::parse("loss=0"), Ok(Objective::Loss(0.0)));
        assert_eq!(latency("p99<2ms"), latency(" p99 <= 2ms"));
        assert_eq!(latency("p99.9<500us").split('<').next(), Some("p99.9"));
    }

    #[test]
    fn what_is_no_objective_is_refused_in_a_line_with_an_example() {
        for (text, part) in [
            ("p98<2ms", "`p98` is none of loss, mean, p50, p90, p99, p99.9"),
            ("p99", "it has no limit"),
            ("p99<2", "the limit 2 has no unit; for example `p99<2ms`"),
            ("p99=2ms", "write `p99<2ms`"),
            ("p99<0s", "nothing answers in no time"),
            ("p99<soon", "`p99<soon`: `soon` is not"),
            ("loss=0.1", "the loss 0.1 has no unit; for example `loss=0.1%`"),
            ("loss=-1%", "a loss is from 0 %"),
            ("loss=100%", "a loss is from 0 %"),
            ("loss=", "a loss is from 0 %"),
        ] {
            let error = Objective::parse(text).unwrap_err();
            assert!(error.contains(part) && error.lines().count() == 1, "{text}: {error}");
        }
    }

    #[test]
    fn a_trial_of_datagrams_is_judged_by_loss_and_by_keeping_up() {
        assert_eq!(of_udp(&datagrams(100.0, 100.0, 0.001)), Good { loss_ratio: 0.001 });
        assert_eq!(of_udp(&datagrams(100.0, 99.0, 0.01)), Bad { loss_ratio: 0.01 });
        // A large buffer took the rest.
        assert_eq!(of_udp(&datagrams(100.0, 95.0, 0.0)), Bad { loss_ratio: 0.0 });
        assert_eq!(of_udp(&datagrams(90.0, 90.0, 0.0)), Short);
        // More than it takes already.
        assert_eq!(of_udp(&datagrams(90.0, 80.0, 0.1)), Bad { loss_ratio: 0.1 });
        // The end of the trial delivered what the ramp had left.
        assert_eq!(of_udp(&datagrams(100.0, 101.0, -0.01)), Good { loss_ratio: 0.0 });
        assert_eq!(objectives(None).judge(&trial(&[]), 100.0, Protocol::Udp), None);
    }

    #[test]
    fn a_loss_that_is_allowed_is_no_failure_to_keep_up() {
        let tenth = Objectives { loss_ratio: 0.1, latency: None };
        let of = |trial: &Trial, protocol| tenth.judge(trial, 100.0, protocol).unwrap().outcome;
        let udp = |delivered, loss| of(&datagrams(100.0, delivered, loss), Protocol::Udp);
        assert_eq!(udp(93.0, 0.07), Good { loss_ratio: 0.07 });
        assert_eq!(udp(89.0, 0.11), Bad { loss_ratio: 0.11 });
        // A buffer hides a loss that is too large.
        assert_eq!(udp(85.0, 0.05), Bad { loss_ratio: 0.05 });
        let requests = |answered| of(&trial(&[("achieved_rps", answered)]), Protocol::Http);
        assert!(matches!(requests(93.0), Good { .. }));
        assert!(matches!(requests(85.0), Bad { .. }));
    }

    #[test]
    fn a_disturbed_trial_is_void_whatever_it_showed() {
        let of = |made: Trial| of_udp(&Trial { void: Some("another program".into()), ..made });
        let void = |is_good, loss_ratio| Void { is_good, loss_ratio };
        assert_eq!(of(datagrams(100.0, 100.0, 0.0)), void(Some(true), 0.0));
        assert_eq!(of(datagrams(100.0, 50.0, 0.5)), void(Some(false), 0.5));
        assert_eq!(of(datagrams(90.0, 90.0, 0.0)), void(None, 0.0));
        assert_eq!(of(trial(&[("offered_pps", 100.0)])), void(Some(false), 1.0));
        assert_eq!(of(trial(&[])), void(None, 1.0));
    }

    #[test]
    fn a_trial_of_requests_is_judged_by_latency_and_by_answers() {
        let judge = |latency: Option<&str>, answered: f64, p99: f64| {
            let made = trial(&[("achieved_rps", answered), ("response_time_p99_us", p99)]);
            objectives(latency).judge(&made, 100.0, Protocol::Http).unwrap()
        };
        assert!(matches!(judge(None, 99.0, 9e6).outcome, Good { .. }));
        assert!(matches!(judge(Some("p99<2ms"), 99.0, 1999.0).outcome, Good { .. }));
        assert!(matches!(judge(Some("p99<2ms"), 99.0, 2000.0).outcome, Bad { .. }));
        assert!(matches!(judge(Some("p90<2ms"), 99.0, 1.0).outcome, Bad { .. }));
        let slow = judge(None, 90.0, 100.0);
        assert!(matches!(slow.outcome, Bad { .. }) && slow.latency_us == Some(100.0));
        assert!((slow.loss_ratio - 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_quantile_of_few_requests_is_the_clients_own() {
        let mut made = trial(&[("achieved_rps", 100.0)]);
        let times = Quantiles { p99: 1500.0, ..Quantiles::default() };
        let result = LoadResult { response_time_us: Some(times), ..LoadResult::default() };
        made.workloads = client(&result);
        let judge =
            |latency| objectives(Some(latency)).judge(&made, 100.0, Protocol::Http).unwrap();
        assert_eq!(judge("p99<2ms").latency_us, Some(1500.0));
        assert!(matches!(judge("p99<2ms").outcome, Good { .. }));
        assert!(matches!(judge("p99<1ms").outcome, Bad { .. }));
    }

    #[test]
    fn a_busy_client_before_an_idle_server_falls_short() {
        let mut made = trial(&[("achieved_tps", 50.0)]);
        let thread = |running_ratio| vec![ThreadUse { running_ratio, ..ThreadUse::default() }];
        made.evidence.sender_threads = thread(0.99);
        made.evidence.receiver_threads = thread(0.3);
        let judge = |made: &Trial| objectives(None).judge(made, 100.0, Protocol::TcpRr).unwrap();
        assert_eq!(judge(&made).outcome, Short);
        made.evidence.receiver_threads = thread(0.99);
        assert!(matches!(judge(&made).outcome, Bad { .. }));
    }

    #[test]
    fn failed_requests_are_a_share_of_all() {
        for protocol in [Protocol::Http, Protocol::TcpRr, Protocol::TcpCrr] {
            let judge = |failed: f64, done: u64| {
                let mut made = trial(&[(protocol.main_metric(), 100.0), ("errors_count", failed)]);
                let tcp = TransactionsResult { transactions_total: done, ..Default::default() };
                let http = LoadResult { requests_total: done, ..LoadResult::default() };
                made.workloads =
                    if protocol == Protocol::Http { client(&http) } else { client(&tcp) };
                objectives(None).judge(&made, 100.0, protocol).unwrap().outcome
            };
            assert_eq!(judge(10.0, 90), Bad { loss_ratio: 0.1 }, "{protocol:?}");
            assert_eq!(judge(10.0, 99_990), Good { loss_ratio: 1e-4 }, "{protocol:?}");
            assert_eq!(judge(0.0, 99_990), Good { loss_ratio: 0.0 }, "{protocol:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(loss|p99|p99.9|mean|.{0,4})[=<]{0,2}.{0,8}") {
            match Objective::parse(&text) {
                Ok(Objective::Loss(ratio)) => prop_assert!((0.0..1.0).contains(&ratio)),
                Ok(Objective::Latency(latency)) => prop_assert!(latency.below.0 > 0),
                Err(why) => prop_assert!(!why.is_empty()),
            }
        }
    }
}
