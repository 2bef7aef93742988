//! What a window took from whom, all tasks together: by service, pod, container or user, and by device.

use rxpath_bpf::steal::{Steal, TaskTaken};
use rxpath_core::Division;
use rxpath_core::measured::TaskKind;
use rxpath_host::Root;
use rxpath_host::read::cgroup::{GroupKind, GroupNames};
use rxpath_record::watch::{TakenTime, VictimName, WindowTotals};

/// The totals of a window of this length, from a sample of it.
pub(super) fn of(
    steal: &Steal,
    window_s: f64,
    root: &Root,
    groups: &mut GroupNames,
) -> WindowTotals {
    let factor = window_s / steal.window_s.max(1e-3);
    let estimate = &steal.calibration;
    let irq_entry = estimate.kind.map(|kind| (kind.word(), estimate.irq_entry_us / 1e6));
    let mut totals = WindowTotals { irq_entry, ..WindowTotals::default() };
    let mut ran_s = 0.0;
    // What is taken from the idle task is taken from nobody.
    for paid in steal.tasks.iter().filter(|paid| paid.row.kind != TaskKind::Idle) {
        let task = &paid.row;
        ran_s += task.time.on_cpu_s;
        let taken = taken(&task.time, factor);
        if taken.sum_s() > 0.0 {
            *totals.victims.entry(victim(paid, root, groups)).or_default() += taken;
        }
        // Their polls are their own work.
        let is_deferred = matches!(task.kind, TaskKind::Ksoftirqd | TaskKind::Napi);
        if is_deferred {
            let own_s = task.time.own_s + task.time.own_softirq_s;
            *totals.deferred_s.entry(task.kind.word()).or_default() += own_s * factor;
        }
        for by in task.taken_by.iter().filter(|_| !is_deferred) {
            *totals.devices_s.entry(by.dev.clone()).or_default() += by.net_s * factor;
        }
    }
    let lost_s: f64 = steal.cpus.iter().map(|cpu| cpu.lost_s).sum();
    if lost_s > 0.0 {
        let lost = of_lost(totals.taken(), lost_s, ran_s);
        *totals.victims.entry(nobody()).or_default() += lost;
    }
    totals
}

/// What was taken from slices that found no room in the probe's table. Their time is known; as much of it was taken as of the
/// time that tasks with rows ran: an estimate.
fn of_lost(taken: TakenTime, lost_s: f64, ran_s: f64) -> TakenTime {
    taken.times(if ran_s > 0.0 { lost_s / ran_s } else { 0.0 })
}

/// Whom no group names.
fn nobody() -> VictimName {
    ("other", "other".into())
}

fn taken(time: &Division, factor: f64) -> TakenTime {
    TakenTime {
        hardirq_s: time.hardirq_s * factor,
        irq_entry_s: time.irq_entry_estimated_s * factor,
        network_s: (time.net_rx_s + time.net_tx_s + time.mixed_softirq_s) * factor,
        softirq_s: time.other_softirq_s * factor,
        hypervisor_s: time.hypervisor_steal_s * factor,
    }
}

fn victim(task: &TaskTaken, root: &Root, groups: &mut GroupNames) -> VictimName {
    if matches!(task.row.kind, TaskKind::Kernel | TaskKind::Ksoftirqd | TaskKind::Napi) {
        return ("kernel", "kernel".into());
    }
    let Some(group) = groups.name(root, task.cgroup, task.row.tgid) else {
        return nobody();
    };
    let kind = match group.kind {
        GroupKind::Unit => "unit",
        GroupKind::Pod => "pod",
        GroupKind::Container => "container",
        GroupKind::User => "user",
        GroupKind::Group => "group",
    };
    (kind, group.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_of_interrupts_is_no_part_of_their_measured_time() {
        let time = Division { hardirq_s: 0.1, irq_entry_estimated_s: 0.3, ..Division::default() };
        let right = TakenTime { hardirq_s: 0.2, irq_entry_s: 0.6, ..TakenTime::default() };
        assert_eq!(taken(&time, 2.0), right);
        assert!((right.sum_s() - 2.0 * time.taken_s()).abs() < 1e-12);
    }

    #[test]
    fn from_slices_without_a_row_as_much_was_taken_as_from_others() {
        let taken = TakenTime { network_s: 0.4, irq_entry_s: 0.1, ..TakenTime::default() };
        let half = of_lost(taken, 1.0, 2.0);
        assert_eq!(half, TakenTime { network_s: 0.2, irq_entry_s: 0.05, ..TakenTime::default() });
        assert_eq!(of_lost(taken, 1.0, 0.0), TakenTime::default());
    }
}
