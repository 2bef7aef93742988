//! What was counted up to one moment, and the difference of two such readings.

use std::collections::HashMap;

use rxpath_core::Warning;
use rxpath_host::procfs::stat;

use super::flow::{FlowKey, FlowRow};
use super::row::{Charge, CpuWindow, Culprit, CulpritKey, TaskKey, TaskRow};

/// Everything up to one moment, since the probe started. Times are cumulative.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Each CPU's window; that of a CPU that is offline ends at the reading before.
    pub cpus: Vec<CpuWindow>,
    /// Each task on each CPU.
    pub tasks: Vec<TaskRow>,
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
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let tasks: HashMap<TaskKey, &TaskRow> = earlier.tasks.iter().map(|t| (t.key, t)).collect();
        let culprits: HashMap<CulpritKey, &Culprit> =
            earlier.culprits.iter().map(|c| (c.key, c)).collect();
        let cpus: HashMap<u32, &CpuWindow> = earlier.cpus.iter().map(|c| (c.cpu, c)).collect();
        let zero = Charge::default();
        Self {
            cpus: self.cpus.iter().map(|now| now.since(cpus.get(&now.cpu).copied())).collect(),
            tasks: self
                .tasks
                .iter()
                .map(|now| {
                    let before = tasks.get(&now.key).map_or(&zero, |t| &t.charge);
                    TaskRow { charge: now.charge.since(before), ..now.clone() }
                })
                .filter(|task| task.charge.on_cpu_ns > 0)
                .collect(),
            culprits: self
                .culprits
                .iter()
                .map(|now| now.since(culprits.get(&now.key).copied()))
                .filter(|culprit| culprit.polls > 0)
                .collect(),
            flows: {
                let before: HashMap<FlowKey, &FlowRow> =
                    earlier.flows.iter().map(|row| (row.key, row)).collect();
                let rows = self.flows.iter().map(|now| now.since(before.get(&now.key).copied()));
                rows.filter(|row| row.packets > 0).collect()
            },
            ticks: self.ticks.clone(),
            warnings: self.warnings.clone(),
        }
    }

    /// Slices, polls and packets of flows that did not fit in a map.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(CpuWindow::lost).sum()
    }

    /// Exits without their entry, and slices of tasks whose switch-in was missed.
    pub fn unmatched(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.unmatched).sum()
    }
}
