//! Which rows to show: `--pid` and `--cgroup` name victims, `--netns` names the devices through which packets came.

use std::collections::BTreeSet;

use rxpath_bpf::filter::Filter;
use rxpath_bpf::steal::{Narrow, Steal};
use rxpath_core::Warning;
use rxpath_host::read::only::Only;
use rxpath_host::read::process::ProcessId;

use crate::cmd::scope::{ScopeArgs, gone};
use crate::exit::Failure;

/// The options, and the processes that belonged to them so far.
pub struct Wanted {
    /// Owner of the rows to show.
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

    /// Must be called during counting: processes enter and leave control groups.
    pub fn note(&mut self) {
        self.seen.extend(self.only.iter().flat_map(Only::processes));
    }

    /// Drops the other rows.
    pub fn narrow(&self, steal: &mut Steal) {
        let pids = || self.seen.iter().map(|pid| pid.cast_unsigned()).collect();
        steal.narrow(&Narrow {
            processes: self.only.as_ref().map(|_| pids()),
            netns: (self.filter.netns != 0).then_some(self.filter.netns),
        });
    }

    /// Warns of values that stay whole, and of processes that ended during the count.
    pub fn warnings(&self, scope: &ScopeArgs) -> Vec<Warning> {
        let whole = "the table of CPUs is of all tasks";
        let mut warnings: Vec<Warning> =
            scope.warning(whole, "the rows of tasks").into_iter().collect();
        if let Some(name) = &scope.netns {
            let text = format!(
                "times are those of all packets; only `taken by` and the flows are of the network namespace {name}"
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
