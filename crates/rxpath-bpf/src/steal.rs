//! CPU time that networking took from tasks, and who caused it: computed from an [`crate::account`] reading.
//!
//! `own_s` is the task's time on a CPU minus everything else. So the parts of a row add up to `on_cpu_s`, and the rows
//! of a CPU add up to its window. Softirqs that the task raised by its own calls are a separate part
//! (`own_softirq_s`): the task caused them, they are not stolen. Measured and estimated values are in different
//! fields.

mod narrow;
pub mod openssl;
pub mod probe;
mod rows;

use std::net::IpAddr;

use rxpath_core::Warning;
use rxpath_core::measured::{CpuBreakdown, ProbeCost, TakenBy, TaskTime};
use rxpath_core::number::grouped;
use rxpath_host::read::cputime::user_hz;
use rxpath_host::read::procfs::stat::Ticks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::Reading;
use crate::account::calibrate::IrqCalibration;
use crate::account::row::CpuWindow;
use crate::devices::{self, NapiInstance};
use crate::object::ProgramState;
use crate::probe::missing;

pub use narrow::Narrow;
pub use rows::family;

/// One task, with what a run must not keep of it: a flow names an address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskTaken {
    /// Where its time went.
    #[serde(flatten)]
    pub row: TaskTime,
    /// Id of its group of version 2; 0 where it is not known.
    #[serde(skip)]
    pub cgroup: u64,
    /// For which flows, the most packets first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub taken_for: Vec<TakenFor>,
}

/// A flow whose packets were received in a task's time, according to the sampled packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenFor {
    /// Device through which they came.
    pub dev: String,
    /// Device index in its namespace.
    pub ifindex: u32,
    /// Inode of its network namespace.
    pub netns: u32,
    /// `udp`, `tcp`, `icmp` or the protocol's number; none for packets that are not IP or have their headers in
    /// fragments.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transport: Option<String>,
    /// Destination address; none for packets that are not IP, or where too many flows are counted together.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<IpAddr>,
    /// Destination port of TCP and UDP; 0 for others.
    pub port: u16,
    /// Sampled packets (aggregates of GRO count as one).
    pub packets_seen_count: u64,
    /// The task's receive softirq time, divided among flows by sampled packets: an estimate.
    pub net_s_estimated: f64,
}

/// The answer of `rxpath steal`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steal {
    /// Length of the window.
    pub window_s: f64,
    /// Tasks that ran, by time taken from them, the largest first; rows of the idle tasks are one.
    pub tasks: Vec<TaskTaken>,
    /// CPUs.
    pub cpus: Vec<CpuBreakdown>,
    /// How long packets were sampled for `taken_for`: duty-cycled at high packet rates.
    #[serde(default)]
    pub flows_looked_s: f64,
    /// The cost of an interrupt in addition to the measured time.
    pub calibration: IrqCalibration,
    /// What the probe itself cost.
    pub probe_cost: ProbeCost,
    /// The programs of the probe, and what is not known without those that are missing.
    pub probes: Vec<ProgramState>,
    /// The victim that was run for this, with the time it asked for and the time it got.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub victim: Option<probe::StealVictim>,
}

impl Steal {
    /// Adds the receive queue to each poll that took time, where the kernel reports it.
    pub fn name_queues(&mut self) {
        let taken = self.tasks.iter_mut().flat_map(|task| &mut task.row.taken_by);
        let taken = taken.chain(self.victim.iter_mut().flat_map(|victim| &mut victim.row.taken_by));
        let napi =
            |by: &TakenBy| NapiInstance { netns: by.netns, ifindex: by.ifindex, id: by.napi_id };
        devices::name_queues(taken.map(|by| (napi(by), &mut by.queue)));
    }
}

/// The inputs of the answer.
#[derive(Debug)]
pub struct StealInputs<'a> {
    /// The first reading.
    pub before: &'a Reading,
    /// The last.
    pub after: &'a Reading,
    /// The calibration.
    pub calibration: IrqCalibration,
    /// The cost.
    pub cost: ProbeCost,
    /// The programs.
    pub probes: &'a [ProgramState],
    /// How long flows were sampled.
    pub flows_looked: std::time::Duration,
}

/// Makes the answer, and what to know before trusting it.
pub fn answer(inputs: StealInputs<'_>) -> (Steal, Vec<Warning>) {
    answer_of(&inputs.after.since(inputs.before), inputs)
}

/// The same for the window between the two readings.
pub fn answer_of(window: &Reading, inputs: StealInputs<'_>) -> (Steal, Vec<Warning>) {
    let ticks = counted(tick_seconds(inputs.before, inputs.after), window);
    let mut calibration = inputs.calibration;
    let rows = rows::StealRows::new(window, &ticks, &calibration);
    let (cpus, tasks) = (rows.cpus(), rows.tasks());
    let interrupts: f64 = cpus.iter().map(|cpu| cpu.interrupts_per_s).sum();
    // The value that stands for all: the mean over interrupts.
    let estimated: f64 =
        cpus.iter().map(|cpu| cpu.interrupts_per_s * calibration.at(cpu.interrupts_per_s)).sum();
    if interrupts > 0.0 && !calibration.points.is_empty() {
        calibration.irq_entry_us = estimated / interrupts;
    }
    let cost = ProbeCost { lost_count: inputs.cost.lost_count + window.lost(), ..inputs.cost };
    let mut warnings = window.warnings.clone();
    warnings.extend(told(&calibration, inputs.probes));
    warnings.extend(missed(window));
    let longest_ns = window.cpus.iter().map(CpuWindow::span_ns).max().unwrap_or(0);
    let window_s = longest_ns as f64 / 1e9;
    let probes = inputs.probes.to_vec();
    let flows_looked_s = inputs.flows_looked.as_secs_f64();
    let steal = Steal {
        window_s,
        tasks,
        cpus,
        flows_looked_s,
        calibration,
        probe_cost: cost,
        probes,
        victim: None,
    };
    (steal, warnings)
}

/// What ticks say each CPU did in between, in seconds, by CPU.
fn tick_seconds(before: &Reading, after: &Reading) -> Vec<(u32, TickTimes)> {
    let hz = user_hz() as f64;
    let seconds = |now: u64, then: u64| now.saturating_sub(then) as f64 / hz;
    let of = |now: &Ticks, then: &Ticks| TickTimes {
        busy_s: seconds(now.user, then.user)
            + seconds(now.nice, then.nice)
            + seconds(now.system, then.system)
            + seconds(now.irq, then.irq)
            + seconds(now.softirq, then.softirq),
        irq_s: seconds(now.irq, then.irq),
        softirq_s: seconds(now.softirq, then.softirq),
        steal_s: seconds(now.steal, then.steal),
    };
    let earlier = |cpu: &u32| before.ticks.cpus.iter().find(|(other, _)| other == cpu);
    let cpus = after.ticks.cpus.iter();
    cpus.filter_map(|(cpu, now)| Some((*cpu, of(now, &earlier(cpu)?.1)))).collect()
}

/// Ticks go on in pauses: the counted share of each CPU.
fn counted(mut ticks: Vec<(u32, TickTimes)>, window: &Reading) -> Vec<(u32, TickTimes)> {
    for (cpu, times) in &mut ticks {
        let own = window.cpus.iter().find(|own| own.cpu == *cpu && own.skipped_ns > 0);
        let share = own.map_or(1.0, |own| own.span_ns() as f64 / own.whole_ns().max(1) as f64);
        *times = TickTimes {
            busy_s: times.busy_s * share,
            irq_s: times.irq_s * share,
            softirq_s: times.softirq_s * share,
            steal_s: times.steal_s * share,
        };
    }
    ticks
}

/// Tick accounting of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TickTimes {
    busy_s: f64,
    irq_s: f64,
    softirq_s: f64,
    steal_s: f64,
}

fn told(calibration: &IrqCalibration, probes: &[ProgramState]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = missing(probes).collect();
    if calibration.points.is_empty() {
        let text = "interrupt entry and exit are not estimated: stolen time is reported too low";
        warnings.push(
            Warning::new("not-calibrated", text)
                .because(calibration.source.clone())
                .cure("give a value with --irq-entry, or let rxpath calibrate"),
        );
    }
    warnings
}

/// Normal number of unmatched exits and slices per CPU: those in progress when counting began, and one per this many
/// switches.
const USUAL: u64 = 10;
const SWITCHES: u64 = 1000;

/// Records that did not fit in the maps, and events that were seen in part only.
fn missed(window: &Reading) -> Vec<Warning> {
    let sum = |of: fn(&CpuWindow) -> u64| window.cpus.iter().map(of).sum::<u64>();
    let mut warnings = Vec::new();
    let mut without_row = |code: &str, count: u64, text: String, why: &str| {
        if count > 0 {
            warnings.push(Warning::new(code, text).because(why));
        }
    };
    let (lost, lost_s) = (sum(|cpu| cpu.lost_slices), sum(|cpu| cpu.lost_ns) as f64 / 1e9);
    let text = format!("{} time slices ({lost_s:.3} s) have no row", grouped(lost));
    let why = "more tasks ran than fit in the map (32,768 pairs of task and CPU)";
    without_row("tasks-lost", lost, text, why);
    let polls = sum(|cpu| cpu.lost_polls);
    let text = format!("{} polls have no row: `taken_by` lacks them", grouped(polls));
    let why = "more pairs of task and NAPI than fit in the map (16,384)";
    without_row("polls-lost", polls, text, why);
    let packets = sum(|cpu| cpu.lost_flows);
    let text = format!("{} packets have no row: `taken_for` lacks them", grouped(packets));
    let why = "more flows at the same time than fit in the maps (12,288)";
    without_row("flows-lost", packets, text, why);
    let unmatched = sum(|cpu| cpu.unmatched);
    let slices: u64 = window.tasks.iter().map(|task| task.charge.slices).sum();
    if unmatched > USUAL * window.cpus.len() as u64 + slices / SWITCHES {
        let [unmatched, slices] = [unmatched, slices].map(grouped);
        let text =
            format!("{unmatched} end events without their start event, in {slices} time slices");
        warnings.push(Warning::new("events-unmatched", text).because(
            "entries of interrupts or task switches were missed: their time is charged to the task",
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::row::{Charge, ChargedTask, TaskKey};

    fn window(cpu: CpuWindow, slices: u64) -> Reading {
        let task = ChargedTask {
            key: TaskKey { start_ns: 1, pid: 7, cpu: 0 },
            charge: Charge { slices, ..Charge::default() },
            first_ns: 0,
            last_ns: 0,
            tgid: 7,
            parent: 1,
            flags: 0,
            comm: "sh".into(),
            cgroup: 0,
        };
        Reading { cpus: vec![cpu], tasks: vec![task], ..Reading::default() }
    }

    #[test]
    fn each_thing_that_was_lost_is_told_with_what_it_is_missing_from() {
        let cpu = CpuWindow {
            lost_slices: 2,
            lost_ns: 1_000_000,
            lost_polls: 3,
            lost_flows: 4,
            ..CpuWindow::default()
        };
        let window = window(cpu, 0);
        let told: Vec<String> = missed(&window).iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        for (said, part) in told.iter().zip([
            "2 time slices (0.001 s)",
            "3 polls have no row",
            "4 packets have no row",
        ]) {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(window.lost(), 9);
    }

    #[test]
    fn ticks_of_a_pause_are_left_out() {
        let cpu = CpuWindow { end_ns: 100, skipped_ns: 75, ..CpuWindow::default() };
        let times = TickTimes { busy_s: 4.0, irq_s: 0.4, softirq_s: 0.8, steal_s: 2.0 };
        let [(_, here), (_, other)] = counted(vec![(0, times), (1, times)], &window(cpu, 0))[..]
        else {
            panic!("two CPUs");
        };
        assert!((here.busy_s - 1.0).abs() < 1e-12 && (here.steal_s - 0.5).abs() < 1e-12);
        assert!((other.softirq_s - 0.8).abs() < 1e-12);
    }

    #[test]
    fn what_is_unmatched_as_usual_is_no_warning() {
        let cpu = |unmatched| CpuWindow { unmatched, ..CpuWindow::default() };
        assert!(missed(&window(cpu(USUAL), 0)).is_empty());
        assert!(missed(&window(cpu(USUAL + 50), 50 * SWITCHES)).is_empty());
        let told = missed(&window(cpu(USUAL + 51), 50 * SWITCHES));
        assert_eq!(told[0].code, "events-unmatched", "{told:?}");
    }
}
