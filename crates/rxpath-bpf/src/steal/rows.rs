//! From charges in ns to rows in seconds: estimates added, CPUs and tasks summed from the same numbers.

use std::collections::{BTreeMap, HashMap};

use super::{TakenFor, TaskTaken, TickTimes};
use rxpath_core::measured::{CpuBreakdown, TakenBy, TaskKind, TaskTime};
use rxpath_core::{Division, SortFew};
use rxpath_host::read::procfs::task::descendants;

use crate::account::Reading;
use crate::account::calibrate::IrqCalibration;
use crate::account::row::{ChargedTask, PF_KTHREAD, TaskKey};
use crate::names::transport_name;

/// What the rows are made from.
pub struct StealRows<'a> {
    window: &'a Reading,
    ticks: HashMap<u32, TickTimes>,
    /// By CPU: microseconds per interrupt, interrupts a second, time that was not idle.
    cpus: BTreeMap<u32, CpuFacts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuFacts {
    entry_us: f64,
    interrupts_per_s: f64,
    busy_ns: u64,
    window_s: f64,
    lost_s: f64,
    unmatched: u64,
}

impl<'a> StealRows<'a> {
    pub fn new(
        window: &'a Reading,
        ticks: &[(u32, TickTimes)],
        calibration: &IrqCalibration,
    ) -> Self {
        let mut cpus = BTreeMap::new();
        for cpu in &window.cpus {
            let here = || window.tasks.iter().filter(|task| task.key.cpu == cpu.cpu);
            let interrupts: u64 = here().map(|task| task.charge.interrupts).sum();
            let busy = here().filter(|task| task.key.pid != 0).map(|task| task.charge.on_cpu_ns);
            let window_s = cpu.span_ns() as f64 / 1e9;
            let interrupts_per_s = if window_s > 0.0 { interrupts as f64 / window_s } else { 0.0 };
            let (busy_ns, unmatched, lost_s) =
                (busy.sum(), cpu.unmatched, cpu.lost_ns as f64 / 1e9);
            let entry_us = calibration.at(interrupts_per_s);
            let facts =
                CpuFacts { entry_us, interrupts_per_s, busy_ns, window_s, lost_s, unmatched };
            cpus.insert(cpu.cpu, facts);
        }
        Self { window, ticks: ticks.iter().copied().collect(), cpus }
    }

    /// One task on one CPU.
    fn divide(&self, row: &ChargedTask) -> Division {
        let c = &row.charge;
        let s = |ns: u64| ns as f64 / 1e9;
        // A softirq that ran when the window began is charged whole at its end, and of its task's slice only the rest is
        // in the window: no more of it than that either.
        let part = (c.on_cpu_ns as f64 / c.interrupted_ns().max(1) as f64).min(1.0);
        let cpu = self.cpus.get(&row.key.cpu).copied().unwrap_or_default();
        let deferred = matches!(kind(row), TaskKind::Ksoftirqd | TaskKind::Napi);
        // What ksoftirqd and NAPI threads run is what they are for: networking's own time, taken from nobody.
        let taken = |ns: u64| if deferred { 0.0 } else { s(ns) * part };
        let own_softirq_s = s(c.own_net_ns + c.own_other_ns) * part
            + if deferred {
                s(c.net_rx_ns + c.net_tx_ns + c.other_softirq_ns + c.mixed_ns) * part
            } else {
                0.0
            };
        let rest = s(c.on_cpu_ns.saturating_sub(c.interrupted_ns()));
        // An estimate can't take more than there is.
        let irq_entry_estimated_s = (c.interrupts as f64 * cpu.entry_us / 1e6).min(rest);
        let steal = self.ticks.get(&row.key.cpu).map_or(0.0, |ticks| ticks.steal_s);
        let share = if row.key.pid == 0 || cpu.busy_ns == 0 {
            0.0
        } else {
            c.on_cpu_ns as f64 / cpu.busy_ns as f64
        };
        let hypervisor_steal_s = (steal * share).min(rest - irq_entry_estimated_s);
        Division {
            on_cpu_s: s(c.on_cpu_ns),
            own_s: rest - irq_entry_estimated_s - hypervisor_steal_s,
            hardirq_s: s(c.hardirq_ns) * part,
            net_rx_s: taken(c.net_rx_ns),
            net_tx_s: taken(c.net_tx_ns),
            other_softirq_s: taken(c.other_softirq_ns),
            other_network_s: taken(c.other_network_ns.min(c.other_softirq_ns)),
            mixed_softirq_s: taken(c.mixed_ns),
            own_softirq_s,
            irq_entry_estimated_s,
            hypervisor_steal_s,
            tick_view_s: s(c.runtime_ns),
            preempted_s: s(c.run_delay_ns),
            certain_s: s(c.from_user_ns),
            contradicted_s: s(c.own_from_user_ns),
            interrupts_count: c.interrupts,
            taken_packets: c.taken_packets,
        }
    }

    /// Each CPU, summed from its tasks.
    pub fn cpus(&self) -> Vec<CpuBreakdown> {
        self.cpus.iter().map(|(cpu, facts)| self.cpu(*cpu, facts)).collect()
    }

    fn cpu(&self, cpu: u32, facts: &CpuFacts) -> CpuBreakdown {
        let rows: Vec<(&ChargedTask, Division)> = self
            .window
            .tasks
            .iter()
            .filter(|row| row.key.cpu == cpu)
            .map(|row| (row, self.divide(row)))
            .collect();
        let of = |wanted: &dyn Fn(TaskKind) -> bool, part: &dyn Fn(&Division) -> f64| -> f64 {
            let rows = rows.iter().filter(|(row, _)| wanted(kind(row)));
            // Not `sum`, which makes -0.0 of nothing.
            rows.map(|(_, division)| part(division)).fold(0.0, std::ops::Add::add)
        };
        let idle = |kind: TaskKind| kind == TaskKind::Idle;
        let deferred = |kind: TaskKind| matches!(kind, TaskKind::Ksoftirqd | TaskKind::Napi);
        let net = |d: &Division| d.net_rx_s + d.net_tx_s + d.mixed_softirq_s;
        let ticks = self.ticks.get(&cpu).copied().unwrap_or_default();
        let mut time: Division = rows.iter().map(|(_, d)| *d).sum();
        time.tick_view_s = ticks.busy_s;
        CpuBreakdown {
            cpu,
            window_s: facts.window_s,
            time,
            idle_s: of(&idle, &|d| d.own_s),
            net_on_idle_s: of(&idle, &net),
            deferred_s: of(&deferred, &|d| d.on_cpu_s),
            interrupts_per_s: facts.interrupts_per_s,
            tick_softirq_s: ticks.softirq_s,
            tick_irq_s: ticks.irq_s,
            lost_s: facts.lost_s,
            unmatched_count: facts.unmatched,
        }
    }

    /// One task, from its rows on all CPUs: named as where it ran last, the child of whom it had where it ran first.
    fn task(&self, rows: &[&ChargedTask]) -> Option<TaskTaken> {
        let newest = rows.iter().max_by_key(|row| row.last_ns)?;
        let parent = rows.iter().min_by_key(|row| row.first_ns)?.parent;
        let mut cpus: Vec<u32> = rows.iter().map(|row| row.key.cpu).collect();
        cpus.sort_unstable();
        let kind = kind(newest);
        let row = TaskTime {
            pid: newest.key.pid,
            tgid: newest.tgid,
            parent,
            start_ns: newest.key.start_ns,
            comm: if kind == TaskKind::Idle { "idle".into() } else { newest.comm.clone() },
            kind,
            cpus,
            time: rows.iter().map(|row| self.divide(row)).sum(),
            taken_by: Vec::new(),
        };
        Some(TaskTaken { row, cgroup: newest.cgroup, taken_for: Vec::new() })
    }

    /// Each task, summed over CPUs, by what was taken from it; then by its time.
    pub fn tasks(&self) -> Vec<TaskTaken> {
        let of = |key: &TaskKey| (key.pid, key.start_ns);
        let mut rows: Vec<&ChargedTask> = self.window.tasks.iter().collect();
        rows.sort_few_by_key(|row| (of(&row.key), row.key.cpu));
        let each = rows.chunk_by(|a, b| of(&a.key) == of(&b.key));
        // In the order of their pids: a table of thousands of tasks would take twice their memory.
        let mut tasks: Vec<TaskTaken> = each.filter_map(|rows| self.task(rows)).collect();
        let place = |tasks: &[TaskTaken], victim: &TaskKey| {
            let key = |task: &TaskTaken| (task.row.pid, task.row.start_ns);
            tasks.binary_search_by_key(&of(victim), key).ok()
        };
        for culprit in &self.window.culprits {
            let Some(at) = place(&tasks, &culprit.key.victim) else { continue };
            tasks[at].row.taken_by.push(TakenBy {
                dev: if culprit.key.ifindex == 0 { "backlog".into() } else { culprit.dev.clone() },
                ifindex: culprit.key.ifindex,
                netns: culprit.key.netns,
                napi_id: culprit.key.napi_id,
                queue: None,
                net_s: culprit.ns as f64 / 1e9,
                polls_count: culprit.polls,
                packets: culprit.packets,
            });
        }
        for flow in &self.window.flows {
            if let Some(at) = place(&tasks, &flow.key.victim) {
                tasks[at].taken_for.push(TakenFor {
                    dev: flow.dev.clone(),
                    ifindex: flow.key.ifindex,
                    netns: flow.key.netns,
                    transport: transport_name(flow.key.transport.into()),
                    to: flow.key.to,
                    port: flow.key.port,
                    packets_seen_count: flow.packets,
                    net_s_estimated: 0.0,
                });
            }
        }
        for task in &mut tasks {
            merge(&mut task.row.taken_by);
            merge_flows(&mut task.taken_for, &task.row.time);
        }
        let theft =
            |task: &TaskTime| if task.kind == TaskKind::Idle { 0.0 } else { task.time.taken_s() };
        tasks.sort_few_by(|TaskTaken { row: a, .. }, TaskTaken { row: b, .. }| {
            theft(b).total_cmp(&theft(a)).then(b.time.on_cpu_s.total_cmp(&a.time.on_cpu_s))
        });
        tasks
    }
}

/// The same device's polls on several CPUs as one, the largest first.
pub fn merge(taken: &mut Vec<TakenBy>) {
    let mut merged: Vec<TakenBy> = Vec::new();
    for one in taken.drain(..) {
        let same = |other: &&mut TakenBy| {
            (other.ifindex, other.netns, other.napi_id) == (one.ifindex, one.netns, one.napi_id)
        };
        match merged.iter_mut().find(same) {
            Some(other) => {
                other.net_s += one.net_s;
                other.polls_count += one.polls_count;
                other.packets += one.packets;
            }
            None => merged.push(one),
        }
    }
    merged.sort_few_by(|a, b| b.net_s.total_cmp(&a.net_s));
    *taken = merged;
}

/// The same flow's packets on several CPUs as one, the most first, and the time of receive softirqs divided among flows.
pub fn merge_flows(flows: &mut Vec<TakenFor>, time: &Division) {
    let mut merged: Vec<TakenFor> = Vec::new();
    for one in flows.drain(..) {
        let same = |other: &&mut TakenFor| {
            (other.ifindex, other.netns, &other.transport, other.to, other.port)
                == (one.ifindex, one.netns, &one.transport, one.to, one.port)
        };
        match merged.iter_mut().find(same) {
            Some(other) => other.packets_seen_count += one.packets_seen_count,
            None => merged.push(one),
        }
    }
    let all: u64 = merged.iter().map(|flow| flow.packets_seen_count).sum();
    for flow in &mut merged {
        let share = flow.packets_seen_count as f64 / all.max(1) as f64;
        flow.net_s_estimated = share * (time.net_rx_s + time.mixed_softirq_s);
    }
    merged.sort_few_by(|a, b| {
        b.packets_seen_count.cmp(&a.packets_seen_count).then((a.to, a.port).cmp(&(b.to, b.port)))
    });
    *flows = merged;
}

/// What a task is, by its flags and name.
///
/// Names of kernel threads are the kernel's (kernel/softirq.c `softirq_threads`, net/core/dev.c `napi_kthread_create`,
/// drivers/vhost/vhost.c). Threads of virtual CPUs are named by their VMM: `CPU 0/KVM` by QEMU, `fc_vcpu 0` by
/// Firecracker, `vcpu0` by Cloud Hypervisor; a VMM that names them otherwise is a task here.
fn kind(row: &ChargedTask) -> TaskKind {
    let comm = row.comm.as_str();
    if row.key.pid == 0 {
        TaskKind::Idle
    } else if comm.starts_with("vhost-") {
        // Kernel thread before 6.4, user thread (vhost_task) since.
        TaskKind::Vhost
    } else if row.flags & PF_KTHREAD != 0 {
        match comm {
            _ if comm.starts_with("ksoftirqd/") => TaskKind::Ksoftirqd,
            _ if comm.starts_with("napi/") => TaskKind::Napi,
            _ => TaskKind::Kernel,
        }
    } else if (comm.starts_with("CPU ") && comm.ends_with("/KVM"))
        || comm.starts_with("fc_vcpu ")
        || comm
            .strip_prefix("vcpu")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    {
        TaskKind::Vcpu
    } else {
        TaskKind::Task
    }
}

/// The processes that descend from `root`, itself included, by what their rows say of their parents.
pub fn family(tasks: &[TaskTaken], root: u32) -> Vec<u32> {
    let rows = tasks.iter().map(|task| &task.row).filter(|row| row.tgid != 0);
    descendants(root, &rows.map(|row| (row.parent, row.tgid)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
