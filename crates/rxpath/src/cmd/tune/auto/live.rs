//! The search on this host's own traffic: settings are switched in slices of time, and every limit is watched.

mod args;
mod stop;

pub use args::LiveArgs;

use std::time::Instant;

use rxpath_host::write::journal::Contents;
use rxpath_host::write::setter::HostSetter;
use rxpath_lab::search::answer::{AutoAnswer, AutoSettings};
use rxpath_lab::search::ask::{self, Objective};
use rxpath_lab::search::candidates::CandidateSource;
use rxpath_lab::search::confirming::compared;
use rxpath_lab::search::live::answer::{AppliedHere, LiveAnswer, LiveSettings};
use rxpath_lab::search::live::guards::{self, OBJECTIVE};
use rxpath_lab::search::live::host::Host;
use rxpath_lab::search::live::limits::Limits;
use rxpath_lab::search::live::meter::Meter;
use rxpath_lab::search::live::slices::Slices;
use rxpath_lab::search::live::{Start, Times};
use rxpath_lab::search::searched::Searched;
use rxpath_record::run::run_id;
use rxpath_record::verdict::Stage;
use rxpath_record::watch::TrafficSlice;
use rxpath_tune::auto::{self, Failed, MetricGuard};
use rxpath_tune::persist::Home;
use rxpath_tune::plan::LeftOut;
use rxpath_tune::store::Store;
use rxpath_tune::switch::SettingsSwitch;

use self::stop::LiveSearchStop;
use super::shown::lines;
use super::{AutoCommand, Written, not_measured, wanted};
use crate::cmd::prelude::*;
use crate::cmd::tune::apply::OnFailure;
use crate::cmd::tune::plan::persist_kind;
use crate::cmd::tune::watchdog::start_watchdog;
use crate::cmd::tune::{PATIENCE, apply, taken};
use crate::cmd::values::Wait;

/// What makes a search fit.
const SHORTER: &str = "a longer --budget, or a shorter --slice";
/// Shorter slices hold too little of any traffic.
const SHORTEST: Nanos = Nanos::from_millis(200);

/// What is asked for.
struct Search<'a> {
    device: &'a str,
    objective: Objective,
    guards: Vec<MetricGuard>,
    persist: Option<(Home, PathBuf)>,
    times: Times,
    warnings: Vec<Warning>,
}

impl AutoCommand {
    /// Searches on the real traffic of a device.
    pub(super) fn run_live(&self, device: &str) -> Outcome {
        if self.hosts.is_given() {
            return Err(Failure::usage(
                "--live is about this host: leave out --hosts, --sender and --receiver",
            ));
        }
        let search = self.wanted_of(device)?;
        let interrupt = Interrupt::catch()?;
        let mut journal = None;
        self.search_live(search, &interrupt, &mut journal).or_else(|stop| {
            let store = self.live.state.store();
            let is_open = |id| {
                let contents = Contents::read(&store.path(id)).ok().flatten();
                contents.is_none_or(|contents| contents.is_open())
            };
            stop.outcome(journal.map(|id| (id, is_open(id))))
        })
    }

    fn wanted_of<'a>(&self, device: &'a str) -> Result<Search<'a>, Failure> {
        if device == "lo" {
            return Err(Failure::usage(
                "--live lo: loopback has no queues and no settings of its own",
            ));
        }
        if self.live.slice < SHORTEST {
            return Err(Failure::usage(format!(
                "--slice {}: at least {SHORTEST}",
                self.live.slice
            )));
        }
        self.live.confirm_within.map(apply::within).transpose()?;
        let objective = self.objective.as_deref().unwrap_or(OBJECTIVE);
        let (objective, guards) = wanted(objective, &self.guards)?;
        let persist = self.persist.as_deref().map(persist_kind).transpose()?;
        let times =
            Times { settle: self.live.settle.as_duration(), slice: self.live.slice.as_duration() };
        Ok(Search { device, objective, guards, persist, times, warnings: Vec::new() })
    }

    fn search_live(
        &self,
        mut search: Search<'_>,
        interrupt: &Interrupt,
        journal: &mut Option<u32>,
    ) -> Result<Exit, LiveSearchStop> {
        let until = |due: Instant| -> std::io::Result<Option<i32>> {
            let mut wait = Wait::new(interrupt);
            wait.until_time(due)?;
            Ok(wait.signal())
        };
        let mut meter = Meter::start(search.device, &until)?;
        let begun = Instant::now();
        let start = search.start(&mut meter)?;
        search.complete(&start.slice, self.guards.is_empty(), meter.without_probes())?;
        if let Some(why) = meter.without_probes() {
            search.warnings.push(Warning::new("counters-only", format!("counters only: {why}")));
        }
        let host = Host::new(search.device, &self.live.allow)?;
        let mut answer = self.candidates_here(&search, &host, &start)?;
        let settings = self.settings_of(&search);
        if self.dry_run || answer.candidates.is_empty() {
            return Ok(self.publish(search.written(settings, answer))?);
        }
        if !self.live.yes {
            if !self.format.is_json() {
                output::text(&(lines(&settings, &answer).join("\n") + "\n"))
                    .map_err(Failure::from)?;
            }
            let what = format!(
                "tune auto --live changes settings of this host, for up to {} in slices of {}",
                self.budget, self.live.slice
            );
            return Err(Failure::usage(what)
                .hint("--yes allows it; each slice's settings are undone")
                .into());
        }
        let deadline = begun + self.budget.as_duration();
        let (needed, full) = (auto::fewest_trials(&answer.candidates), search.times.full());
        // Nothing is changed if the budget does not hold enough slices after what was spent.
        if deadline.saturating_duration_since(Instant::now()) < full * needed as u32 {
            return Err(self.too_short(needed, full, SHORTER).into());
        }
        let early = self.switched(&search, (&host, meter), &mut answer, (deadline, journal));
        if early.is_err() && answer.found.is_none() {
            return early.map(|()| Exit::Done);
        }
        let published = self.publish(search.written(settings, answer));
        if let (Err(_), Err(failure)) = (&early, &published) {
            crate::note!("rxpath: {}", failure.line());
        }
        // What is in force matters more than a file that could not be written.
        early?;
        Ok(published?)
    }

    /// What may be tried here.
    fn candidates_here(
        &self,
        search: &Search<'_>,
        host: &Host<'_>,
        start: &Start,
    ) -> Result<AutoAnswer, LiveSearchStop> {
        let (advice, left_out) = host.advice(self.goal);
        // What is named by hand is tried whatever else is left out.
        let named = self.live.tries.iter().filter(|_| !self.settings.is_empty());
        let only: Vec<String> = self.settings.iter().chain(named).cloned().collect();
        let source = CandidateSource {
            stage: start.verdict.as_ref().map_or(Stage::Unknown, |verdict| verdict.stage),
            only: &only,
            advice,
            entries: host.entries(&self.live.tries),
            available: &|entry| Ok(host.available(entry)),
            predict: &|_| None,
        };
        let chosen = source.choose().map_err(|error| LiveSearchStop::Refused(error.into()))?;
        let missing = chosen.left_out.iter().find(|left| self.live.tries.contains(&left.what));
        if let Some(LeftOut { what, why, .. }) = missing {
            return Err(Failure::usage(format!("--try {what}: {why}")).into());
        }
        Ok(AutoAnswer {
            limit: start.verdict.as_ref().map(|verdict| verdict.sentence.clone()),
            start: start.slice.metrics().get(&search.objective.metric).copied(),
            candidates: chosen.candidates,
            not_available: chosen.left_out.into_iter().chain(left_out).collect(),
            trial_s: search.times.full().as_secs_f64(),
            ..AutoAnswer::default()
        })
    }

    fn settings_of(&self, search: &Search<'_>) -> AutoSettings {
        let id = run_id(jiff::Timestamp::now(), "tune-auto-live", std::process::id());
        AutoSettings {
            live: Some(LiveSettings {
                device: search.device.to_owned(),
                slice_s: search.times.slice.as_secs_f64(),
                settle_s: search.times.settle.as_secs_f64(),
            }),
            ..self.settings_for((&search.objective, &search.guards), self.lab.out.join(id))
        }
    }

    /// The search itself, with the settings switched through a journal that a watchdog holds.
    fn switched(
        &self,
        search: &Search<'_>,
        (host, meter): (&Host<'_>, Meter<'_>),
        answer: &mut AutoAnswer,
        (deadline, journal): (Instant, &mut Option<u32>),
    ) -> Result<(), LiveSearchStop> {
        let (store, _lock) = self.live.state.locked()?;
        let candidates = answer.candidates.clone();
        let sets: Vec<String> = candidates.iter().flat_map(|one| one.sets.clone()).collect();
        let all = host.plan(&sets).map_err(Failure::usage)?;
        let targets = all.steps.iter().map(|step| &step.set);
        let _shared = store.lock_shared(targets, PATIENCE).map_err(taken)?;
        apply::alone(&store, &all)?;
        let base = host.base(&candidates)?;
        let (id, mut open) = store.begin()?;
        *journal = Some(id);
        let watch = start_watchdog(&store, id, &mut open, (search.times.hold(false), true))?;
        let (objective, guards) = (&search.objective, search.guards.as_slice());
        let searched = Searched { candidates: &candidates, objective, guards, deadline };
        let mut slices = Slices {
            meter,
            switch: SettingsSwitch::new(open, HostSetter::default(), watch),
            host,
            base,
            searched,
            times: search.times,
            limits: Limits::new(guards::watched(objective, guards)),
            answer: LiveAnswer::default(),
            say: &|text| crate::note!("{text}"),
        };
        let plan = searched.plan(&self.asked());
        let found = auto::search(&mut slices, &plan).map_err(|failed| match failed {
            Failed::Measure(stop, known) => {
                answer.found = Some(*known);
                answer.live = Some(std::mem::take(&mut slices.answer));
                LiveSearchStop::Search(stop)
            }
            Failed::TooShort(short) => {
                LiveSearchStop::Refused(self.too_short(short.needed, search.times.full(), SHORTER))
            }
        })?;
        let restored = slices.switch.base().and_then(|()| slices.base.is_here());
        if restored.is_ok() {
            slices.answer.restored_count = slices.base.values.len();
        }
        answer.live = Some(slices.answer);
        answer.found = Some(if restored.is_ok() { found } else { found.cut_short() });
        let seen = answer.kept().zip(answer.live.as_ref());
        answer.compared = seen.map_or_else(Vec::new, |(kept, live)| {
            let names = kept.iter().map(|kept| kept.name.as_str()).collect();
            compared(&live.slices, &names)
        });
        restored?;
        self.keep(host, &store, answer)
    }

    /// The plan of what is kept; with `--apply` it is carried out before anybody else may change the host.
    fn keep(
        &self,
        host: &Host<'_>,
        store: &Store,
        answer: &mut AutoAnswer,
    ) -> Result<(), LiveSearchStop> {
        let Some(kept) = answer.kept() else { return Ok(()) };
        let sets: Vec<String> = kept.iter().flat_map(|kept| kept.sets.clone()).collect();
        let plan = host.plan(&sets).map_err(Failure::usage)?;
        if self.live.apply {
            let within = self.live.confirm_within.map(apply::within).transpose()?;
            let mut setter = HostSetter::default();
            let done =
                apply::carry_out((store, &plan), &mut setter, (within, None), OnFailure::Undo)?;
            answer.applied = Some(AppliedHere {
                journal: done.id,
                in_force: done.in_force && done.applied.is_whole(),
                changes: done.applied.changes,
                confirm_within_s: within.map(|within| within.as_secs()),
            });
        }
        answer.plan = Some(plan);
        Ok(())
    }
}

impl Search<'_> {
    /// One slice of the traffic as it is.
    fn start(&self, meter: &mut Meter<'_>) -> Result<Start, LiveSearchStop> {
        if let Some(start) = Start::measure(meter, self.times)? {
            return Ok(start);
        }
        let text = format!(
            "{} received nothing in {:.0} s: there is no traffic to search on",
            self.device,
            self.times.slice.as_secs_f64()
        );
        let hint = "`rxpath watch` shows what comes; --scenario brings its own traffic";
        Err(Failure::cannot(text).hint(hint).into())
    }

    /// The default guards, as far as they can be measured here; those that were asked for must be.
    fn complete(
        &mut self,
        slice: &TrafficSlice,
        is_default: bool,
        without_probes: Option<&str>,
    ) -> Result<(), LiveSearchStop> {
        let metrics = slice.metrics();
        if let Some(why) = without_probes.filter(|_| !metrics.contains_key(&self.objective.metric))
        {
            let what = format!("{} can't be measured here: {why}", self.objective.metric);
            let names: Vec<&str> = metrics.keys().map(String::as_str).collect();
            let hint = format!("without BPF it measures {}", names.join(", "));
            return Err(Failure::cannot(what).hint(hint).into());
        }
        if is_default {
            let (known, missing) = guards::defaults(&self.objective, &metrics);
            self.guards = known;
            self.warnings.extend(missing.iter().map(|guard| {
                let text = format!("{} is not watched: it is not measured here", guard.text);
                Warning::new("guard-left-out", text)
            }));
        }
        let about = (&metrics, "the live view");
        Ok(ask::measured(&self.objective, &self.guards, about).map_err(not_measured)?)
    }

    fn written(self, settings: AutoSettings, answer: AutoAnswer) -> Written {
        Written { settings, answer, warnings: self.warnings, persist: self.persist, report: None }
    }
}
