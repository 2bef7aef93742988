//! Settings of a host for a trial: planned, journaled, read back and undone by `rxpath tune`, which this program is too.
//!
//! They are undone at the coordinator's request and when the endpoint's input ends. An endpoint that is killed cannot:
//! then the watchdog of `tune apply --confirm-within` does it at once, because they hold only while the endpoint lives.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rxpath_core::Envelope;
use rxpath_host::write::change::{ChangeOutcome, SettingChange};
use rxpath_tune::outcome::ApplyResult;
use rxpath_tune::plan::{LeftOut, Plan, PlanError, PlanStep};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outlet::json;
use crate::error::{LabError, cannot};

mod left;
mod ssh_link;

pub use left::{LeftSettings, UnreadJournals};

/// What a coordinator may want of a host's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingsAsk {
    /// What would be changed: a [`PlannedSettings`].
    Plan {
        /// Names of `rxpath tune` and their values.
        sets: BTreeMap<String, String>,
    },
    /// What the rules of `rxpath check` would change: a [`PlannedSettings`].
    Advise {
        /// The device that is looked at.
        device: String,
        /// What the host is for.
        goal: Option<String>,
    },
    /// Changes them: a list of [`SettingChange`].
    Apply {
        /// Names of `rxpath tune` and their values.
        sets: BTreeMap<String, String>,
        /// When they are undone though nobody asks. **Unit** s.
        within_s: u64,
    },
    /// Leaves the changes in force that were made for these, if all of it still reads as then: whether it does. If it does not,
    /// nothing is undone by this.
    Hold {
        /// Names of `rxpath tune` and their values.
        sets: BTreeMap<String, String>,
        /// When they are undone though nobody asks, from now on. **Unit** s.
        within_s: u64,
    },
    /// Undoes the changes, if there are any.
    Undo,
    /// Undoes what killed runs left here: the numbers of these journals.
    UndoLeft,
}

/// What a host would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSettings {
    /// The changes.
    pub steps: Vec<PlanStep>,
    /// Why some of the settings cannot be made here; empty if all can, or have this value already.
    pub refused: String,
    /// The plan as `rxpath tune apply` takes it.
    pub file: String,
}

/// The settings of an endpoint's host.
pub struct HostSettings {
    exe: PathBuf,
    /// Number of the open journal.
    journal: Option<u32>,
    /// What is on it.
    changes: Vec<SettingChange>,
}

/// What `rxpath tune` prints with `--json`.
type Printed<T> = Envelope<IgnoredAny, T>;

impl HostSettings {
    /// None changed yet; `exe` is this program.
    pub fn new(exe: PathBuf) -> Self {
        Self { exe, journal: None, changes: Vec::new() }
    }

    /// Does what is wanted.
    pub fn answer(&mut self, ask: SettingsAsk) -> Result<Value, LabError> {
        match ask {
            SettingsAsk::Plan { sets } => json(&self.plan(&sets)?),
            SettingsAsk::Advise { device, goal } => json(&self.advice(&device, goal.as_deref())?),
            SettingsAsk::Apply { sets, within_s } => json(&self.apply(&sets, within_s)?),
            SettingsAsk::Hold { sets, within_s } => json(&self.hold(&sets, within_s)?),
            SettingsAsk::Undo => self.undo().map(|()| Value::Null),
            SettingsAsk::UndoLeft => json(&self.undo_left()),
        }
    }

    fn plan(&self, sets: &BTreeMap<String, String>) -> Result<PlannedSettings, LabError> {
        let set = |(name, value): (&String, &String)| ["--set".into(), format!("{name}={value}")];
        let (planned, left_out) = self.planned(sets.iter().flat_map(set).collect())?;
        let refused = left_out.map(|left_out| self.refused(sets, &left_out)).transpose()?;
        ssh_link::spared(PlannedSettings { refused: refused.unwrap_or_default(), ..planned })
    }

    fn advice(&self, device: &str, goal: Option<&str>) -> Result<PlannedSettings, LabError> {
        let mut words = vec!["--dev".to_owned(), device.to_owned()];
        words.extend(goal.into_iter().flat_map(|goal| ["--goal".to_owned(), goal.to_owned()]));
        Ok(self.planned(words)?.0)
    }

    /// What `rxpath tune plan` says, and what it left out if it does not have all that was asked for.
    fn planned(
        &self,
        options: Vec<String>,
    ) -> Result<(PlannedSettings, Option<Vec<LeftOut>>), LabError> {
        let options = options.iter().map(String::as_str);
        let words: Vec<&str> = ["plan", "--json"].into_iter().chain(options).collect();
        let done = self.tune(&words, "")?;
        if done.stdout.is_empty() {
            return Err(failed(&done));
        }
        let internal = |error: PlanError| LabError::internal(error.to_string());
        let printed = String::from_utf8_lossy(&done.stdout);
        let plan = Plan::parse(&printed, "`rxpath tune plan`").map_err(internal)?;
        let file = plan.to_toml().map_err(internal)?;
        let planned = PlannedSettings { steps: plan.steps, file, ..PlannedSettings::default() };
        Ok((planned, (!done.status.success()).then_some(plan.left_out)))
    }

    /// Why settings cannot be made. What has this value already is left out of a plan too, but makes no plan fail.
    fn refused(
        &self,
        sets: &BTreeMap<String, String>,
        left_out: &[LeftOut],
    ) -> Result<String, LabError> {
        if let ([left], 1) = (left_out, sets.len()) {
            return Ok(format!("{}: {}", left.what, left.why));
        }
        let mut all = Vec::new();
        for (name, value) in sets {
            all.push(self.plan(&BTreeMap::from([(name.clone(), value.clone())]))?.refused);
        }
        all.retain(|why| !why.is_empty());
        Ok(all.join("; "))
    }

    fn apply(
        &mut self,
        sets: &BTreeMap<String, String>,
        within_s: u64,
    ) -> Result<Vec<SettingChange>, LabError> {
        self.undo()?;
        let planned = self.plan(sets)?;
        if !planned.refused.is_empty() {
            return Err(cannot(planned.refused, ""));
        }
        if planned.steps.is_empty() {
            return Ok(Vec::new());
        }
        let within = format!("{within_s}s");
        let words = ["apply", "/dev/stdin", "--json", "--on-failure", "undo", "--confirm-within"];
        let own = std::process::id().to_string();
        let held = [within.as_str(), "--while-alive", own.as_str()];
        let done = self.tune(&[&words[..], &held[..]].concat(), &planned.file)?;
        let Ok(printed) = serde_json::from_slice::<Printed<ApplyResult>>(&done.stdout) else {
            return Err(failed(&done));
        };
        let applied = printed.result;
        if !done.status.success() {
            // All of it was undone.
            return Err(cannot(not_made(&applied.changes).join("; "), ""));
        }
        self.journal = applied.journal;
        self.changes.clone_from(&applied.changes);
        Ok(applied.changes)
    }

    fn hold(&self, sets: &BTreeMap<String, String>, within_s: u64) -> Result<bool, LabError> {
        // Of all that is wanted: what had its value already is on no journal.
        let planned = self.plan(sets)?;
        let is_as_made = |step: &PlanStep| self.changes.iter().any(|made| is_rounded(made, step));
        if !planned.refused.is_empty() || !planned.steps.iter().all(is_as_made) {
            return Ok(false);
        }
        let Some(journal) = self.journal else { return Ok(true) };
        let (journal, within) = (journal.to_string(), format!("{within_s}s"));
        let words = ["verify", journal.as_str(), "--json", "--confirm-within", within.as_str()];
        Ok(self.tune(&words, "")?.status.success())
    }

    /// The journal stays known until its changes are undone: another program may hold the lock of `rxpath tune` at first.
    fn undo(&mut self) -> Result<(), LabError> {
        let Some(journal) = self.journal else { return Ok(()) };
        let done = self.tune(&["undo", &journal.to_string(), "--json"], "")?;
        if !done.status.success() {
            return Err(failed(&done));
        }
        self.journal = None;
        self.changes.clear();
        Ok(())
    }

    /// Runs `rxpath tune` with these words to its end: it never leaves a change without its journal.
    fn tune(&self, words: &[&str], input: &str) -> Result<Output, LabError> {
        let start = |source| LabError::Start { path: self.exe.clone(), source };
        let mut command = Command::new(&self.exe);
        command.arg("tune").args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(start)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not want it ends with an error of its own.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output().map_err(start)
    }
}

impl Drop for HostSettings {
    fn drop(&mut self) {
        // Nobody is there to hear of an error; the journal stays open, and its watchdog tries again.
        let _ = self.undo();
    }
}

/// What a line begins with that says what to do.
const HINT: &str = "hint: ";

/// What a command said was wrong.
fn failed(done: &Output) -> LabError {
    let stderr = String::from_utf8_lossy(&done.stderr);
    let (hints, said): (Vec<&str>, Vec<&str>) =
        stderr.lines().partition(|line| line.starts_with(HINT));
    let all = |lines: Vec<&str>, begin: &str| {
        lines.iter().map(|line| line.trim_start_matches(begin)).collect::<Vec<_>>().join("; ")
    };
    cannot(all(said, "rxpath: "), all(hints, HINT))
}

/// Whether a step would only ask again for a value of which the driver made another one.
fn is_rounded(made: &SettingChange, step: &PlanStep) -> bool {
    made.target == step.set && made.asked == step.new && made.outcome == ChangeOutcome::Rounded
}

/// The changes that were not made, with the reason.
fn not_made(changes: &[SettingChange]) -> Vec<String> {
    let one = |change: &SettingChange| {
        let set = format!("{}={}", change.target, change.asked);
        Some(match &change.outcome {
            ChangeOutcome::Applied | ChangeOutcome::Pending { .. } | ChangeOutcome::Rounded => {
                return None;
            }
            ChangeOutcome::Ignored => format!("{set} is accepted and changes nothing"),
            ChangeOutcome::Refused { why } => format!("{set} is refused: {why}"),
        })
    };
    changes.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn the_hint_of_a_command_stays_apart_from_what_was_wrong() {
        let failed = |stderr: &str| {
            let (status, stdout) = (ExitStatus::default(), Vec::new());
            failed(&Output { status, stdout, stderr: stderr.into() })
        };
        let error = failed("rxpath: warning\nrxpath: no journal\nhint: only root\n");
        assert_eq!(error.to_string(), "warning; no journal");
        assert_eq!(error.hint(), "only root");
        assert_eq!(failed("rxpath: no journal\n").hint(), "");
    }

    fn rounded() -> SettingChange {
        SettingChange {
            target: "eth0/rings".parse().unwrap(),
            before: Some("rx=256".into()),
            asked: "rx=1001".into(),
            after: Some("rx=1008".into()),
            also: String::new(),
            link: None,
            outcome: ChangeOutcome::Rounded,
        }
    }

    #[test]
    fn changes_are_in_force_until_an_undo_succeeded() {
        // Programs that fail and succeed whatever they are asked for stand for `rxpath`.
        let mut settings =
            HostSettings { exe: "false".into(), journal: Some(7), changes: vec![rounded()] };
        for _ in 0..2 {
            assert!(settings.answer(SettingsAsk::Undo).is_err());
            assert_eq!((settings.journal, settings.changes.len()), (Some(7), 1));
        }
        settings.exe = "true".into();
        settings.answer(SettingsAsk::Undo).unwrap();
        assert_eq!((settings.journal, settings.changes.len()), (None, 0));
        // Nothing is left to be undone.
        settings.exe = "false".into();
        settings.answer(SettingsAsk::Undo).unwrap();
    }

    #[test]
    fn a_step_that_asks_again_for_what_was_rounded_changes_nothing_and_others_do() {
        let made = rounded();
        let step = |set: &str, new: &str| PlanStep {
            set: set.parse().unwrap(),
            old: "rx=1008".into(),
            new: new.into(),
            because: Vec::new(),
            effects: Vec::new(),
        };
        assert!(is_rounded(&made, &step("eth0/rings", "rx=1001")));
        assert!(!is_rounded(&made, &step("eth0/rings", "rx=1001,tx=256")));
        assert!(!is_rounded(&made, &step("eth1/rings", "rx=1001")));
        let applied = SettingChange { outcome: ChangeOutcome::Applied, ..made };
        assert!(!is_rounded(&applied, &step("eth0/rings", "rx=1001")));
    }
}
