//! The search over trials of a scenario, in the lab or between hosts.

use rxpath_host::read::thread;
use rxpath_lab::hosts::Hosts;
use rxpath_lab::run::steps;
use rxpath_lab::scenario::load;
use rxpath_lab::search::answer::{AutoAnswer, AutoSettings};
use rxpath_lab::search::product;
use rxpath_lab::search::session::{SearchSession, Stop};
use rxpath_tune::persist::Home;

use super::{AutoCommand, Written, check, not_measured, wanted};
use crate::cmd::lab_error::failure;
use crate::cmd::model::calibration::{default_path, load as load_calibration};
use crate::cmd::prelude::*;
use crate::cmd::report::write_report;
use crate::cmd::run::{Ended as RunEnded, Ways, conduct_by, ending};
use crate::cmd::scenario::{chosen, resolved_between, root_needs};
use crate::cmd::tune::plan::persist_kind;
use crate::output::capacity::SearchProgress;

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
        if self.hosts.is_given() && !self.hosts.change_hosts {
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
            patience: self.lab.wait.patience(),
            hosts: hosts.as_ref(),
            ..Ways::default()
        };
        let (mut answer, mut refused) = (AutoAnswer::default(), None);
        let ended = conduct_by(&self.lab.out, ways, |options| {
            steps::run(&session.resolved, options, &mut SearchProgress, |steps| {
                match session.search(steps, &self.asked(), &mut answer) {
                    Ok(()) => {}
                    Err(Stop::Lab(error)) => return Err(error),
                    Err(Stop::NotMeasured(why)) => refused = Some(not_measured(why)),
                    Err(Stop::TooShort { needed, full }) => {
                        refused = Some(self.too_short(needed, full, SHORTER));
                    }
                }
                Ok(())
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
        scenario: &'a str,
        hosts: Option<&'a Hosts>,
    ) -> Result<SearchSession<'a>, Failure> {
        let file = load(scenario).map_err(Failure::usage_of)?;
        // Times of a scenario that is made for a search hold.
        let is_open = |set: &&&str| {
            let key = set.split('=').next().unwrap_or_default();
            file.search.is_none() || !file.has(key)
        };
        let times = TIMES.iter().filter(is_open).chain(&LOOKS).chain([&TIME_LIMIT]);
        let times = times.map(|set| (*set).to_owned());
        let sets: Vec<String> = times.chain(self.sets.iter().cloned()).collect();
        let mut resolved = resolved_between(scenario, &sets, (hosts, true))?;
        let variant = chosen(&resolved, self.variant.as_deref())?;
        if variant.topology.is_loopback() {
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
        let is_named = resolved_between(scenario, &probe, (hosts, true)).is_ok();
        let cpus = hosts
            .map_or_else(|| thread::allowed_cpus().map(|all| all.0), |hosts| Ok(hosts.cpus()))?;
        let calibration = default_path().exists().then(|| load_calibration(&default_path(), false));
        Ok(SearchSession {
            hosts,
            resolve: Box::new(move |sets: &[String]| {
                resolved_between(scenario, sets, (hosts, true)).map_err(|failure| failure.line())
            }),
            calibration: calibration.and_then(Result::ok).map(|(known, _)| known),
            name: resolved.name.clone(),
            prefix: if is_named { prefix } else { String::new() },
            resolved,
            variant,
            sets,
            objective,
            guards,
            cpus,
            goal: self.goal,
            axes: self.axes.clone(),
        })
    }

    fn finish(
        &self,
        session: &SearchSession<'_>,
        ended: &RunEnded,
        mut answer: AutoAnswer,
        persist: Option<(Home, PathBuf)>,
    ) -> Outcome {
        let report = write_report(&ended.directory)?;
        if let Some(kept) = answer.kept() {
            answer.plan = Some(match session.hosts {
                Some(hosts) => product::plan_on(hosts, kept).map_err(failure)?,
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
