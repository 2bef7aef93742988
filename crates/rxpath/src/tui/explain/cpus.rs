//! A CPU: how its time was used, which task used most, and how to relieve it.

use rxpath_core::number::{percent, si};
use rxpath_core::{CpuList, SortFew};
use rxpath_record::watch::{CpuRow, WatchFrame};

/// From this share on, it is mentioned.
const NOTABLE: f64 = 0.02;
/// Above this share the CPU has no time to spare.
const FULL: f64 = 0.9;

pub(super) fn words(cpu: &CpuRow, frame: &WatchFrame) -> Vec<String> {
    let mut words = vec![spent(cpu)];
    words.extend(relief(cpu, frame));
    words
}

fn busy(cpu: &CpuRow) -> f64 {
    (1.0 - cpu.idle_ratio).clamp(0.0, 1.0)
}

fn spent(cpu: &CpuRow) -> String {
    let mut parts: Vec<(f64, &str)> = vec![
        (cpu.user_ratio, "programs"),
        (cpu.system_ratio, "system calls and kernel threads"),
        (cpu.softirq_ratio, "softirqs by ticks"),
        (cpu.irq_ratio, "hard interrupts by ticks"),
        (cpu.steal_ratio, "taken by the hypervisor"),
    ];
    parts.retain(|(ratio, _)| *ratio >= 0.005);
    parts.sort_few_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> =
        parts.iter().map(|(ratio, what)| format!("{what} {}", percent(*ratio, 0))).collect();
    let mut words = format!("CPU {} was {} busy", cpu.cpu, percent(busy(cpu), 0));
    if !parts.is_empty() {
        words += &format!(": {}", parts.join(", "));
    }
    if let Some(net) = cpu.net_softirq_ratio.value() {
        words += &format!(". Receiving took {} of it, measured", percent(*net, 0));
    }
    if !cpu.busiest_task.is_empty() {
        words += &format!(". The task with most of it: {}", cpu.busiest_task);
    }
    words + "."
}

fn relief(cpu: &CpuRow, frame: &WatchFrame) -> Vec<String> {
    let mut words = Vec::new();
    let net = cpu.net_softirq_ratio.value().copied().unwrap_or(cpu.softirq_ratio);
    let queues = queues(cpu, frame);
    if busy(cpu) >= FULL && net >= busy(cpu) / 2.0 {
        words.push(format!(
            "Receive processing fills this CPU, so it limits its queues{queues}. Spread the load: more queues (RSS), or the \
             protocols' work over other CPUs (RPS). `rxpath explain rss-indirection`, `rxpath explain rps-cpus`, `rxpath check --queues`."
        ));
    } else if busy(cpu) >= FULL {
        words.push(format!(
            "Other work than receiving fills this CPU{queues}. Packets that land here wait for it: move the task, or the \
             queues' interrupts, to another CPU."
        ));
    } else if !queues.is_empty() {
        words.push(format!("It limits nothing now{queues}."));
    } else {
        words.push("It limits nothing now.".into());
    }
    if cpu.squeezed_per_s > 0.0 {
        words.push(format!(
            "NET_RX ended {} times/s with work left (time_squeeze): net.core.netdev_budget and netdev_budget_usecs limit a \
             run. A CPU with more work than that needs help from other CPUs.",
            si(cpu.squeezed_per_s)
        ));
    }
    if cpu.dropped_pps > 0.0 {
        words.push(format!(
            "Its backlog dropped {} packets/s: net.core.netdev_max_backlog, or more CPUs in rps_cpus.",
            si(cpu.dropped_pps)
        ));
    }
    if cpu.steal_ratio >= NOTABLE {
        words.push(format!(
            "The hypervisor took {}: nothing in this guest can change that, and it makes times measured here longer.",
            percent(cpu.steal_ratio, 0)
        ));
    }
    words
}

/// The queues whose interrupts this CPU handles.
fn queues(cpu: &CpuRow, frame: &WatchFrame) -> String {
    let here = frame.queues.iter().filter(|queue| {
        let cpus = queue.cpus.value().and_then(|text| text.parse::<CpuList>().ok());
        cpus.is_some_and(|cpus| cpus.as_slice().contains(&cpu.cpu))
    });
    let named: Vec<String> = here
        .map(|queue| {
            let rate = queue
                .packets_pps
                .value()
                .map_or_else(String::new, |pps| format!(" ({}/s)", si(*pps)));
            format!("{} queue {}{rate}", queue.device, queue.queue)
        })
        .collect();
    if named.is_empty() { String::new() } else { format!("; it takes {}", named.join(", ")) }
}
