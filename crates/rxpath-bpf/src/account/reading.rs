//! What was counted up to one moment, and the difference of two such readings.

use std::collections::HashMap;
use std::hash::Hash;

use rxpath_core::Warning;
use rxpath_host::read::procfs::stat;

use super::flow::FlowRow;
use super::row::{ChargedTask, CpuWindow, Culprit};

/// Everything up to one moment, since the probe started: times are cumulative. Of a live view (`Account::live`) the tasks are an
/// exception: theirs are those since the reading before.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Each CPU's window; that of a CPU that is offline ends at the reading before.
    pub cpus: Vec<CpuWindow>,
    /// Each task on each CPU; of a live view those that ran since the reading before.
    pub tasks: Vec<ChargedTask>,
    /// Which device's polls took time from which task.
    pub culprits: Vec<Culprit>,
    /// Flows of sampled packets in softirqs, by the task whose time they took.
    pub flows: Vec<FlowRow>,
    /// `/proc/stat` at the same moment: what tick accounting says.
    pub ticks: stat::Stat,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

impl Reading {
    /// What happened from `earlier` to this reading. Tasks that did not run in between are left out.
    ///
    /// **Caveat** not for two readings of a live view, where it would subtract the tasks of another window:
    /// [`Reading::take_since`].
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpus: each_since(&self.cpus, &earlier.cpus, |row| row.cpu, CpuWindow::since).collect(),
            tasks: each_since(&self.tasks, &earlier.tasks, |row| row.key, ChargedTask::since)
                .filter(|task| task.charge.on_cpu_ns > 0)
                .collect(),
            culprits: each_since(&self.culprits, &earlier.culprits, |row| row.key, Culprit::since)
                .filter(|culprit| culprit.polls > 0)
                .collect(),
            flows: each_since(&self.flows, &earlier.flows, |row| row.key, FlowRow::since)
                .filter(|row| row.packets > 0)
                .collect(),
            ticks: self.ticks.clone(),
            warnings: self.warnings.clone(),
        }
    }

    /// The same for a reading of [`Account::live`](super::Account::live), the tasks of which ran in between. They are moved:
    /// where thousands ran, a copy takes some MB. This reading is then the beginning of the next window.
    #[must_use]
    pub fn take_since(&mut self, earlier: &Self) -> Self {
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.retain(|task| task.charge.on_cpu_ns > 0);
        Self { tasks, ..self.since(earlier) }
    }

    /// Slices, polls and packets of flows that did not fit in a map.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(CpuWindow::lost).sum()
    }
}

/// What was added to each row since the row of `earlier` with its key.
fn each_since<R, K: Eq + Hash>(
    now: &[R],
    earlier: &[R],
    key: fn(&R) -> K,
    since: fn(&R, Option<&R>) -> R,
) -> impl Iterator<Item = R> {
    let before: HashMap<K, &R> = earlier.iter().map(|row| (key(row), row)).collect();
    now.iter().map(move |row| since(row, before.get(&key(row)).copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::row::{Charge, TaskKey};

    /// A reading of a live view: each of these tasks ran for 5 ns since the reading before.
    fn reading(pids: &[u32]) -> Reading {
        let row = |pid: &u32| ChargedTask {
            key: TaskKey { start_ns: 1, pid: *pid, cpu: 0 },
            charge: Charge { on_cpu_ns: 5, ..Charge::default() },
            first_ns: 0,
            last_ns: 0,
            tgid: *pid,
            parent: 1,
            flags: 0,
            comm: "sh".into(),
            cgroup: 0,
        };
        Reading { tasks: pids.iter().map(row).collect(), ..Reading::default() }
    }

    #[test]
    fn a_live_window_has_all_time_of_its_own_tasks_and_keeps_none_of_them() {
        let mut before = reading(&[7, 8]);
        for short in 100..200 {
            let mut now = reading(&[7, short]);
            let window = now.take_since(&before);
            let ran: Vec<_> =
                window.tasks.iter().map(|t| (t.key.pid, t.charge.on_cpu_ns)).collect();
            assert_eq!(ran, [(7, 5), (short, 5)]);
            assert!(now.tasks.is_empty(), "{now:?}");
            before = now;
        }
    }
}
