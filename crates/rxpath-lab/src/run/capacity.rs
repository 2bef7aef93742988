//! What rate does a variant take on this host under given objectives?
//!
//! [`rxpath_stats::load_search`] says the next trial; this module makes it in the lab, judges it and keeps the record.
//! `rxpath capacity` asks for the answer itself. Scenarios with `load.capacity_ratio` take their rates as shares of it;
//! the variant is then searched without its background load, before the first block.

mod objective;
mod record;
mod told;

use rxpath_core::number::grouped;
use rxpath_core::units::si;
use rxpath_core::{Nanos, Warning};
use rxpath_load::udp::result::SocketResult;
use rxpath_record::capacity::{Capacity, SearchEnd};
use rxpath_record::event::What;
use rxpath_record::ledger::LedgerUnit;
use rxpath_record::manifest::Trial;
use rxpath_record::verdict::{DiagnosisVerdict, Stage};
use rxpath_stats::load_class::SearchGoal;
use rxpath_stats::load_search::{LoadSearch, Next, SearchPlan, TrialOutcome, Turn};
use rxpath_stats::quantile::needed_values;

use self::objective::Shown;
pub use self::objective::{Latency, Objectives};
use self::record::{Left, key, record};
use self::told::told;
use super::{FinishedRun, Options, Running, as_json, disturbed, summary, within};
use crate::clock::monotonic_ns;
use crate::error::{LabError, cannot};
use crate::run::progress::Progress;
use crate::scenario::spec::{Background, Observe, Protocol, Resolved, Trials, Variant, Workload};
use crate::trial::result::WorkloadResult;

/// Load before the window of each trial.
const RAMP: Nanos = Nanos::from_millis(300);
/// A full trial is this many times longer than the receive buffer can hide loss.
const HIDDEN: f64 = 10.0;
/// A full trial is lengthened to this at most. **Unit** s.
const LONGEST: f64 = 10.0;
/// The search before the blocks of a run may take this long, and half of the run's time.
const BEFORE_BLOCKS: Nanos = Nanos::from_secs(180);

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityOptions {
    /// What a trial must fulfil.
    pub objectives: Objectives,
    /// How rates are classified.
    pub goal: SearchGoal,
    /// Fresh trials at the lower bound, at most.
    pub fresh: u32,
    /// No rate above this one is tried.
    pub most: Option<u64>,
    /// The search ends after this long.
    pub time: Option<Nanos>,
}

impl Default for CapacityOptions {
    fn default() -> Self {
        Self {
            objectives: Objectives::default(),
            goal: SearchGoal { final_s: 1.0, sum_s: 5.0, exceed_ratio: 0.5, width_ratio: 0.03 },
            fresh: 11,
            most: None,
            time: None,
        }
    }
}

impl CapacityOptions {
    /// Fewer fresh trials and wider bounds.
    #[must_use]
    pub fn quick() -> Self {
        let all = Self::default();
        Self { goal: SearchGoal { width_ratio: 0.05, ..all.goal }, fresh: 7, ..all }
    }

    /// Trials of a minute, no loss, and no trial that may fail. **Source** RFC 2544, section 24 and 26.1.
    #[must_use]
    pub fn rfc2544() -> Self {
        Self {
            objectives: Objectives { loss_ratio: 0.0, ..Objectives::default() },
            goal: SearchGoal { final_s: 60.0, sum_s: 60.0, exceed_ratio: 0.0, width_ratio: 0.01 },
            fresh: 0,
            ..Self::default()
        }
    }
}

/// First, lowest and highest rate that is tried. **Unit** events/s.
pub fn range(protocol: Protocol) -> [f64; 3] {
    if protocol.over_tcp() { [1_000.0, 20.0, 10e6] } else { [5_000.0, 100.0, 20e6] }
}

/// Searches the capacity of the scenario's first variant.
///
/// # Errors
/// As [`super::run`].
pub fn run(
    resolved: &Resolved,
    ask: &CapacityOptions,
    options: &Options<'_>,
    progress: &mut dyn Progress,
) -> Result<FinishedRun, LabError> {
    within(resolved, options, progress, |running| running.capacity_alone(ask))
}

impl Running<'_> {
    /// The search as a run of its own: its trials are kept, and those at the bounds become the run's variants.
    fn capacity_alone(&mut self, ask: &CapacityOptions) -> Result<(), LabError> {
        let variant = self.resolved.variants.first().cloned();
        let variant = variant.ok_or_else(|| LabError::internal("no variant to search"))?;
        let searched = self.searched(&variant, ask, true);
        if let Some(found) = &self.manifest.capacity {
            self.resolved.variants = [found.lower_per_s, found.upper_per_s]
                .into_iter()
                .flatten()
                .zip(["the lower bound: it holds", "the upper bound: it fails"])
                .map(|(rate, what)| at_bound(&variant, rate, what))
                .collect();
            summary::update(&self.resolved, &mut self.manifest);
        }
        searched.map(|_| ())
    }

    /// Measures what shares of a capacity are shares of, when a variant asks for one.
    pub(super) fn find_capacity(&mut self) -> Result<(), LabError> {
        let Some((name, variant)) = wanted(&self.resolved) else { return Ok(()) };
        let all = self.resolved.trials.clone();
        let half = Nanos(all.time_limit.0 / 2);
        let mut ask =
            CapacityOptions { time: Some(BEFORE_BLOCKS.min(half)), ..CapacityOptions::quick() };
        if let Some(slo) = variant.load.own().and_then(|own| own.capacity_slo.as_deref()) {
            ask.objectives =
                Objectives::parse(slo, variant.protocol()).map_err(LabError::internal)?;
        }
        let found = self.searched(&variant, &ask, false);
        self.resolved.trials = all;
        let found = match found {
            Err(LabError::NotAvailable { why }) => return self.find_without(&name, why),
            found => found?,
        };
        if self.early.is_some() {
            return Ok(());
        }
        let rate = usable(&found)?;
        for variant in &mut self.resolved.variants {
            if let Some(share) = share(variant) {
                at_rate(variant, share * rate);
            }
        }
        let text = format!(
            "{}; load.capacity_ratio is a share of {} {}/s",
            found.sentence(),
            si(rate),
            found.unit
        );
        let why = format!("searched before the first block, {} trials", found.trials_count);
        self.warn(Warning::new("capacity-measured", text).because(why))?;
        self.manifest.resolved = as_json("scenario", &self.resolved)?;
        Ok(())
    }

    /// Searches, and keeps what is known in the manifest however it ends.
    fn searched(
        &mut self,
        variant: &Variant,
        ask: &CapacityOptions,
        keeps: bool,
    ) -> Result<Capacity, LabError> {
        let [first, lowest, most] = range(variant.protocol());
        let most = ask.most.map_or(most, |most| most as f64);
        let left_s = self.deadline_ns.saturating_sub(monotonic_ns()) as f64 / 1e9;
        let time_s = ask.time.map_or(left_s, |time| time.0 as f64 / 1e9);
        let plan = SearchPlan {
            goal: ask.goal,
            fresh: ask.fresh,
            first,
            lowest,
            most,
            time_s: Some(time_s),
        };
        let mut search = LoadSearch::new(plan);
        let mut left = Left::default();
        let ended = self.steps(variant, ask, (&mut search, &mut left), keeps);
        let found = record(variant, ask, &search, ended.as_ref().ok().copied(), &left);
        self.manifest.capacity = Some(found.clone());
        ended.map(|_| found)
    }

    fn steps(
        &mut self,
        variant: &Variant,
        ask: &CapacityOptions,
        (search, left): (&mut LoadSearch, &mut Left),
        keeps: bool,
    ) -> Result<SearchEnd, LabError> {
        let mut made = Vec::new();
        loop {
            let next = match search.next() {
                Turn::Over(end) => return Ok(end),
                Turn::Try(next) => next,
            };
            let begun_ns = monotonic_ns();
            let mut trial = self.at_load(variant, &next)?;
            let shown = ask.objectives.judge(&trial, next.rate, variant.protocol());
            let what = "the capacity was not found: a trial gave no rates";
            let hint = "`rxpath run` shows what the programs of this scenario report";
            let shown = shown.ok_or_else(|| cannot(what, hint))?;
            // Shares of a capacity that other load decided are worth nothing: as a run ends early, so does its search.
            if !keeps && !self.options.keep_noisy {
                let (void, grade) = (trial.void.clone(), trial.grade);
                made.push(Trial { void, grade, ..Trial::default() });
                if let Some(warning) = disturbed::hopeless(&made) {
                    let (trial, void) = (trial.trial, trial.void);
                    self.tell(What::TrialEnded { trial, void })?;
                    self.early = Some("too-noisy");
                    self.warn(warning)?;
                    return Ok(SearchEnd::Interrupted);
                }
            }
            let repeated = search.voids();
            search.take(shown.outcome, (monotonic_ns() - begun_ns) as f64 / 1e9);
            let counts = search.voids() == repeated;
            if counts {
                // Repeated often enough: it counts as it is.
                trial.void = None;
                left.keep(&trial, next.rate, &shown);
            }
            self.progress.found(&told(search, &next, (&shown, counts), variant.protocol()));
            if let Some(good) = search.climbed_to() {
                self.lengthened(search, ask, &trial, good)?;
            }
            if !keeps {
                // It belongs to no block: its number is used, its figures are not.
                trial.void = Some("searched for the capacity".into());
            }
            self.tell(What::TrialEnded { trial: trial.trial, void: trial.void.clone() })?;
            if keeps {
                self.manifest.trials.push(trial);
            }
        }
    }

    fn at_load(&mut self, variant: &Variant, next: &Next) -> Result<Trial, LabError> {
        let measure = Nanos((next.seconds * 1e9) as u64);
        let trials = &mut self.resolved.trials;
        *trials = Trials { ramp: RAMP, settle: Nanos(0), measure, ..trials.clone() };
        self.trial(&at_bound(variant, next.rate, ""), 1)
    }

    /// Makes full trials longer where the receive buffer hides loss for long, or the quantile needs more requests.
    fn lengthened(
        &mut self,
        search: &mut LoadSearch,
        ask: &CapacityOptions,
        trial: &Trial,
        good: f64,
    ) -> Result<(), LabError> {
        let hidden = hidden_s(trial, good).map(|hidden| {
            (HIDDEN * hidden, format!("the receive buffer hides loss for {:.0} ms", hidden * 1e3))
        });
        let requests = ask.objectives.latency.map(|latency| {
            let needed = needed_values(latency.quantile.above_ratio);
            let shown = grouped(needed.round() as u64);
            (needed / good, format!("{latency} needs {shown} requests, ten of them above it"))
        });
        let most = hidden.into_iter().chain(requests).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((needed_s, why)) = most else { return Ok(()) };
        let seconds = needed_s.min(LONGEST);
        if !search.lengthen(seconds) {
            return Ok(());
        }
        let short = if needed_s > LONGEST { ", which is still too short" } else { "" };
        let text = format!("full trials take {} s{short}", si(seconds));
        self.progress.found(&format!("{text}: {why}"));
        self.warn(Warning::new("capacity-trials-lengthened", text).because(why))
    }
}

impl Left {
    fn keep(&mut self, trial: &Trial, rate: f64, shown: &Shown) {
        self.latencies_us.entry(key(rate)).or_default().extend(shown.latency_us);
        // A little loss fails a trial of the search, but is no limit to the diagnosis of a trial over UDP.
        let explains = |verdict: &&DiagnosisVerdict| {
            verdict.stage != Stage::Nothing || trial.ledger.unit == LedgerUnit::Segment
        };
        let failed = matches!(
            shown.outcome,
            TrialOutcome::Bad { .. } | TrialOutcome::Void { is_good: Some(false), .. }
        );
        if failed {
            let verdict = trial.verdict.as_ref().filter(explains).cloned();
            self.verdicts.entry(key(rate)).or_default().extend(verdict);
        }
    }
}

/// How long the receive buffer takes what it cannot pass on, at this rate. **Unit** s.
fn hidden_s(trial: &Trial, rate: f64) -> Option<f64> {
    let result = WorkloadResult::recorded(trial, Protocol::Udp, true)?;
    let fits = |socket: &SocketResult| {
        let truesize = socket.truesize_bytes.filter(|it| *it > 0)?;
        Some(socket.rcvbuf_bytes as f64 / truesize as f64)
    };
    let all: f64 = result.udp_serve()?.sockets.iter().filter_map(fits).sum();
    (all > 0.0).then_some(all / rate)
}

/// The rate that shares are shares of.
fn usable(found: &Capacity) -> Result<f64, LabError> {
    let why = match (found.lower_per_s, found.ended) {
        (_, SearchEnd::SenderLimited) => "the sender can't offer more than the receiver takes",
        (None, _) => "no rate holds",
        (Some(lower), _) => return Ok(lower),
    };
    let what = format!("the receiver's capacity was not found: {why}: {}", found.sentence());
    Err(cannot(what, "set load.rate instead of load.capacity_ratio, or give serve.work"))
}

/// The name of the variant whose capacity is meant, and it alone on its CPUs; `None` when no variant asks for a share.
fn wanted(resolved: &Resolved) -> Option<(String, Variant)> {
    let mut variant = resolved.available().find(|it| share(it).is_some())?.clone();
    let name = std::mem::replace(&mut variant.name, "capacity".into());
    variant.background = Background::default();
    variant.observe = Observe { sample_interval: Nanos(0), ..Observe::default() };
    Some((name, variant))
}

fn share(variant: &Variant) -> Option<f64> {
    variant.load.own().and_then(|own| own.capacity_ratio)
}

/// Gives a sender its rate. **Unit** events/s.
fn at_rate(variant: &mut Variant, rate: f64) {
    if let Workload::Own(own) = &mut variant.load {
        own.options.rate = Some(key(rate).max(1));
    }
}

/// The variant at one rate, named by it.
fn at_bound(variant: &Variant, rate: f64, what: &str) -> Variant {
    let mut loaded = variant.clone();
    loaded.name = format!("{} at {}/s", variant.name, key(rate));
    loaded.what = what.into();
    loaded.settings.insert("load.rate".into(), key(rate).into());
    at_rate(&mut loaded, rate);
    loaded
}

#[cfg(test)]
mod tests {
    use rxpath_load::udp::result::ServeResult;
    use rxpath_record::evidence::WindowEvidence;

    use super::*;

    fn found(ended: SearchEnd, lower_per_s: Option<f64>) -> Capacity {
        Capacity { ended, lower_per_s, unit: "datagrams".into(), ..Capacity::default() }
    }

    #[test]
    fn a_share_needs_a_capacity_of_the_receiver() {
        assert!((usable(&found(SearchEnd::Time, Some(5e4))).unwrap() - 5e4).abs() < 1e-9);
        let error = usable(&found(SearchEnd::SenderLimited, Some(5e4))).unwrap_err().to_string();
        assert!(error.contains("can't offer more") && error.contains("50k"), "{error}");
        let error = usable(&found(SearchEnd::LowestFails, None)).unwrap_err().to_string();
        assert!(error.contains("no rate holds"), "{error}");
    }

    #[test]
    fn the_buffer_hides_what_fits_into_it() {
        let socket = SocketResult {
            rcvbuf_bytes: 768_000,
            truesize_bytes: Some(768),
            ..SocketResult::default()
        };
        let result = ServeResult { sockets: vec![socket; 2], ..ServeResult::default() };
        let serve = serde_json::json!({ "result": result });
        let trial = Trial { workloads: [("serve".to_owned(), serve)].into(), ..Trial::default() };
        assert!((hidden_s(&trial, 10_000.0).unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(hidden_s(&Trial::default(), 10_000.0), None);
    }

    #[test]
    fn presets_are_those_of_the_reference() {
        let (usual, quick, rfc2544) =
            (CapacityOptions::default(), CapacityOptions::quick(), CapacityOptions::rfc2544());
        assert_eq!((usual.goal.width_ratio, usual.fresh), (0.03, 11));
        assert_eq!((quick.goal.width_ratio, quick.fresh), (0.05, 7));
        assert_eq!((rfc2544.goal.final_s, rfc2544.objectives.loss_ratio), (60.0, 0.0));
    }

    #[test]
    fn progress_says_what_is_known_and_the_time_to_go() {
        let range = SearchPlan {
            goal: CapacityOptions::default().goal,
            fresh: 11,
            first: 5e3,
            lowest: 1e2,
            most: 2e7,
            time_s: None,
        };
        let mut search = LoadSearch::new(range);
        let Turn::Try(next) = search.next() else { panic!("no trial") };
        let outcome = TrialOutcome::Good { loss_ratio: 0.0 };
        search.take(outcome, 1.0);
        let shown = Shown { outcome, loss_ratio: 0.0, latency_us: None };
        let text = told(&search, &next, (&shown, true), Protocol::Udp);
        assert!(
            text.starts_with("trial 1: 5k datagrams/s for 0.33 s: holds, loss 0 %; about "),
            "{text}"
        );
        assert!(text.ends_with(" s to go"), "{text}");
        let text = |is_good, counts| {
            let outcome = TrialOutcome::Void { is_good, loss_ratio: 0.2 };
            told(&search, &next, (&Shown { outcome, ..shown }, counts), Protocol::Udp)
        };
        assert!(text(Some(false), false).contains(": disturbed, to be repeated, "));
        assert!(text(Some(false), true).contains(": fails, though disturbed, "));
        assert!(text(None, true).contains(": disturbed, and the sender does not reach it, "));
    }

    #[test]
    fn a_limit_is_named_by_trials_that_failed_alone() {
        let verdict = Some(rxpath_diagnose::diagnose(&WindowEvidence::default()));
        let trial = Trial { verdict, ..Trial::default() };
        let kept = |is_good| {
            let mut left = Left::default();
            let outcome = TrialOutcome::Void { is_good, loss_ratio: 0.2 };
            left.keep(&trial, 5e3, &Shown { outcome, loss_ratio: 0.2, latency_us: None });
            left.verdicts.values().flatten().count()
        };
        assert_eq!([Some(false), Some(true), None].map(kept), [1, 0, 0]);
    }
}
