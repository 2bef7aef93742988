//! `rxpath run`: an experiment, in the two-namespace lab by default.

mod ended;

use rxpath_host::command_line;
use rxpath_lab::LabError;
use rxpath_lab::hosts::Hosts;
use rxpath_lab::hosts::privilege::RootNeeds;
use rxpath_lab::plan::{on_hosts, plan_between};
use rxpath_lab::run::progress::Progress;
use rxpath_lab::run::{FinishedRun, Options, left_out, run};
use rxpath_lab::scenario::load;
use rxpath_lab::scenario::spec::{Resolved, Search};
use rxpath_model::calibration::Calibration;

pub use self::ended::{Ended, conclusion, ending};
use crate::cmd::gate::{self, FailOn};
use crate::cmd::hosts_args::{self, HostsArgs};
use crate::cmd::lab_args::LabArgs;
use crate::cmd::lab_error::failure;
use crate::cmd::model::calibration::{default_path, load as load_calibration};
use crate::cmd::prelude::*;
use crate::cmd::report::write_report;
use crate::cmd::scenario::{chosen, resolved, resolved_between, root_needs};
use crate::cmd::tune::auto::{self, AutoCommand};
use crate::output::bars::Bars;
use crate::output::experiment;
use crate::output::json;

/// Options of `rxpath run`.
#[derive(Debug, Args)]
pub struct RunCommand {
    /// A bundled experiment (see `rxpath list`) or a scenario file
    scenario: String,
    /// Set a key of the scenario, for example `load.rate=100k` or `variant.gso.load.gso=32`, or of the network between
    /// hosts, `network.hops=2`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Blocks of trials at least, each variant once per block (same as `--set trials.blocks=N`); more follow, up to
    /// `trials.max_blocks`, until the comparisons are decided
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: Option<u32>,
    #[command(flatten)]
    lab: LabArgs,
    #[command(flatten)]
    hosts: HostsArgs,
    /// Print the planned steps, their order and duration; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Count trials that other load on the machine disturbed; their grade shows it
    #[arg(long)]
    keep_noisy: bool,
    /// Exit by the comparisons: 0 as the scenario expects; without an expectation, better or the same; 1 contradicted
    /// or worse; 4 inconclusive
    #[arg(long)]
    check: bool,
    /// What ends with exit 1
    #[arg(long, value_enum, value_name = "WORD", default_value_t, requires = "check")]
    fail_on: FailOn,
    /// Also observe with BPF: `drops` (the kernel's drop reasons, in addition to the ledger), `steal` (CPU time that
    /// networking takes, by task), `trace` (softirqs, packets per poll, stage latencies); same as `--set
    /// observe.WHAT=true`
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = ["drops", "steal", "trace"])]
    observe: Vec<String>,
    #[command(flatten)]
    format: FormatArgs,
}

impl RunCommand {
    /// Plans, runs, reports.
    pub fn run(mut self) -> Outcome {
        let mut sets = self.sets.clone();
        self.hosts.take_network(&mut sets);
        sets.extend(self.trials.map(|blocks| format!("trials.blocks={blocks}")));
        sets.extend(self.observe.iter().map(|what| format!("observe.{what}=true")));
        if let Some(search) = self.read_scenario()? {
            let Self { scenario, hosts, lab, format, .. } = self;
            return AutoCommand::of_search(scenario, sets, search, (hosts, lab, format)).run();
        }
        let hosts = self.hosts.connect(&self.root_needs(&sets))?;
        let may_change = self.hosts.change_hosts;
        let mut resolved = resolved_between(&self.scenario, &sets, (hosts.as_ref(), may_change))?;
        if self.dry_run {
            if let (Some(search), Some(first)) = (&resolved.search, resolved.variants.first()) {
                auto::check(search, first.main_metric())?;
            }
            return self.show_plan(resolved, hosts.as_ref(), &sets);
        }
        if let Some(hosts) = &hosts {
            self.hosts.check_settings(hosts, &mut resolved)?;
        }
        resolved.warnings.iter().for_each(output::warning);
        if let Some(missing) = left_out(&resolved).map_err(failure)? {
            crate::note!("rxpath: {missing}");
        }
        let ways = Ways {
            keep_noisy: self.keep_noisy,
            patience: self.lab.wait.patience(),
            without_root: without_root(&self.scenario, &sets),
            hosts: hosts.as_ref(),
            ..Ways::default()
        };
        let finished = conduct(&resolved, &self.lab.out, ways, &mut Bars::new())?;
        let report = write_report(&finished.directory)?;
        if self.format.is_json() {
            let settings = serde_json::json!({
                "scenario": resolved.name, "run": finished.directory.to_string_lossy(),
                "report": report.to_string_lossy(),
            });
            let warnings = finished.manifest.warnings.clone();
            json(&Envelope::new("run-result", settings, &finished.manifest, warnings))?;
        } else {
            // Without a trial every row is empty.
            if !finished.manifest.trials.is_empty() {
                output::text(&experiment::summary(&finished.manifest))?;
            }
            output::line(&format!("report: {}", report.display()))?;
        }
        let words =
            finished.manifest.comparisons.iter().map(|one| gate::expected(one, self.fail_on));
        // Before the run, or since a host refused what one sets.
        let are_all_there = finished.manifest.variants.iter().all(|it| it.not_available.is_none());
        match conclusion(&finished)? {
            Exit::Done if !are_all_there => Ok(Exit::Partial),
            Exit::Done if self.check => Ok(gate::exit(gate::worst(words))),
            exit => Ok(exit),
        }
    }

    /// What of the scenario needs root on the hosts; nothing for the plan alone.
    fn root_needs(&self, sets: &[String]) -> RootNeeds {
        if self.dry_run || !self.hosts.is_given() {
            return RootNeeds::default();
        }
        root_needs(&self.scenario, sets, self.hosts.change_hosts)
    }

    /// Takes the scenario's hosts, unless the command names others. It gives what the scenario searches, unless only the plan
    /// is asked for.
    fn read_scenario(&mut self) -> Result<Option<Search>, Failure> {
        let file = load(&self.scenario).map_err(Failure::usage_of)?;
        self.hosts.take_hosts_of(&file);
        if file.search.is_some() && (self.trials.is_some() || self.check) {
            let text =
                format!("{} has a [search], which has no blocks to count or check", file.name);
            return Err(Failure::usage(text).hint("leave out --trials and --check"));
        }
        Ok(file.search.filter(|_| !self.dry_run))
    }

    /// The plan; it ends as the run would.
    fn show_plan(&self, mut resolved: Resolved, hosts: Option<&Hosts>, sets: &[String]) -> Outcome {
        // A run of blocks asks before it begins. What it may not change is shown all the same.
        let asked = hosts.filter(|_| self.hosts.change_hosts && resolved.search.is_none());
        if let Some(hosts) = asked {
            self.hosts.check_settings(hosts, &mut resolved)?;
        }
        let resolved = &resolved;
        let rests = hosts.map(Hosts::rests_take);
        let mut plan = plan_between(resolved, rests);
        if let Some(hosts) = hosts {
            hosts.check_programs(resolved).map_err(failure)?;
            let needs = root_needs(&self.scenario, sets, self.hosts.change_hosts);
            plan.hosts = hosts.planned(resolved, &needs).map_err(failure)?;
        }
        if self.format.is_json() {
            json(&Envelope::new("run-plan", resolved, &plan, resolved.warnings.clone()))?;
        } else {
            output::text(&plan.to_text(resolved))?;
            if let Some(hosts) = hosts {
                let mut lines = hosts.shares(resolved).into_iter().chain(hosts.network_command());
                lines.try_for_each(|line| output::line(&line))?;
                output::text(&on_hosts::text(&plan))?;
            }
        }
        if let Some(search) = &resolved.search {
            // It compares nothing of the file. Its run needs the variant from which it starts.
            return chosen(resolved, search.variant.as_deref()).map(|_| Exit::Done);
        }
        match left_out(resolved) {
            // Without the hint of the run: the plan has the reason of each variant.
            Err(LabError::CannotRun { what, .. }) => Err(Failure::cannot(what)),
            Ok(Some(missing)) => {
                crate::note!("rxpath: {missing}");
                Ok(Exit::Partial)
            }
            other => other.map(|_| Exit::Done).map_err(failure),
        }
    }
}

/// The command that runs a scenario on loopback without root; nothing if the scenario cannot run on loopback.
pub fn without_root(scenario: &str, sets: &[String]) -> Option<String> {
    const LOCAL: &str = "topology.kind=local";
    let local: Vec<String> = sets.iter().cloned().chain([LOCAL.to_owned()]).collect();
    resolved(scenario, &local).ok()?;
    Some(format!("rxpath run {scenario} --set {}", local.join(" --set ")))
}

/// The user's options for the whole run.
#[derive(Clone, Default)]
pub struct Ways<'a> {
    /// Count trials that noise would make void.
    pub keep_noisy: bool,
    /// Measure CPU time and lock waits by tracepoints, for the diagnosis.
    pub witness: bool,
    /// How long to wait for another lab to end. Each command sets it, by its option `--wait`.
    pub patience: Duration,
    /// The command that does the same without root, if there is one.
    pub without_root: Option<String>,
    /// The hosts between which it runs.
    pub hosts: Option<&'a Hosts>,
}

/// Runs it, with SIGINT and SIGTERM ending it in order.
pub fn conduct(
    resolved: &Resolved,
    base: &Path,
    ways: Ways<'_>,
    progress: &mut dyn Progress,
) -> Result<Ended, Failure> {
    conduct_by(base, ways, |options| run(resolved, options, progress))
}

/// Does `work` with these options, with SIGINT and SIGTERM ending it in order.
pub fn conduct_by(
    base: &Path,
    ways: Ways<'_>,
    work: impl FnOnce(&Options<'_>) -> Result<FinishedRun, LabError>,
) -> Result<Ended, Failure> {
    let interrupt = Interrupt::catch()?;
    let exe = std::env::current_exe()?;
    let calibration = calibration();
    let options = Options {
        base,
        exe: &exe,
        command: hosts_args::hidden(command_line::words().into_iter()),
        hosts: ways.hosts,
        version: env!("CARGO_PKG_VERSION"),
        keep_noisy: ways.keep_noisy,
        witness: ways.witness,
        patience: ways.patience,
        without_root: ways.without_root,
        stop: interrupt.stop(),
        calibration: calibration.as_ref(),
    };
    let finished = work(&options).map_err(|error| match interrupt.caught() {
        Some(signal) if matches!(error, LabError::Interrupted) => {
            Failure::new(Exit::Signal(signal), error)
        }
        _ => failure(error),
    })?;
    Ok(Ended { finished, signal: interrupt.caught(), keep_noisy: ways.keep_noisy })
}

/// This host's calibration, if there is one and it is from this host.
fn calibration() -> Option<Calibration> {
    let path = Some(default_path()).filter(|path| path.exists())?;
    let loaded = load_calibration(&path, false).inspect_err(|failure| {
        let text = format!("no predictions: {}", failure.line());
        output::warning(&Warning::new("no-predictions", text));
    });
    loaded.ok().map(|(calibration, _)| calibration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_without_root_is_named_only_where_there_is_one() {
        assert_eq!(without_root("demo", &[]).unwrap(), "rxpath run demo --set topology.kind=local");
        assert_eq!(without_root("udp-firewall", &[]), None);
    }
}
