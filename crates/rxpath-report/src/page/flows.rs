//! Which CPU took each flow: the distribution by RPS.

use std::collections::BTreeMap;

use rxpath_record::manifest::{FlowCpu, Trial};

use crate::prelude::*;

/// The section: nothing when no trial knows the CPUs of its flows.
pub(super) fn section(run: &Run) -> Option<Section> {
    let mut counts = Table::new("variant | #flows | flows on each CPU | #share of the fullest CPU");
    let mut each = Table::new("variant | from | to | CPU");
    // The hash stays the same until a reboot: one trial of a variant stands for all.
    let mut first: BTreeMap<&str, &Trial> = BTreeMap::new();
    for trial in run.manifest.trials.iter().filter(|trial| !trial.flow_cpus.is_empty()) {
        first.entry(&trial.variant).or_insert(trial);
    }
    for (variant, trial) in first {
        counts.rows.push(counted(variant, &trial.flow_cpus));
        for flow in &trial.flow_cpus {
            let cpu = flow.cpu.map_or("the probe did not arrive".into(), |cpu| cpu.to_string());
            each.rows.push(vec![variant.into(), flow.from.to_string(), flow.to.to_string(), cpu]);
        }
    }
    (!counts.rows.is_empty()).then(|| Section {
        id: "flows",
        title: "Where the flows landed",
        lead: "The CPU on which the receive softirq of each flow ran, seen with one datagram per flow before the load.",
        body: html! {
            (table(&counts, "Flows on each CPU"))
            (fold("Every flow", &table(&each, "Every flow")))
        },
    })
}

fn counted(variant: &str, flows: &[FlowCpu]) -> Vec<String> {
    let mut by_cpu: BTreeMap<u32, usize> = BTreeMap::new();
    for cpu in flows.iter().filter_map(|flow| flow.cpu) {
        *by_cpu.entry(cpu).or_default() += 1;
    }
    let words: Vec<String> = by_cpu.iter().map(|(cpu, n)| format!("CPU {cpu}: {n}")).collect();
    let most = by_cpu.values().max().copied().unwrap_or(0);
    vec![
        variant.into(),
        flows.len().to_string(),
        words.join(", "),
        number::percent(most as f64, flows.len() as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_counted_by_cpu() {
        let flow = |port: u16, cpu| FlowCpu {
            from: ([198, 18, 0, 1], port).into(),
            to: ([198, 18, 1, 2], 4321).into(),
            cpu,
        };
        let flows = [flow(1, Some(0)), flow(2, Some(1)), flow(3, Some(1)), flow(4, None)];
        assert_eq!(counted("v", &flows), ["v", "4", "CPU 0: 1, CPU 1: 2", "50.0 %"]);
    }
}
