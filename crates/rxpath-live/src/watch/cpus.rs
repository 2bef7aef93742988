//! The CPUs of a window.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use rxpath_record::evidence::CpuUse;
use rxpath_record::watch::CpuRow;

use super::Window;

pub(super) fn rows(window: &Window<'_>, nodes: &BTreeMap<u32, u32>) -> Vec<CpuRow> {
    window.between.cpus.iter().map(|cpu| row(cpu, window, nodes)).collect()
}

fn row(cpu: &CpuUse, window: &Window<'_>, nodes: &BTreeMap<u32, u32>) -> CpuRow {
    let number = cpu.cpu;
    let softnet = |counter: &str| {
        window.rates.softnet_per_s(counter, std::iter::once(number)).into_value().unwrap_or(0.0)
    };
    let net = match window.seen {
        Ok(seen) => match seen.net_rx.get(&number) {
            Some((_, softirqs_ns)) => {
                let threads_ns = seen.napi_threads.get(&number).copied().unwrap_or(0);
                Fact::ok((softirqs_ns + threads_ns) as f64 / 1e9 / seen.per_s())
            }
            None => Fact::absent("it came online after watching began"),
        },
        Err(why) => Fact::absent(why),
    };
    CpuRow {
        cpu: number,
        node: nodes.get(&number).copied(),
        user_ratio: cpu.user_ratio,
        system_ratio: cpu.system_ratio,
        softirq_ratio: cpu.softirq_ratio,
        irq_ratio: cpu.irq_ratio,
        steal_ratio: cpu.steal_ratio,
        idle_ratio: cpu.idle_ratio,
        net_softirq_ratio: net,
        processed_pps: softnet("processed"),
        squeezed_per_s: softnet("time_squeeze"),
        dropped_pps: softnet("dropped"),
        busiest_task: busiest(window, number),
    }
}

fn busiest(window: &Window<'_>, cpu: u32) -> String {
    if let Ok(seen) = window.seen {
        return seen.busiest.get(&cpu).cloned().unwrap_or_default();
    }
    let usage = window.used.usage.as_ref();
    let first = usage.and_then(|usage| usage.foreign_on(cpu, &[]).next());
    first.map_or_else(String::new, |thread| format!("{} ({})", thread.comm, thread.tid))
}
