//! The cost of networking in a trial: CPU time by CPU and by task over the measured window, and how much of its
//! requested time a victim with known work got.
//!
//! The parts of a row add up to its `on_cpu_s`, the rows of tasks to those of CPUs, and those to their windows.
//! Measured and estimated values are in different fields.

use rxpath_core::measured::{CpuBreakdown, IrqCalibration, ProbeCost, TaskTime, VictimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stolen time of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StolenCpuTime {
    /// Length of the window; the victim runs all of it.
    pub window_s: f64,
    /// The victim, if the scenario has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim: Option<VictimRecord>,
    /// Each CPU.
    pub cpus: Vec<CpuPaid>,
    /// Tasks by the time taken from them; those with little time are one row, so that the sum is complete.
    pub tasks: Vec<TaskTime>,
    /// What an interrupt costs in addition to what is measured.
    pub interrupt: IrqCalibration,
    /// What observing cost.
    pub probe: ProbeCost,
}

/// A task with known work, or a user's command, pinned to a CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VictimRecord {
    /// The command; empty for the known work.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Its CPU.
    pub cpu: u32,
    /// Its thread, or the process of the command.
    pub tid: u32,
    /// What it asked for and what it got; `time` is by the probe.
    #[serde(flatten)]
    pub row: VictimTime,
    /// Time of `ksoftirqd` and NAPI threads on its CPU: networking that took the CPU from it as tasks do.
    pub deferred_s: f64,
}

impl VictimRecord {
    /// Time that it had: by its work where that is known, else the time of its own that the probe counted.
    pub fn got_s(&self) -> f64 {
        self.row.got_by_work_s.unwrap_or(self.row.time.own_s)
    }

    /// Time that networking took of its CPU: interrupts and softirqs in its time, and the threads that run softirqs.
    pub fn taken_s(&self) -> f64 {
        self.row.time.taken_s() + self.deferred_s
    }
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuPaid {
    /// How its time was used.
    #[serde(flatten)]
    pub row: CpuBreakdown,
    /// Packets that its softirqs handled in the window, the whole machine's. **Source** `softnet_stat`, processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed_packets: Option<u64>,
}

#[cfg(test)]
mod tests {
    use rxpath_core::Division;
    use rxpath_core::measured::{TakenBy, TaskKind};

    use super::*;

    /// A run that was recorded before the device's index and queue, the ticks of a CPU, the process of a task
    /// and the points of a calibration were.
    #[test]
    fn what_an_older_run_does_not_tell_is_empty() {
        let old = r#"{"window_s": 2.0, "victim": {"cpu": 1, "taken_by": [{"dev": "eth0", "napi_id": 7, "net_s": 0.5}]},
            "interrupt": {"irq_entry_us": 5.5, "interval_us": [5.0, 6.0], "source": "measured"},
            "cpus": [{"cpu": 1, "window_s": 2.0, "on_cpu_s": 1.5, "idle_s": 0.5, "landed_packets": 7}],
            "tasks": [{"pid": 7, "comm": "sh", "kind": "task", "cpus": [1], "on_cpu_s": 1.5}, {"comm": "all others", "kind": "rest"}]}"#;
        let read: StolenCpuTime = serde_json::from_str(old).unwrap();
        let by = TakenBy { dev: "eth0".into(), napi_id: 7, net_s: 0.5, ..TakenBy::default() };
        assert_eq!(read.victim.unwrap().row.taken_by, [by]);
        let interrupt = IrqCalibration {
            irq_entry_us: 5.5,
            interval_us: [5.0, 6.0],
            source: "measured".into(),
            ..IrqCalibration::default()
        };
        assert_eq!(read.interrupt, interrupt);
        let time = Division { on_cpu_s: 1.5, ..Division::default() };
        let row =
            CpuBreakdown { cpu: 1, window_s: 2.0, time, idle_s: 0.5, ..CpuBreakdown::default() };
        assert_eq!(read.cpus, [CpuPaid { row, landed_packets: Some(7) }]);
        let task =
            TaskTime { pid: 7, comm: "sh".into(), cpus: vec![1], time, ..TaskTime::default() };
        let kind = TaskKind::Rest;
        assert_eq!(
            read.tasks,
            [task, TaskTime { comm: "all others".into(), kind, ..TaskTime::default() }]
        );
    }

    #[test]
    fn what_threads_of_the_kernel_took_is_taken_too() {
        let time = Division { net_rx_s: 3.0, own_s: 9.0, ..Division::default() };
        let row = VictimTime { time, ..VictimTime::default() };
        let deferred = VictimRecord { row, deferred_s: 0.5, ..VictimRecord::default() };
        assert!((deferred.taken_s() - 3.5).abs() < 1e-12);
    }
}
