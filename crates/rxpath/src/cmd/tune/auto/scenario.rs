//! The search over trials of a scenario, in the lab or between hosts.

use std::time::Instant;

use rxpath_host::thread;
use rxpath_lab::LabError;
use rxpath_lab::hosts::Hosts;
use rxpath_lab::run::steps::{self, Steps};
use rxpath_lab::scenario::load;
use rxpath_lab::scenario::spec::Topology;

use rxpath_tune::auto::{self, Failed};
use rxpath_tune::persist::Home;

use super::answer::{AutoAnswer, AutoSettings};
use super::ask;
use super::session::{Session, made_of};
use super::trials::Trials;
use super::{AutoCommand, Written, check, product, wanted};
use crate::cmd::hosts_args;
use crate::cmd::model::calibration::{default_path, load as load_calibration};
use crate::cmd::prelude::*;
use crate::cmd::report::write_report;
use crate::cmd::run::{Ended as RunEnded, Ways, chosen, conduct_by, ending, root_needs};
use crate::cmd::tune::plan::persist_kind;
use crate::output::capacity::Steps as Shown;

/// A trial's times unless `--set` gives others: the search needs many short trials rather than few long ones.
const TIMES: [&str; 3] = ["trials.ramp=300ms", "trials.settle=0s", "trials.measure=2s"];
/// Pairs of the confirmation, as the run's statistics see them.
const LOOKS: [&str; 2] = ["trials.blocks=5", "trials.max_blocks=60"];
/// What makes trials shorter.
const SHORTER: &str = "shorter trials: --set trials.measure=500ms";
/// The longest run: the budget ends it before.
const TIME_LIMIT: &str = "trials.time_limit=24h";

impl AutoCommand {
    /// Searches over trials of a scenario, in the lab or between hosts.
    pub(super) fn run_scenario(&self, scenario: &str) -> Outcome {
        if self.hosts.is_given() && !self.hosts.may_change() {
            return Err(Failure::usage("tune auto changes settings of the hosts")
                .hint("--change-hosts allows it; each is undone after its trials"));
        }
        let needs = root_needs(scenario, &self.sets, true).and_changes();
        let hosts = self.hosts.connect(&needs)?;
        if hosts.as_ref().is_some_and(|hosts| hosts.receivers.len() > 1) {
            let text = "a search is for one receiver, and the inventory has several";
            return Err(Failure::usage(text).hint("leave one host with role = \"receiver\""));
        }
        let session = self.session(scenario, hosts.as_ref())?;
        let persist = self.persist.as_deref().map(persist_kind).transpose()?;
        let ways = Ways {
            keep_noisy: true,
            patience: self.lab.patience(),
            hosts: hosts.as_ref(),
            command: hosts_args::hidden(std::env::args()),
            ..Ways::default()
        };
        let (mut answer, mut refused) = (AutoAnswer::default(), None);
        let ended = conduct_by(&self.lab.out, ways, |options| {
            steps::run(&session.resolved, options, &mut Shown, |steps| {
                match self.search(&session, steps, &mut answer) {
                    Ok(()) => Ok(()),
                    Err(Stop::Lab(error)) => Err(error),
                    Err(Stop::Refused(failure)) => {
                        refused = Some(failure);
                        Ok(())
                    }
                }
            })
        })?;
        if let Some(failure) = refused {
            return Err(failure);
        }
        match ending(&ended) {
            Ok(Exit::Done | Exit::Inconclusive) => self.finish(&session, &ended, answer, persist),
            early if answer.found.is_none() => early,
            // What is known is shown; how it ended is what ended it.
            early => {
                if let Err(failure) = self.finish(&session, &ended, answer, persist) {
                    crate::note!("rxpath: {}", failure.line());
                }
                early
            }
        }
    }

    fn session<'a>(
        &self,
        scenario: &str,
        hosts: Option<&'a Hosts>,
    ) -> Result<Session<'a>, Failure> {
        let file = load(scenario).map_err(Failure::usage_of)?;
        // Times of a scenario that is made for a search hold.
        let is_open = |set: &&&str| {
            let key = set.split('=').next().unwrap_or_default();
            file.search.is_none() || !file.has(key)
        };
        let times = TIMES.iter().filter(is_open).chain(&LOOKS).chain([&TIME_LIMIT]);
        let times = times.map(|set| (*set).to_owned());
        let sets: Vec<String> = times.chain(self.sets.iter().cloned()).collect();
        let mut resolved = made_of(scenario, &sets, hosts)?;
        let variant = chosen(&resolved, self.variant.as_deref())?;
        if variant.topology == Topology::Local {
            return Err(Failure::usage("on loopback there are no settings of its own to try")
                .hint("leave out topology.kind=local"));
        }
        let main = variant.main_metric();
        let (objective, guards) = match &self.axes {
            Some(search) => check(search, main)?,
            None => wanted(self.objective.as_deref().unwrap_or(main), &self.guards)?,
        };
        (resolved.variants, resolved.compare) = (vec![variant.clone()], Vec::new());
        let prefix = format!("variant.{}.", variant.name);
        let probe = [sets.clone(), vec![format!("{prefix}observe.drops=false")]].concat();
        let is_named = made_of(scenario, &probe, hosts).is_ok();
        let calibration = default_path().exists().then(|| load_calibration(&default_path(), false));
        Ok(Session {
            hosts,
            scenario: scenario.to_owned(),
            name: resolved.name.clone(),
            prefix: if is_named { prefix } else { String::new() },
            resolved,
            variant,
            sets,
            objective,
            guards,
            cpus: hosts.map_or_else(
                || thread::allowed_cpus().map(|all| all.0),
                |hosts| Ok(hosts.cpus()),
            )?,
            calibration: calibration.and_then(Result::ok).map(|(known, _)| known),
            goal: self.goal,
            axes: self.axes.clone(),
        })
    }

    /// One trial of the start, the candidates, the search.
    fn search(
        &self,
        session: &Session<'_>,
        steps: &mut Steps<'_, '_>,
        answer: &mut AutoAnswer,
    ) -> Result<(), Stop> {
        let measure = session.resolved.trials.measure;
        // The budget begins when the lab is free.
        let begun = Instant::now();
        let deadline = begun + Duration::from_nanos(self.budget.0);
        let mut start = session.variant.clone();
        start.name = "diagnosis".into();
        let trial = steps.trial(&start, 0, measure)?;
        // Numbers are from 0; a disturbed trial was repeated.
        let full = begun.elapsed() / (trial.trial + 1);
        let about = (&trial.metrics, session.name.as_str());
        ask::measured(&session.objective, &session.guards, about).map_err(Stop::Refused)?;
        answer.trial_s = full.as_secs_f64();
        answer.start = trial.metrics.get(&session.objective.metric).copied();
        answer.limit = trial.verdict.as_ref().map(|verdict| verdict.sentence.clone());
        let with = |sets: &[String]| session.with(sets);
        let chosen = session.candidates(steps, &trial, &self.settings)?;
        (answer.candidates, answer.not_available) = (chosen.candidates, chosen.left_out);
        if self.dry_run || answer.candidates.is_empty() {
            return Ok(());
        }
        let candidates = answer.candidates.clone();
        let plan = self.search_plan(&candidates, (&session.objective, &session.guards));
        let asked = (&session.objective, session.guards.as_slice());
        let times = (measure, full);
        let mut trials = Trials::new((steps, &with), &candidates, asked, times, deadline);
        let found = auto::search(&mut trials, &plan).map_err(|failed| match failed {
            Failed::Measure(error, known) => {
                (answer.found, answer.trials) = (Some(*known), std::mem::take(&mut trials.made));
                Stop::Lab(error)
            }
            Failed::TooShort(short) => Stop::Refused(self.too_short(short.needed, full, SHORTER)),
        })?;
        let on: Vec<usize> = (0..candidates.len())
            .filter(|at| found.kept.iter().any(|kept| kept.name == candidates[*at].name))
            .collect();
        let kept = trials.variant(&on)?;
        answer.trials = std::mem::take(&mut trials.made);
        session.compare(steps, &found, (kept, &answer.trials))?;
        answer.found = Some(found);
        Ok(())
    }

    fn finish(
        &self,
        session: &Session<'_>,
        ended: &RunEnded,
        mut answer: AutoAnswer,
        persist: Option<(Home, PathBuf)>,
    ) -> Outcome {
        let report = write_report(&ended.directory)?;
        if let Some(kept) = answer.kept() {
            answer.plan = Some(match session.hosts {
                Some(hosts) => product::plan_on(hosts, kept)?,
                None => product::plan(kept, self.dev.as_deref())?,
            });
        }
        answer.compared.clone_from(&ended.manifest.comparisons);
        let run = ended.directory.clone();
        let settings = AutoSettings {
            scenario: Some(session.name.clone()),
            variant: Some(session.variant.name.clone()),
            between_hosts: session.hosts.is_some(),
            ..self.settings_for((&session.objective, &session.guards), run)
        };
        let warnings = ended.manifest.warnings.clone();
        let written = Written { settings, answer, warnings, persist, report: Some(report) };
        self.publish(written)
    }
}

/// Why a search ends without a result.
enum Stop {
    /// In the lab.
    Lab(LabError),
    /// What was asked for can't be done.
    Refused(Failure),
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}
