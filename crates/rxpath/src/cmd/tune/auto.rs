//! `rxpath tune auto`: which settings help a scenario, or this host's own traffic, shown with error control.

mod live;
mod page;
mod scenario;
mod shown;

use clap::ArgGroup;
use rxpath_lab::scenario::load;
use rxpath_lab::scenario::spec::Search;
use rxpath_lab::search::answer::{AutoAnswer, AutoSettings};
use rxpath_lab::search::ask::{self, NotMeasured, Objective, SearchOptions};
use rxpath_tune::Goal;
use rxpath_tune::auto::{AutoOutcome, AutoResult, MetricGuard};
use rxpath_tune::persist::{Home, MatchBy};

use self::live::LiveArgs;
use self::shown::lines;
use super::plan::persist_to;
use crate::cmd::hosts_args::HostsArgs;
use crate::cmd::lab_args::LabArgs;
use crate::cmd::prelude::*;
use crate::cmd::values::{duration, write};

/// What chance depends on, unless something else is asked for.
const SEED: u64 = 1;

/// Options of `rxpath tune auto`.
#[derive(Debug, Default, Args)]
#[command(group(ArgGroup::new("traffic").required(true)))]
pub struct AutoCommand {
    /// The experiment or scenario file whose lab, server and client are used
    #[arg(long, value_name = "SCENARIO", group = "traffic")]
    scenario: Option<String>,
    /// The variant to start from; default: the first one that can run here
    #[arg(long, value_name = "NAME", conflicts_with = "device")]
    variant: Option<String>,
    /// Set a key of the scenario, for example `trials.measure=1s`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "device")]
    sets: Vec<String>,
    /// What to make better: `max METRIC` or `min METRIC`; default: the scenario's main metric, or
    /// network_cpu_us_per_packet with `--live`
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<String>,
    /// What must not become worse: `loss_ratio<0.001`, `one_way_delay_p99_us<=+10%`, or the larger of two, `<=+100%|+50`;
    /// repeatable. Of shares, `+2%` is two percentage points
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
    goal: Option<Goal>,
    /// Also keep what is likely but not proven alone, if all of it together is better
    #[arg(long, value_enum, default_value_t)]
    keep: Keep,
    /// The device of this host that the lab's device stands for, for the plan
    #[arg(long, value_name = "IF", conflicts_with = "device")]
    dev: Option<String>,
    /// Also draft a file that keeps the plan's values after a reboot; it is written into DIR for review
    #[arg(long, num_args = 2, value_names = ["KIND", "DIR"])]
    persist: Option<Vec<String>>,
    /// Measure the start once and list the candidates; search nothing
    #[arg(long)]
    dry_run: bool,
    /// Seed of the combinations of candidates and of the order of trials
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    lab: LabArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// The candidates, where the scenario names them itself.
    #[arg(skip)]
    axes: Option<Search>,
}

/// Whether objective and guards of a `[search]` can be read and hold together.
///
/// # Errors
/// In words what is wrong and what would be right.
pub fn check(search: &Search, main_metric: &str) -> Result<(Objective, Vec<MetricGuard>), Failure> {
    let objective = search.objective.as_deref().unwrap_or(main_metric);
    wanted(objective, &search.guards)
        .map_err(|failure| failure.hint("it is in the [search] of the scenario"))
}

fn wanted(objective: &str, guards: &[String]) -> Result<(Objective, Vec<MetricGuard>), Failure> {
    let objective = Objective::read(objective).map_err(Failure::usage)?;
    let guards = ask::guards(guards, &objective).map_err(Failure::usage)?;
    Ok((objective, guards))
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
    /// A run of a scenario, by its name or file, with a `[search]`.
    pub fn of_search(
        scenario: String,
        sets: Vec<String>,
        search: Search,
        (hosts, lab, format): (HostsArgs, LabArgs, FormatArgs),
    ) -> Self {
        Self {
            scenario: Some(scenario),
            variant: search.variant.clone(),
            sets,
            objective: search.objective.clone(),
            guards: search.guards.clone(),
            budget: search.budget,
            seed: SEED,
            hosts,
            lab,
            format,
            axes: Some(search),
            ..Self::default()
        }
    }

    /// Searches, prints what helps, writes the plan.
    pub fn run(mut self) -> Outcome {
        self.hosts.take_network(&mut self.sets);
        if let Some(scenario) = &self.scenario {
            self.hosts.take_hosts_of(&load(scenario).map_err(Failure::usage_of)?);
        }
        match (&self.scenario, &self.live.device) {
            (Some(scenario), _) => self.run_scenario(scenario),
            (None, Some(device)) => self.run_live(device),
            (None, None) => Err(Failure::usage("tune auto: --scenario or --live is missing")),
        }
    }

    /// What is asked of the search, on any traffic.
    fn asked(&self) -> SearchOptions<'_> {
        SearchOptions {
            budget: self.budget,
            only: &self.settings,
            dry_run: self.dry_run,
            bundle: self.keep == Keep::Bundle,
            seed: self.seed,
        }
    }

    /// The settings of the answer that each search has.
    fn settings_for(
        &self,
        (objective, guards): (&Objective, &[MetricGuard]),
        run: PathBuf,
    ) -> AutoSettings {
        AutoSettings {
            objective: objective.metric.clone(),
            guards: guards.iter().map(|guard| guard.text.clone()).collect(),
            budget_s: self.budget.0 as f64 / 1e9,
            seed: self.seed,
            run,
            ..AutoSettings::default()
        }
    }

    fn too_short(&self, needed: usize, full: Duration, hint: &str) -> Failure {
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
        Failure::usage(text).hint(hint)
    }

    /// Writes and prints the result.
    fn publish(&self, written: Written) -> Outcome {
        let Written { mut settings, answer, warnings, persist, report } = written;
        std::fs::create_dir_all(&settings.run)
            .or_usage(|| format!("cannot create {}", settings.run.display()))?;
        let mut drafts = Vec::new();
        if let Some(plan) = &answer.plan {
            let file = settings.run.join("plan.toml");
            write(&file, &plan.to_toml()?)?;
            settings.plan_file = Some(file);
            if let Some((home, dir)) = &persist {
                drafts = persist_to(plan, (*home, dir), MatchBy::Path)?;
            }
        }
        let directory = settings.run.clone();
        let text = lines(&settings, &answer).join("\n") + "\n";
        write(&directory.join("tune-auto.md"), &text)?;
        let page = directory.join("tune-auto.html");
        write(&page, &page::html(&settings, &answer))?;
        let is_part = answer.applied.as_ref().is_some_and(|applied| !applied.in_force);
        let exit = match status(answer.found.as_ref(), self.dry_run) {
            Exit::Done if is_part => Exit::Partial,
            exit => exit,
        };
        let whole = Envelope::new("tune-auto", settings, answer, warnings);
        let json = serde_json::to_string_pretty(&whole).context("the result as JSON")?;
        write(&directory.join("tune-auto.json"), &(json + "\n"))?;
        if self.format.is_json() {
            output::json(&whole)?;
            return Ok(exit);
        }
        whole.warnings.iter().for_each(output::warning);
        output::text(&text)?;
        drafts.iter().try_for_each(|draft| output::line(draft))?;
        output::line(&format!("the search: {}", page.display()))?;
        if let Some(report) = report {
            output::line(&format!("report: {}", report.display()))?;
        }
        Ok(exit)
    }
}

/// The result, and what is written with it.
struct Written {
    settings: AutoSettings,
    answer: AutoAnswer,
    warnings: Vec<Warning>,
    persist: Option<(Home, PathBuf)>,
    /// The report of the trials, where there is one.
    report: Option<PathBuf>,
}

fn status(found: Option<&AutoResult>, dry_run: bool) -> Exit {
    match found.map(|found| found.ended) {
        None if dry_run => Exit::Done,
        Some(AutoOutcome::Kept) => Exit::Done,
        None | Some(AutoOutcome::NothingProven) => Exit::Negative,
        Some(AutoOutcome::NotConfirmed | AutoOutcome::GuardNotShown | AutoOutcome::CutShort) => {
            Exit::Inconclusive
        }
        Some(AutoOutcome::Unsafe) => Exit::Partial,
    }
}

fn not_measured(why: NotMeasured) -> Failure {
    let NotMeasured { what, hint } = why;
    Failure::cannot(what).hint(hint)
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
