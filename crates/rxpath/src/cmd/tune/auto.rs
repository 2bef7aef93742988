//! `rxpath tune auto`: which settings help a scenario in the lab or between hosts, shown with error control.

mod ask;
mod candidates;
mod catalogue;
mod ground;
mod product;
mod session;
pub mod shown;
mod trials;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use rxpath_core::{Envelope, Nanos};
use rxpath_host::thread;
use rxpath_lab::LabError;
use rxpath_lab::hosts::Hosts;
use rxpath_lab::run::steps::{self, Steps};
use rxpath_lab::scenario::spec::{Resolved, Topology, Variant};
use rxpath_tune::Goal;
use rxpath_tune::auto::{self, AutoResult, Ended, Failed, Guard, Plan};
use rxpath_tune::persist::{Home, MatchBy};

use self::ask::Objective;
use self::session::{Session, made_of};
use self::shown::{AutoAnswer, AutoSettings, lines};
use self::trials::Trials;
use super::plan::{persist_kind, persist_to};
use crate::cmd::check::GoalArg;
use crate::cmd::hosts_args::HostsArgs;
use crate::cmd::lab_args::LabArgs;
use crate::cmd::model::calibrate::{default_path, load as load_calibration};
use crate::cmd::report::write_report;
use crate::cmd::run::{Ended as RunEnded, Ways, conduct_by, ending};
use crate::cmd::values::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::output::capacity::Steps as Shown;
use crate::output::format::FormatArgs;

/// A trial's times unless `--set` gives others: the search needs many short trials rather than few long ones.
const TIMES: [&str; 3] = ["trials.ramp=300ms", "trials.settle=0s", "trials.measure=2s"];
/// Pairs of the confirmation, as the run's statistics see them.
const LOOKS: [&str; 2] = ["trials.blocks=5", "trials.max_blocks=60"];
/// The longest run: the budget ends it before.
const TIME_LIMIT: &str = "trials.time_limit=24h";

/// Options of `rxpath tune auto`.
#[derive(Debug, Args)]
pub struct AutoCommand {
    /// The experiment or scenario file whose lab, server and client are used
    #[arg(long, value_name = "SCENARIO")]
    scenario: String,
    /// The variant to start from; default: the first one that can run here
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Set a key of the scenario, for example `trials.measure=1s`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// What to make better: `max METRIC` or `min METRIC`; default: the scenario's main metric
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<String>,
    /// What must not become worse: `loss_ratio<0.001`, `one_way_delay_p99_us<=+10%`; repeatable. Of shares, `+2%` is two
    /// percentage points
    #[arg(long = "guard", value_name = "GUARD")]
    guards: Vec<String>,
    /// Time for all trials
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20min")]
    budget: Nanos,
    /// Try only candidates whose name or one of whose settings matches: `serve.*`, `*rps_cpus`; repeatable
    #[arg(long, value_name = "GLOB")]
    settings: Vec<String>,
    /// Workload goal for which the rules of `rxpath check` are asked
    #[arg(long, value_enum)]
    goal: Option<GoalArg>,
    /// Also keep what is likely but not proven alone, if all of it together is better
    #[arg(long, value_enum, default_value_t)]
    keep: Keep,
    /// The device of this host that the lab's device stands for, for the plan
    #[arg(long, value_name = "IF")]
    dev: Option<String>,
    /// Also draft a file that keeps the plan's values after a reboot; it is written into DIR for review
    #[arg(long, num_args = 2, value_names = ["KIND", "DIR"])]
    persist: Option<Vec<String>>,
    /// Make one trial of the start and list the candidates; search nothing
    #[arg(long)]
    dry_run: bool,
    /// Seed of the arrays and of the order of trials
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    lab: LabArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// What is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Keep {
    /// What is proven
    #[default]
    Proven,
    /// Also what is only proven together
    Bundle,
}

impl AutoCommand {
    /// Searches, prints what helps, writes the plan.
    pub fn run(self) -> Outcome {
        let hosts = self.hosts.connect()?;
        if hosts.is_some() && !self.hosts.may_change() {
            return Err(Failure::usage("tune auto changes settings of the hosts")
                .hint("--change-hosts allows it; each is undone after its trial"));
        }
        let session = self.session(hosts.as_ref())?;
        let persist = self.persist.as_deref().map(persist_kind).transpose()?;
        let ways = Ways {
            keep_noisy: true,
            patience: self.lab.patience(),
            hosts: hosts.as_ref(),
            command: self.hosts.hidden(std::env::args()),
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
        match ending(&ended)? {
            Exit::Done | Exit::Inconclusive => {}
            other => return Ok(other),
        }
        self.finish(&session, &ended, answer, persist)
    }

    fn session<'a>(&self, hosts: Option<&'a Hosts>) -> Result<Session<'a>, Failure> {
        let times = TIMES.iter().chain(&LOOKS).chain([&TIME_LIMIT]).map(|set| (*set).to_owned());
        let sets: Vec<String> = times.chain(self.sets.iter().cloned()).collect();
        let mut resolved = made_of(&self.scenario, &sets, hosts)?;
        let variant = self.chosen(&resolved)?;
        if variant.topology == Topology::Local {
            return Err(Failure::usage("on loopback there are no settings of its own to try")
                .hint("leave out topology.kind=local"));
        }
        let objective = self.objective.as_deref().unwrap_or(variant.main_metric());
        let objective = Objective::read(objective).map_err(Failure::usage)?;
        let guards: Result<Vec<Guard>, String> =
            self.guards.iter().map(|text| ask::guard(text)).collect();
        let guards = guards.map_err(Failure::usage)?;
        if let Some(why) = ask::contradiction(&objective, &guards) {
            return Err(Failure::usage(why));
        }
        (resolved.variants, resolved.compare) = (vec![variant.clone()], Vec::new());
        let prefix = format!("variant.{}.", variant.name);
        let probe = [sets.clone(), vec![format!("{prefix}observe.drops=false")]].concat();
        let is_named = made_of(&self.scenario, &probe, hosts).is_ok();
        let calibration = default_path().exists().then(|| load_calibration(&default_path(), false));
        Ok(Session {
            hosts,
            scenario: self.scenario.clone(),
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
            goal: self.goal.map(Goal::from),
        })
    }

    fn chosen(&self, scenario: &Resolved) -> Result<Variant, Failure> {
        let all = &scenario.variants;
        let found = match &self.variant {
            Some(name) => all.iter().find(|variant| variant.name == *name),
            None => all.iter().find(|variant| variant.not_available.is_none()).or(all.first()),
        };
        let found = found.ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|variant| variant.name.as_str()).collect();
            let asked = self.variant.as_deref().unwrap_or_default();
            Failure::usage(format!(
                "{} has no variant `{asked}`; it has {}",
                scenario.name,
                names.join(", ")
            ))
        })?;
        match &found.not_available {
            Some(why) => {
                let why = format!("variant {} cannot run here: {why}", found.name);
                Err(Failure::new(Exit::Cannot, anyhow::anyhow!(why)))
            }
            None => Ok(found.clone()),
        }
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
        session.measured(&trial)?;
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
        let plan = Plan {
            candidates: &candidates,
            guards: &session.guards,
            sign: session.objective.sign(),
            error: 0.05,
            bundle: self.keep == Keep::Bundle,
            seed: self.seed,
        };
        let asked = (&session.objective, session.guards.as_slice());
        let times = (measure, full);
        let mut trials = Trials::new((steps, &with), &candidates, asked, times, deadline);
        let found = auto::search(&mut trials, &plan).map_err(|failed| match failed {
            Failed::Measure(error) => Stop::Lab(error),
            Failed::TooShort(short) => Stop::Refused(self.too_short(short.needed, full)),
        })?;
        let on: Vec<usize> = (0..candidates.len())
            .filter(|at| found.kept.iter().any(|kept| kept.name == candidates[*at].name))
            .collect();
        let kept = trials.variant(&on)?;
        answer.trials = std::mem::take(&mut trials.made);
        session.compare(steps, &found, kept)?;
        answer.found = Some(found);
        Ok(())
    }

    fn too_short(&self, needed: usize, full: Duration) -> Failure {
        // The start, the candidates and the first trial take their time too.
        let time = full.mul_f64(needed as f64 + 2.0).as_secs_f64();
        let least = if time < 90.0 {
            format!("{:.0}s", time.ceil())
        } else {
            format!("{:.0}min", (time / 60.0).ceil())
        };
        let text = format!(
            "--budget {}: too short: {least} at least, {needed} trials of {:.1} s",
            self.budget,
            full.as_secs_f64()
        );
        Failure::usage(text).hint("shorter trials: --set trials.measure=500ms")
    }

    fn finish(
        &self,
        session: &Session<'_>,
        ended: &RunEnded,
        mut answer: AutoAnswer,
        persist: Option<(Home, PathBuf)>,
    ) -> Outcome {
        let report = write_report(&ended.directory)?;
        let (mut plan_file, mut drafts) = (None, Vec::new());
        if let Some(found) = answer.found.as_ref().filter(|found| found.ended == Ended::Kept) {
            let plan = match session.hosts {
                Some(hosts) => product::plan_on(hosts, &found.kept)?,
                None => product::plan(&found.kept, self.dev.as_deref())?,
            };
            let file = ended.directory.join("plan.toml");
            write(&file, &plan.to_toml()?)?;
            if let Some((home, dir)) = &persist {
                drafts = persist_to(&plan, (*home, dir), MatchBy::Path)?;
            }
            (plan_file, answer.plan) = (Some(file), Some(plan));
        }
        answer.compared.clone_from(&ended.manifest.comparisons);
        let settings = AutoSettings {
            scenario: session.name.clone(),
            variant: session.variant.name.clone(),
            objective: session.objective.metric.clone(),
            guards: session.guards.iter().map(|guard| guard.text.clone()).collect(),
            between_hosts: session.hosts.is_some(),
            budget_s: self.budget.0 as f64 / 1e9,
            seed: self.seed,
            run: ended.directory.clone(),
            plan_file,
        };
        let text = lines(&settings, &answer).join("\n") + "\n";
        write(&ended.directory.join("tune-auto.md"), &text)?;
        let exit = status(answer.found.as_ref(), self.dry_run);
        let whole = Envelope::new("tune-auto", settings, answer, ended.manifest.warnings.clone());
        let json = serde_json::to_string_pretty(&whole).context("the result as JSON")?;
        write(&ended.directory.join("tune-auto.json"), &(json + "\n"))?;
        if self.format.is_json() {
            output::json(&whole)?;
        } else {
            ended.manifest.warnings.iter().for_each(output::warning);
            output::text(&text)?;
            drafts.iter().try_for_each(|draft| output::line(draft))?;
            output::line(&format!("report: {}", report.display()))?;
        }
        Ok(exit)
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

fn status(found: Option<&AutoResult>, dry_run: bool) -> Exit {
    match found.map(|found| found.ended) {
        None if dry_run => Exit::Done,
        Some(Ended::Kept) => Exit::Done,
        None | Some(Ended::NothingProven) => Exit::Negative,
        Some(Ended::NotConfirmed | Ended::GuardNotShown) => Exit::Inconclusive,
        Some(Ended::Unsafe) => Exit::Partial,
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(Failure::usage_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_says_how_the_search_ended() {
        assert_eq!(status(None, true), Exit::Done);
        assert_eq!(status(None, false), Exit::Negative);
    }
}
