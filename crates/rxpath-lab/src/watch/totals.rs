//! What a window took from whom, all tasks together: by service, pod, container or user, and by device.

use rxpath_bpf::steal::{Kind, Steal, TaskTime};
use rxpath_core::Division;
use rxpath_host::Root;
use rxpath_host::cgroup::{GroupKind, GroupNames};
use rxpath_record::watch::{TakenTime, VictimName, WindowTotals};

/// The totals of a window of this length, from a sample of it.
pub(super) fn of(
    steal: &Steal,
    window_s: f64,
    root: &Root,
    groups: &mut GroupNames,
) -> WindowTotals {
    let factor = window_s / steal.window_s.max(1e-3);
    let mut totals = WindowTotals::default();
    // What is taken from the idle task is taken from nobody.
    for task in steal.tasks.iter().filter(|task| task.kind != Kind::Idle) {
        let taken = taken(&task.time, factor);
        if taken.sum_s() > 0.0 {
            *totals.victims.entry(victim(task, root, groups)).or_default() += taken;
        }
        // Their polls are their own work.
        let is_deferred = matches!(task.kind, Kind::Ksoftirqd | Kind::Napi);
        if is_deferred {
            let own_s = task.time.own_s + task.time.own_softirq_s;
            *totals.deferred_s.entry(task.kind.word()).or_default() += own_s * factor;
        }
        for by in task.taken_by.iter().filter(|_| !is_deferred) {
            *totals.devices_s.entry(by.dev.clone()).or_default() += by.net_s * factor;
        }
    }
    totals
}

fn taken(time: &Division, factor: f64) -> TakenTime {
    TakenTime {
        hardirq_s: (time.hardirq_s + time.irq_entry_estimated_s) * factor,
        network_s: (time.net_rx_s + time.net_tx_s + time.mixed_softirq_s) * factor,
        softirq_s: time.other_softirq_s * factor,
        hypervisor_s: time.hypervisor_steal_s * factor,
    }
}

fn victim(task: &TaskTime, root: &Root, groups: &mut GroupNames) -> VictimName {
    if matches!(task.kind, Kind::Kernel | Kind::Ksoftirqd | Kind::Napi) {
        return ("kernel", "kernel".into());
    }
    let Some(group) = groups.name(root, task.cgroup, task.tgid) else {
        return ("other", "other".into());
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
