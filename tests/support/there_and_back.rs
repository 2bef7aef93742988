//! Settings that are changed by a plan and undone one after the other; after each, everything must read as before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rxpath_host::Target;
use rxpath_host::pairs::Pairs;
use rxpath_host::target::Group;
use rxpath_host::write::change::ChangeOutcome;
use rxpath_host::write::journal::{Journal, Undo};
use rxpath_host::write::setter::{HostSetter, Setter};
use rxpath_tune::apply::apply;
use rxpath_tune::plan::make::{ChangeRequest, make};
use rxpath_tune::plan::{HostMark, Plan};

/// Settings of a device and of what is around it.
pub struct Subject {
    pub device: String,
    /// Files that must read as before: sysctls and attributes.
    pub files: Vec<PathBuf>,
    /// Settings to change, each with the values that are tried until one is taken.
    pub tried: Vec<(String, Vec<String>)>,
    /// How long everything may take to read as before: the link of a NIC comes back after seconds.
    pub patience: Duration,
}

/// What came of it.
#[derive(Default)]
pub struct Trials {
    /// Settings that were changed.
    pub made: Vec<String>,
    /// What did not come back.
    pub left: Vec<String>,
}

/// All files below a directory.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Values near the one that is there, in the order in which they are tried.
pub fn others(now: &str) -> Vec<String> {
    let words: Vec<&str> = now.split_whitespace().collect();
    let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
    match (numbers.as_deref(), now) {
        (Some([]), _) | (_, "") => Vec::new(),
        (Some([one]), _) => {
            [one + 1, one - 1, 1 - one, one * 2, one / 2].map(|n| n.to_string()).to_vec()
        }
        (Some(many), _) => {
            let doubled: Vec<String> = many.iter().map(|n| (n * 2).to_string()).collect();
            vec![doubled.join(" ")]
        }
        (None, "on") => vec!["off".into()],
        (None, "off") => vec!["on".into()],
        (None, "cubic") => vec!["reno".into()],
        (None, "reno") => vec!["cubic".into()],
        (None, _) => Vec::new(),
    }
}

/// Settings of a device that ethtool and the link have, with values to try.
pub fn of_groups(device: &str) -> Vec<(String, Vec<String>)> {
    let mut setter = HostSetter::default();
    let mut all = Vec::new();
    for group in Group::ALL {
        let target = Target::Group { dev: device.into(), group };
        let Ok(Some(value)) = setter.read(&target) else { continue };
        for (name, value) in value.parse::<Pairs>().unwrap_or_default().iter() {
            all.push((format!("{target}/{name}"), others(value)));
        }
    }
    all
}

impl Subject {
    /// Files, groups of values, addresses, routes and queueing disciplines.
    pub fn everything(&self) -> BTreeMap<String, String> {
        let read =
            |path: &PathBuf| Some((path.display().to_string(), fs::read_to_string(path).ok()?));
        let mut found: BTreeMap<String, String> = self.files.iter().filter_map(read).collect();
        let mut setter = HostSetter::default();
        for group in Group::ALL {
            let target = Target::Group { dev: self.device.clone(), group };
            if let Ok(Some(value)) = setter.read(&target) {
                found.insert(target.to_string(), value);
            }
        }
        for words in [
            "ip -d link",
            "ip -4 address",
            "ip -6 address",
            "ip -4 route show table all",
            "ip -6 route show table all",
            "ip rule",
            "tc qdisc",
        ] {
            let mut split = words.split(' ');
            let output = Command::new(split.next().unwrap()).args(split).output().unwrap();
            assert!(output.status.success(), "{words}: {output:?}");
            found.insert(words.into(), String::from_utf8_lossy(&output.stdout).into_owned());
        }
        found
    }

    /// Changes each setting and undoes it.
    pub fn try_all(&self, dir: &Path) -> Trials {
        let mut trials = Trials::default();
        let mut before = self.everything();
        // What moves by itself is no setting.
        let moving: BTreeSet<String> = self
            .everything()
            .into_iter()
            .filter(|(name, value)| before.get(name) != Some(value))
            .map(|(name, _)| name)
            .collect();
        for (at, (knob, values)) in self.tried.iter().enumerate() {
            let changed = values.iter().enumerate().find_map(|(nth, value)| {
                let plan = planned(knob, value)?;
                there_and_back(&dir.join(format!("{at}-{nth}")), &plan)
            });
            let Some(undone) = changed else { continue };
            if !undone.iter().all(Undo::is_whole) {
                trials.left.push(format!("{knob}: {undone:?}"));
            }
            let after = self.settled(&before, &moving);
            for name in differing(&before, &after, &moving) {
                let (was, is) = (before.get(name), after.get(name));
                trials.left.push(format!("{knob}: {name}: {was:?} is {is:?}"));
            }
            // What one setting left is not the next one's.
            before = after;
            trials.made.push(knob.clone());
        }
        trials
    }

    /// Everything as it reads once it is as before, or when patience ends.
    fn settled(
        &self,
        before: &BTreeMap<String, String>,
        moving: &BTreeSet<String>,
    ) -> BTreeMap<String, String> {
        let deadline = Instant::now() + self.patience;
        loop {
            let now = self.everything();
            if Instant::now() >= deadline || differing(before, &now, moving).is_empty() {
                return now;
            }
            // why: the pace of looking; the deadline above ends it.
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn differing<'a>(
    before: &'a BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
    moving: &BTreeSet<String>,
) -> BTreeSet<&'a String> {
    let names = before.keys().chain(after.keys()).filter(|name| !moving.contains(*name));
    names.filter(|name| before.get(*name) != after.get(*name)).collect()
}

/// A plan of one step; `None` when the value can't be planned.
fn planned(knob: &str, value: &str) -> Option<Plan> {
    let request = ChangeRequest::parse(&format!("{knob}={value}")).ok()?;
    let empty = Plan::new("2026-01-01T00:00:00Z".into(), HostMark::default());
    let plan = make(&mut HostSetter::default(), &|_| None, &[request], empty);
    (plan.steps.len() == 1).then_some(plan)
}

/// Applies the plan and undoes it; `None` when the kernel refused it.
fn there_and_back(dir: &Path, plan: &Plan) -> Option<Vec<Undo>> {
    let mut journal = Journal::open(dir).unwrap();
    let mut setter = HostSetter::default();
    let applied = apply(&mut journal, &mut setter, &plan.steps, &mut |_| Ok(()));
    assert!(applied.stopped.is_none(), "{plan:?}: {:?}", applied.stopped);
    let is_made = matches!(
        applied.changes[0].outcome,
        ChangeOutcome::Applied | ChangeOutcome::Pending { .. } | ChangeOutcome::Rounded
    );
    let undone = journal.undo(&mut setter).unwrap();
    is_made.then_some(undone)
}
