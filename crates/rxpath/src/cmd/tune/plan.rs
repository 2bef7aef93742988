//! `rxpath tune plan`.

use clap::ValueEnum;
use rxpath_host::Root;
use rxpath_host::read::ioctl::driver_info;
use rxpath_host::write::setter::HostSetter;
use rxpath_tune::persist::{Home, MatchBy, Matching, drafts};
use rxpath_tune::plan::expected::Planned;
use rxpath_tune::plan::make::{ChangeRequest, make, refuses_by_hand};
use rxpath_tune::plan::settle::settle;
use rxpath_tune::plan::{HostMark, LeftOut, Plan, from_findings};
use rxpath_tune::{Goal, HostFacts, Scope, rules};

use super::predicted::{PredictArgs, expected};
use super::shown::plan_lines;
use crate::cmd::check::{known_devices, watch};
use crate::cmd::prelude::*;
use crate::cmd::values::{value_name, write};

/// Options of `rxpath tune plan`.
#[derive(Debug, Args)]
pub struct PlanCommand {
    /// Rules whose findings to fix, by their names in `rxpath check`; without any, all findings
    ids: Vec<String>,
    /// Workload goal of the host
    #[arg(long, value_enum)]
    goal: Option<Goal>,
    /// Check only this device; repeatable
    #[arg(long, value_name = "IF")]
    dev: Vec<String>,
    /// Watch the counters for this long; only counts within this time lead to a recommended change [default: 250ms]
    #[arg(long, value_name = "TIME")]
    window: Option<Nanos>,
    /// Set only this setting, and nothing that rules find: `net.core.rmem_max=4194304`, `eth0/rings/rx=4096`;
    /// repeatable
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    sets: Vec<String>,
    /// Write the plan into this file, for `rxpath tune apply`
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also draft a file that keeps the values after a reboot; it is written into DIR for review
    #[arg(long, num_args = 2, value_names = ["KIND", "DIR"])]
    persist: Option<Vec<String>>,
    /// How a `.link` draft identifies its device: by its slot, its own hardware address, or the kernel's name for it
    #[arg(long = "match", value_enum, default_value_t, requires = "persist")]
    match_by: MatchBy,
    #[command(flatten)]
    predict: PredictArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// The values of `--persist`, for shell completion.
pub fn persist_kinds() -> Vec<String> {
    Home::value_variants().iter().map(value_name).collect()
}

impl PlanCommand {
    /// Makes, prints and writes the plan.
    pub fn run(self) -> Outcome {
        let (base, warnings) = self.predict.base()?;
        let (requests, mut left_out) = self.requests()?;
        let persist = self.persist.as_deref().map(persist_kind).transpose()?;
        let empty = Plan::new(jiff::Timestamp::now().to_string(), HostMark::here()?);
        let driver = |dev: &str| driver_info(dev).ok().map(|info| info.driver);
        let mut plan = make(&mut HostSetter::default(), &driver, &requests, empty);
        let exit = verdict(&requests, &plan);
        plan.left_out.append(&mut left_out);
        if let Some(path) = &self.out {
            write(path, &plan.to_toml()?)?;
        }
        let written = match persist {
            Some((home, dir)) => persist_to(&plan, (home, &dir), self.match_by)?,
            None => Vec::new(),
        };
        let predictions = base.map(|base| expected(&plan, &base));
        let out = self.out.as_ref().map(|path| path.display().to_string());
        let settings = json!({ "ids": self.ids, "goal": self.goal, "sets": self.sets, "out": out, "persist": self.persist, "predict": self.predict.asked() });
        let answer = Envelope::new("tune-plan", settings, Planned { plan, predictions }, warnings);
        output::answer(self.format.is_json(), &answer, |it| self.text(it, written))?;
        Ok(exit)
    }

    fn requests(&self) -> Result<(Vec<ChangeRequest>, Vec<LeftOut>), Failure> {
        if let Some(id) = self.ids.iter().find(|id| rules::find(id).is_none()) {
            return Err(Failure::usage(format!("tune plan {id}: no such rule"))
                .hint("`rxpath explain` lists all rules"));
        }
        let by_hand: Result<Vec<ChangeRequest>, String> =
            self.sets.iter().map(|s| ChangeRequest::parse(s)).collect();
        let mut by_hand = by_hand.map_err(Failure::usage)?;
        if !by_hand.is_empty() && self.ids.is_empty() && self.goal.is_none() {
            return Ok((by_hand, Vec::new()));
        }
        let mut facts = HostFacts::collect(&Root::host(), &Scope::devices(&self.dev));
        known_devices(&self.dev, &facts)?;
        watch(&mut facts, self.window);
        let mut settled = settle(&facts, self.goal, &self.ids);
        let (mut requests, mut left_out) = from_findings::requests(&settled.findings, &self.ids);
        left_out.append(&mut settled.left_out);
        let found = |id: &&String| settled.findings.iter().any(|finding| finding.id == **id);
        let none = self.ids.iter().filter(|id| !found(id));
        left_out.extend(none.map(|id| LeftOut::new(id, "finds nothing wrong on this host")));
        requests.append(&mut by_hand);
        Ok((requests, left_out))
    }

    fn text(&self, planned: &Planned, written: Vec<String>) -> String {
        let Planned { plan, predictions } = planned;
        let is_empty = plan.steps.is_empty();
        let mut lines = plan_lines(plan, predictions.as_deref().unwrap_or_default());
        if is_empty {
            lines.insert(0, "nothing to change".into());
        }
        lines.extend(written);
        match &self.out {
            Some(path) if is_empty => lines.push(format!("written: {}", path.display())),
            Some(path) => {
                lines.push(format!("apply it with: rxpath tune apply {}", path.display()));
            }
            None if is_empty => {}
            None => lines.push(
                "to apply: write the plan with -o FILE, then run rxpath tune apply FILE".into(),
            ),
        }
        lines.join("\n") + "\n"
    }
}

/// Drafts files that keep a plan after a reboot, and says which and what is not in them.
pub(super) fn persist_to(
    plan: &Plan,
    (home, dir): (Home, &Path),
    match_by: MatchBy,
) -> Result<Vec<String>, Failure> {
    let devices = plan.steps.iter().filter_map(|step| step.set.device());
    let matching = Matching::of(&Root::host(), match_by, devices);
    let (drafts, left) = drafts(plan, home, &matching);
    std::fs::create_dir_all(dir).or_usage(|| format!("cannot create {}", dir.display()))?;
    let mut lines = Vec::new();
    for draft in drafts {
        let path = dir.join(&draft.name);
        write(&path, &draft.text)?;
        lines.push(format!(
            "draft written: {}; review it, then install it as {}",
            path.display(),
            draft.place
        ));
    }
    lines.extend(left.iter().map(|left| format!("not in the draft: {}: {}", left.what, left.why)));
    Ok(lines)
}

/// A manually requested setting that cannot be a step is a usage error. If the plan has other steps, the plan is only a
/// part of the request.
fn verdict(requests: &[ChangeRequest], plan: &Plan) -> Exit {
    match (refuses_by_hand(requests, plan), plan.steps.is_empty()) {
        (false, _) => Exit::Done,
        (true, true) => Exit::Usage,
        (true, false) => Exit::Partial,
    }
}

/// The kind and the directory of `--persist`.
pub(super) fn persist_kind(words: &[String]) -> Result<(Home, PathBuf), Failure> {
    let [kind, dir] = words else { return Err(Failure::usage("--persist takes KIND and DIR")) };
    let home = Home::from_str(kind, false).map_err(|_| {
        Failure::usage(format!("--persist {kind}: no such kind of file"))
            .hint("one of sysctl.d, link, udev, cmdline, ansible")
    })?;
    Ok((home, dir.into()))
}
