//! Whose time is it? Each CPU's time by task, and in it the parts that hard interrupts and softirqs took.
//!
//! Tick accounting charges a whole tick to what it happens to interrupt; with network load it errs by a factor of two
//! in either direction. Here every span is measured between tracepoints (`bpf/account.bpf.c`). What lies outside all
//! tracepoints, an interrupt's entry and exit, is estimated per interrupt by [`calibrate`] and shown apart.
//!
//! This module reads; [`crate::steal`] turns the readings into the answer.

pub mod calibrate;
pub mod clock;
pub mod row;
pub mod spin;

use std::cell::RefCell;
use std::collections::HashMap;

use rxpath_core::{CpuList, Warning};
use rxpath_host::root::Root;
use rxpath_host::{HostError, procfs::stat};

use crate::object::{Loaded, ObjectSpec, ProgramSpec, ProgramState, program};
use row::{Charge, CpuWindow, Culprit, CulpritKey, TaskKey, TaskRow};

const REQUIRED: bool = true;

/// Pairs of task and CPU.
const ROOM: u32 = 32_768;

const TIMER: &str =
    "timer interrupts count as the interrupted task's own time (x86 names them by vector only)";
const IPI: &str =
    "inter-processor interrupts, RPS's among them, count as the interrupted task's own time";

/// The object, with the order in which its programs attach: exits before entries would be harmless too.
pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    name: "account",
    #[cfg(feature = "bpf")]
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/account.bpf.o")),
    #[cfg(not(feature = "bpf"))]
    bytes: &[],
    per_cpu_map: Some("cpus"),
    programs: &[
        ProgramSpec { name: "read_window", hook: None, loses: "everything", required: REQUIRED },
        program(
            "sched_switch",
            "sched/sched_switch",
            "everything: tasks can't be told apart",
            REQUIRED,
        ),
        program("softirq_entry", "irq/softirq_entry", "everything: no softirq is seen", REQUIRED),
        program("softirq_exit", "irq/softirq_exit", "everything: no softirq is seen", REQUIRED),
        program(
            "softirq_raise",
            "irq/softirq_raise",
            "everything: own work and theft can't be told apart",
            REQUIRED,
        ),
        program("irq_handler_entry", "irq/irq_handler_entry", "device interrupts", false),
        program("irq_handler_exit", "irq/irq_handler_exit", "device interrupts", false),
        program("napi_poll", "napi/napi_poll", "which device took the time", false),
        program("local_timer_entry", "irq_vectors/local_timer_entry", TIMER, false),
        program("local_timer_exit", "irq_vectors/local_timer_exit", TIMER, false),
        program("call_function_single_entry", "irq_vectors/call_function_single_entry", IPI, false),
        program("call_function_single_exit", "irq_vectors/call_function_single_exit", IPI, false),
        program("call_function_entry", "irq_vectors/call_function_entry", IPI, false),
        program("call_function_exit", "irq_vectors/call_function_exit", IPI, false),
        program("reschedule_entry", "irq_vectors/reschedule_entry", IPI, false),
        program("reschedule_exit", "irq_vectors/reschedule_exit", IPI, false),
        program("irq_work_entry", "irq_vectors/irq_work_entry", IPI, false),
        program("irq_work_exit", "irq_vectors/irq_work_exit", IPI, false),
    ],
};

/// The running probe. Dropping it takes its programs out of the kernel.
#[derive(Debug)]
pub struct Account {
    loaded: Loaded,
    root: Root,
    cpus: Vec<u32>,
    /// The rows of each half when it was last read whole.
    halves: RefCell<[HashMap<TaskKey, TaskRow>; 2]>,
}

/// Everything up to one moment, since the probe started. Times are cumulative.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Each CPU's window; CPUs that were offline at the reading are missing.
    pub cpus: Vec<CpuWindow>,
    /// Each task on each CPU.
    pub tasks: Vec<TaskRow>,
    /// Which device's polls took time from which task.
    pub culprits: Vec<Culprit>,
    /// `/proc/stat` at the same moment: what tick accounting says.
    pub ticks: stat::Stat,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

impl Account {
    /// Loads, attaches, and begins the window of each online CPU.
    ///
    /// **Errors** `Denied` without CAP_BPF and CAP_PERFMON, `Unsupported` on a kernel that lacks a required
    /// tracepoint or in a build without BPF.
    pub fn start() -> Result<Self, HostError> {
        Self::of(&Root::host().cpus("/sys/devices/system/cpu/online")?, ROOM)
    }

    /// The same for these CPUs only, with room for this many rows, pairs of task and CPU.
    ///
    /// **Errors** as [`Account::start`].
    pub fn of(cpus: &CpuList, rows: u32) -> Result<Self, HostError> {
        let root = Root::host();
        crate::can_run(&root).require("account CPU time")?;
        let mut loaded = Loaded::load(&SPEC, &[], &[("tasks", rows)])?;
        loaded.attach()?;
        let cpus = cpus.0.clone();
        let account = Self { loaded, root, cpus, halves: RefCell::default() };
        for cpu in &account.cpus {
            // A CPU that goes offline now is told at the first reading.
            let _ = account.loaded.run_on("read_window", *cpu);
        }
        Ok(account)
    }

    /// What became of each program.
    pub fn programs(&self) -> &[ProgramState] {
        self.loaded.programs()
    }

    /// The object, for its cost.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Ends the window of each CPU where it stands, running slices and softirqs included, and reads everything.
    ///
    /// **Cost** an interrupt for each CPU, and about 1 µs for each task that ran.
    pub fn read(&self) -> Result<Reading, HostError> {
        let mut reading = Reading::default();
        // By CPU: the half that its slices are charged to from here on.
        let mut now = HashMap::new();
        for cpu in &self.cpus {
            match self.loaded.run_on("read_window", *cpu) {
                Ok(_) => {
                    let (half, window) = row::window(*cpu, &self.loaded.value("cpus", *cpu)?);
                    now.insert(*cpu, half);
                    reading.cpus.push(window);
                }
                Err(error) => reading.warnings.push(
                    Warning::new("cpu-not-read", format!("CPU {cpu} has no rows: {error}"))
                        .because("it went offline while it was counted"),
                ),
            }
        }
        reading.ticks = self.root.parsed(stat::PATH, stat::parse)?;
        reading.tasks = self.tasks(&now)?;
        let entries = self.loaded.entries("culprits")?;
        reading.culprits = entries.iter().map(|(key, value)| row::culprit(key, value)).collect();
        Ok(reading)
    }

    /// The rows up to the ends of the windows: of each CPU the half that is no longer charged, and the other one as it
    /// was at the reading before.
    fn tasks(&self, now: &HashMap<u32, u32>) -> Result<Vec<TaskRow>, HostError> {
        let mut halves = self.halves.borrow_mut();
        for (key, value) in self.loaded.entries("tasks")? {
            let (half, row) = row::task(&key, &value);
            if now.get(&row.key.cpu) != Some(&half) {
                halves[(half & 1) as usize].insert(row.key, row);
            }
        }
        let [even, odd] = &*halves;
        let both = even.values().map(|row| {
            let charge =
                odd.get(&row.key).map_or(row.charge, |other| row.charge.plus(&other.charge));
            TaskRow { charge, ..row.clone() }
        });
        let rest = odd.values().filter(|row| !even.contains_key(&row.key)).cloned();
        Ok(both.chain(rest).collect())
    }
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
            ticks: self.ticks.clone(),
            warnings: self.warnings.clone(),
        }
    }

    /// Slices, polls that found no room in a map.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.lost_slices + cpu.lost_polls).sum()
    }
}
