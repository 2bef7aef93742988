//! `rxpath tune apply`.

use std::fs::File;
use std::io::Read;

use clap::ValueEnum;
use rxpath_host::Root;
use rxpath_host::read::process::ProcessId;
use rxpath_host::write::setter::HostSetter;
use rxpath_tune::apply::ready;
use rxpath_tune::carry::{self, CarriedOut};
use rxpath_tune::effects::coupled;
use rxpath_tune::outcome::ApplyResult;
use rxpath_tune::plan::session::{self, SessionAtRisk};
use rxpath_tune::plan::{HostMark, MAX_BYTES, Plan, PlanError};
use rxpath_tune::store::{Conflict, Store, Unknown};

use super::shown::{change_line, undo_lines};
use super::watchdog::start_watchdog;
use super::{PATIENCE, StateArgs, taken};
use crate::cmd::prelude::*;
use crate::cmd::values::seconds;

/// With less time nobody could confirm; with more, the watchdog would be useless.
const WITHIN: std::ops::RangeInclusive<u64> = 5..=86_400;

/// Options of `rxpath tune apply`.
#[derive(Debug, Args)]
pub struct ApplyCommand {
    /// The plan, as `rxpath tune plan -o FILE` wrote it
    plan: PathBuf,
    /// Undo automatically after this time, unless `rxpath tune confirm` is run first
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    confirm_within: Option<Nanos>,
    /// Undo them too once this process has ended: the endpoint of an experiment
    #[arg(long, hide = true, value_name = "PID", requires = "confirm_within")]
    while_alive: Option<i32>,
    /// Take down the link of this ssh session, if the plan asks for it
    #[arg(long)]
    force: bool,
    /// What to do with the completed steps if a later step is rejected
    #[arg(long, value_enum, default_value_t = OnFailure::Keep)]
    on_failure: OnFailure,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnFailure {
    /// Leave them in force; inspect and undo them by hand
    Keep,
    /// Undo them at once
    Undo,
}

impl ApplyCommand {
    /// Checks the whole plan, then carries it out.
    pub fn run(self) -> Outcome {
        let within = self.confirm_within.map(within).transpose()?;
        let holder = self.while_alive.map(ProcessId::of).transpose()?;
        let file = self.plan.display().to_string();
        let plan = Plan::parse(&text_of(&self.plan)?, &file).map_err(refused)?;
        plan.is_for(&HostMark::here()?, &file).map_err(refused)?;
        if plan.steps.is_empty() {
            self.print(ApplyResult::default(), false)?;
            return Ok(Exit::Done);
        }
        if !self.force {
            session::spares(&plan).map_err(at_risk)?;
        }
        let (store, lock) = self.state.locked()?;
        let targets = plan.steps.iter().map(|step| &step.set);
        let shared = store.lock_shared(targets, PATIENCE).map_err(taken)?;
        alone(&store, &plan)?;
        let mut setter = HostSetter::default();
        // If a step waited for its link longer than the watchdog waits for the next step, the watchdog would undo it
        // meanwhile.
        setter.link_patience = setter.link_patience.min(within.unwrap_or(Duration::MAX));
        ready(&mut setter, &plan.steps).map_err(refused)?;
        let done = carry_out((&store, &plan), &mut setter, (within, holder), self.on_failure)?;
        // Output may block on a terminal that was closed: the locks must not wait for it.
        drop((lock, shared));
        let (id, whole, in_force) = (done.id, done.applied.is_whole(), done.in_force);
        let result = ApplyResult {
            journal: Some(id),
            changes: done.applied.changes,
            not_tried_count: done.not_tried,
            stopped: done.applied.stopped.map(|error| error.to_string()),
            undone: done.undone,
            confirm_within_s: within.filter(|_| in_force).map(|within| within.as_secs()),
        };
        self.print(result, in_force)?;
        if !whole && in_force {
            crate::note!("hint: undo the completed steps with: rxpath tune undo {id}");
        }
        Ok(if whole { Exit::Done } else { Exit::Partial })
    }

    fn print(&self, result: ApplyResult, in_force: bool) -> anyhow::Result<()> {
        let is_json = self.format.is_json();
        let settings = json!({ "plan": self.plan.display().to_string(), "force": self.force });
        let answer = Envelope::new("tune-apply", settings, result, Vec::new());
        output::answer(is_json, &answer, |result| text(result, in_force))?;
        if let Some(why) = answer.result.stopped.filter(|_| !is_json) {
            crate::note!("rxpath: stopped: {why}");
        }
        Ok(())
    }
}

fn text(result: &ApplyResult, in_force: bool) -> String {
    let Some(id) = result.journal else {
        return "nothing to change: the plan has no steps\n".into();
    };
    let mut lines: Vec<String> = result.changes.iter().map(change_line).collect();
    if result.not_tried_count > 0 {
        lines.push(format!("{} more steps were not tried", result.not_tried_count));
    }
    lines.extend(result.undone.iter().flat_map(|undo| undo_lines(undo, false)));
    lines.push(match result.confirm_within_s {
        Some(within_s) => {
            format!("undone in {within_s} s unless confirmed: rxpath tune confirm {id}")
        }
        None if !in_force => "nothing is in force: there is nothing to undo".into(),
        None => format!("journal {id}: rxpath tune undo {id}"),
    });
    lines.join("\n") + "\n"
}

/// The time of `--confirm-within`, if anybody can confirm in it.
pub(super) fn within(time: Nanos) -> Result<Duration, Failure> {
    let within = time.as_duration();
    if WITHIN.contains(&within.as_secs()) {
        return Ok(within);
    }
    Err(Failure::usage(format!("--confirm-within {}s: expected 5s to 86400s", within.as_secs())))
}

/// Starts the watchdog, if the changes have a time, then does as [`carry::carry_out`].
pub(super) fn carry_out(
    (store, plan): (&Store, &Plan),
    setter: &mut HostSetter,
    (within, holder): (Option<Duration>, Option<ProcessId>),
    on_failure: OnFailure,
) -> Result<CarriedOut, Failure> {
    let (id, mut journal) = store.begin()?;
    let watch = match within {
        Some(within) => Some((start_watchdog(store, id, &mut journal, (within, false))?, within)),
        None => None,
    };
    let undoes = on_failure == OnFailure::Undo;
    Ok(carry::carry_out(plan, setter, (id, journal), (watch, holder), undoes)?)
}

/// The text of a plan file; reads no more than the largest plan.
fn text_of(path: &Path) -> Result<String, Failure> {
    File::open(path)
        .and_then(|file| std::io::read_to_string(file.take(MAX_BYTES as u64 + 1)))
        .or_usage(|| format!("cannot read the plan {}", path.display()))
}

/// Rejects a plan that changes a setting that a journal of another state directory has changed: undoing one would
/// overwrite the other.
pub(super) fn alone(store: &Store, plan: &Plan) -> Result<(), Failure> {
    let root = Root::host();
    let ours: Vec<_> =
        plan.steps.iter().map(|step| (step.set.clone(), coupled(&step.set, &root))).collect();
    let (conflict, unknown) = store.conflict(&ours)?;
    for Unknown { dir, why } in unknown {
        let dir = dir.display();
        crate::note!("warning: changes made with --state-dir {dir} are unknown: {why}");
    }
    let Some(Conflict { dir, id, target }) = conflict else { return Ok(()) };
    let dir = dir.display();
    Err(Failure::usage(format!(
        "{target}: journal {id} of {dir} has changed this setting and is in force"
    ))
    .hint(format!(
        "use that directory, or undo the change first: rxpath tune undo {id} --state-dir {dir}"
    )))
}

fn at_risk(risk: SessionAtRisk) -> Failure {
    let hint = match risk {
        SessionAtRisk::Unseen(_) => "use --force to apply the plan anyway",
        SessionAtRisk::Cut { .. } => {
            "use --force to apply the plan anyway, best with --confirm-within 60s"
        }
    };
    Failure::usage_of(risk).hint(hint)
}

fn refused(error: PlanError) -> Failure {
    let hint = match &error {
        PlanError::Foreign { .. } | PlanError::Stale { .. } => {
            "make a new plan on this host: rxpath tune plan -o FILE"
        }
        PlanError::Bad { .. } => "see `rxpath schema tune-plan`",
        PlanError::Step { .. } => return Failure::usage_of(error),
        PlanError::Unread { .. } | PlanError::Host(_) => return Failure::new(Exit::Cannot, error),
    };
    Failure::usage_of(error).hint(hint)
}
