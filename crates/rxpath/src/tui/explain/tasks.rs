//! A task: its CPU time, what was taken from it and by whom, and how to prevent that.

use rxpath_core::number::percent;
use rxpath_core::{CpuList, Fact};
use rxpath_record::watch::{TaskRow, WatchFrame};

/// From this share on, a remedy is shown.
const NOTABLE: f64 = 0.05;

pub(super) fn words(task: &TaskRow, frame: &WatchFrame) -> Vec<String> {
    let mut words = vec![had(task), taken(task)];
    words.extend(remedies(task, frame));
    words
}

fn had(task: &TaskRow) -> String {
    let mut words = format!(
        "{} ({}) was on CPU {} {} of the time",
        task.comm,
        task.pid,
        CpuList(task.cpus.clone()),
        percent(task.on_cpu_ratio, 1)
    );
    if let Some(own) = task.own_ratio.value() {
        words += &format!(", {} of it its own work", percent(*own, 1));
    }
    if let Some(own) = task.own_softirq_ratio.value().filter(|own| **own > 0.0) {
        words += &format!(", {} softirqs that its own calls raised", percent(*own, 1));
    }
    words + "."
}

fn taken(task: &TaskRow) -> String {
    let Some(taken) = task.taken_ratio.value() else {
        let why = task.taken_ratio.gap().unwrap_or_default();
        return format!("The time taken from it is not known: {why}.");
    };
    let mut words = format!("Taken from it: {}", percent(*taken, 1));
    let part = |fact: &Fact<f64>, what: &str| {
        let share = fact.value().filter(|share| **share > 0.0);
        share.map(|share| format!("{what} {}", percent(*share, 1)))
    };
    let parts: Vec<String> = [
        part(&task.taken_net_ratio, "network softirqs"),
        part(&task.irq_entry_ratio, "entry and exit of interrupts, estimated"),
        part(&task.hypervisor_ratio, "hypervisor"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !parts.is_empty() {
        words += &format!(" ({})", parts.join(", "));
    }
    if !task.taken_by.is_empty() {
        words += &format!(", most by the polls of {}", task.taken_by);
    }
    words + "."
}

fn remedies(task: &TaskRow, frame: &WatchFrame) -> Vec<String> {
    let mut words = Vec::new();
    if matches!(task.kind.as_str(), "ksoftirqd" | "napi") {
        words.push(
            "This task is networking itself: its CPU time is the cost of receiving, not taken from another task."
                .into(),
        );
    }
    let taken = task.taken_ratio.value().copied().unwrap_or(0.0);
    let hypervisor = task.hypervisor_ratio.value().copied().unwrap_or(0.0);
    if taken - hypervisor >= NOTABLE {
        words.push(
            "To prevent this: give the interrupts of that device other CPUs than the task's (`rxpath check --queues`, \
             `rxpath tune plan`), or give the task another CPU; RPS and NAPI threads also move the work."
                .into(),
        );
    }
    if hypervisor >= NOTABLE {
        words.push("The hypervisor's share can only be changed on its host.".into());
    }
    let waits = task.waiting_ratio.value().copied().unwrap_or(0.0);
    if waits >= NOTABLE {
        let others: Vec<String> = frame
            .cpus
            .iter()
            .filter(|cpu| task.cpus.contains(&cpu.cpu) && !cpu.busiest_task.is_empty())
            .map(|cpu| format!("CPU {}: {}", cpu.cpu, cpu.busiest_task))
            .collect();
        words.push(format!(
            "It waited for a CPU {} of the time, while others ran ({}): give it a CPU of its own or a higher priority.",
            percent(waits, 1),
            others.join(", ")
        ));
    }
    words
}
