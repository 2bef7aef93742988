//! Whose rows are wanted: `--pid` and `--cgroup` name victims, `--netns` names the devices that packets came through.

use std::collections::BTreeSet;

use rxpath_bpf::filter::Filter;
use rxpath_bpf::steal::{Narrow, Steal};
use rxpath_core::Warning;
use rxpath_host::only::Only;
use rxpath_host::owner::ProcessId;

use crate::cmd::scope::{ScopeArgs, gone};
use crate::exit::Failure;

/// What was asked for, and the processes that were in it so far.
pub struct Wanted {
    /// Whose rows.
    pub only: Option<Only>,
    filter: Filter,
    process: Option<ProcessId>,
    seen: BTreeSet<i32>,
}

impl Wanted {
    pub fn of(scope: &ScopeArgs) -> Result<Self, Failure> {
        let mut filter = Filter::default();
        scope.narrow(&mut filter)?;
        let process = filter.process.map(|pid| ProcessId::of(pid as i32)).transpose()?;
        let mut wanted = Self { only: scope.only()?, filter, process, seen: BTreeSet::new() };
        wanted.note();
        Ok(wanted)
    }

    /// To be called while it is counted: processes enter control groups and leave them.
    pub fn note(&mut self) {
        self.seen.extend(self.only.iter().flat_map(Only::processes));
    }

    /// Leaves out the rows that are not wanted.
    pub fn narrow(&self, steal: &mut Steal) {
        let pids = || self.seen.iter().map(|pid| pid.cast_unsigned()).collect();
        steal.narrow(&Narrow {
            processes: self.only.as_ref().map(|_| pids()),
            netns: (self.filter.netns != 0).then_some(self.filter.netns),
        });
    }

    /// What stays whole, and what went away while it was counted.
    pub fn warnings(&self, scope: &ScopeArgs) -> Vec<Warning> {
        let whole = "the table of CPUs is of all tasks";
        let mut warnings: Vec<Warning> =
            scope.warning(whole, "the rows of tasks").into_iter().collect();
        if let Some(name) = &scope.netns {
            let text = format!(
                "times are those of all packets; of the network namespace {name} are only `taken by` and the flows"
            );
            warnings.push(
                Warning::new("all-namespaces", text)
                    .because("softirqs are timed whole, and the backlog belongs to no namespace"),
            );
        }
        warnings.extend(gone(&self.filter, self.process));
        warnings
    }
}
