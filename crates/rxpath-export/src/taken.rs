//! Who pays for networking and interrupts: programs, victims by their control group, and the devices that took the time.
//!
//! Each family has a bounded number of rows, and `other` has the rest, so that the rows of each add up to the same total.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::IntoMap;
use rxpath_record::watch::{PollSizes, PortName, TakenTime, TaskRow, VictimName, WindowTotals};

use crate::families::{
    DEFERRED, DEVICE_STOLEN, FLOW_STOLEN, Families, LIMITED_SERIES, POLLS, SOFTIRQ_CPU, STOLEN,
    VICTIM_STOLEN,
};
use crate::frame::OTHER;

/// Who had no series of their own.
const NOBODY: &str = OTHER;
/// Local ports that the kernel chose.
const EPHEMERAL: &str = "ephemeral";
/// Threads that networking runs in, as `steal` names them.
const OWN_THREADS: [&str; 2] = ["ksoftirqd", "napi"];
/// Who takes time from a program.
const TAKERS: [&str; 3] = ["network", "irq_entry", OTHER];

fn port_label(port: u16) -> String {
    if port == 0 { EPHEMERAL.to_owned() } else { port.to_string() }
}

impl Families {
    /// The programs of a window of this length. What rows do not have, of all that was taken, is `other`.
    pub(crate) fn tasks(
        &mut self,
        rows: &[TaskRow],
        totals: &WindowTotals,
        (window_s, name_of): (f64, impl Fn(u32) -> Option<String>),
    ) {
        let mut network: BTreeMap<String, f64> = BTreeMap::new();
        // Entry and exit of interrupts, and what is neither that nor network.
        let mut others: BTreeMap<String, [f64; 2]> = BTreeMap::new();
        for row in rows {
            let (Some(taken), Some(by_network)) =
                (row.taken_ratio.value(), row.taken_net_ratio.value())
            else {
                continue;
            };
            let name = name_of(row.process).unwrap_or_else(|| row.comm.clone());
            *network.entry(name.clone()).or_default() += by_network * window_s;
            let by_entry = row.irq_entry_ratio.value().copied().unwrap_or(0.0);
            let others = others.entry(name).or_default();
            others[0] += by_entry * window_s;
            others[1] += (taken - by_network - by_entry).max(0.0) * window_s;
        }
        let taken = totals.taken();
        let (network_s, entry_s) = (taken.network_s, taken.irq_entry_s);
        let mut rest_s = [network_s, entry_s, taken.sum_s() - network_s - entry_s];
        // A series of that name is the rest, which must not end with a program.
        network.remove(OTHER);
        let turn = self.tasks.turn(network, window_s);
        self.add(LIMITED_SERIES, &[STOLEN], turn.refused.into());
        let parts = |name: &str, seconds: [f64; 3]| {
            for (by, seconds) in TAKERS.into_iter().zip(seconds) {
                self.add(STOLEN, &[name, by], seconds);
            }
        };
        for name in &turn.removed {
            for by in TAKERS {
                self.remove(STOLEN, &[name, by]);
            }
        }
        turn.admitted.iter().for_each(|name| parts(name, [0.0; 3]));
        for (name, network_s) in &turn.own {
            let [entry_s, others_s] = others.get(name).copied().unwrap_or_default();
            let own_s = [*network_s, entry_s, others_s];
            rest_s.iter_mut().zip(own_s).for_each(|(rest, own)| *rest -= own);
            parts(name, own_s);
        }
        parts(NOBODY, rest_s);
    }

    /// By service, pod, container or user.
    pub(crate) fn victims(&mut self, totals: &WindowTotals, window_s: f64) {
        let named = totals.victims.iter().filter(|((kind, _), _)| *kind != OTHER);
        let amounts = named.map(|(name, time)| (name.clone(), time.sum_s())).into_map();
        let turn = self.victims.turn(amounts, window_s);
        self.add(LIMITED_SERIES, &[VICTIM_STOLEN], turn.refused.into());
        let parts = |(kind, name): &VictimName, time: TakenTime| {
            for (by, seconds) in time.parts() {
                self.add(VICTIM_STOLEN, &[kind, name, by], seconds);
            }
        };
        for (kind, name) in &turn.removed {
            for (by, _) in TakenTime::default().parts() {
                self.remove(VICTIM_STOLEN, &[kind, name, by]);
            }
        }
        turn.admitted.iter().for_each(|victim| parts(victim, TakenTime::default()));
        let mut rest = totals.victims.clone();
        for (victim, _) in &turn.own {
            parts(victim, rest.remove(victim).unwrap_or_default());
        }
        let rest = WindowTotals { victims: rest, ..WindowTotals::default() };
        parts(&(OTHER, NOBODY.to_owned()), rest.taken());
    }

    /// By device. `other` has those without a series, and what softirqs spent between polls.
    pub(crate) fn devices(&mut self, totals: &WindowTotals, window_s: f64) {
        let named = totals.devices_s.iter().filter(|(device, _)| *device != OTHER);
        let named = named.map(|(device, seconds)| (device.clone(), *seconds));
        let turn = self.devices.turn(named.into_map(), window_s);
        self.own_series(DEVICE_STOLEN, &turn, |device| [device.clone()]);
        let all_s = totals.taken().network_s;
        let rest_s = turn.own.iter().fold(all_s, |rest_s, (_, own_s)| rest_s - own_s);
        self.add(DEVICE_STOLEN, &[OTHER], rest_s);
    }

    /// By protocol and local port. `other` has those without a series, and packets that reached no socket.
    pub(crate) fn flows(&mut self, totals: &WindowTotals, window_s: f64) {
        let turn = self.ports.turn(totals.flows_s.clone(), window_s);
        let labels = |(protocol, port): &PortName| [(*protocol).to_owned(), port_label(*port)];
        self.own_series(FLOW_STOLEN, &turn, labels);
        let all_s = totals.taken().network_s;
        let rest_s = turn.own.iter().fold(all_s, |rest_s, (_, own_s)| rest_s - own_s);
        self.add(FLOW_STOLEN, &[OTHER, NOBODY], rest_s);
    }

    /// CPU time of network softirqs, taken from somebody or not.
    pub(crate) fn vectors(&self, totals: &WindowTotals) {
        for (vector, seconds) in &totals.softirqs_s {
            self.add(SOFTIRQ_CPU, &[vector], *seconds);
        }
    }

    /// CPU time of networking's own threads.
    pub(crate) fn deferred(&self, totals: &WindowTotals) {
        for kind in OWN_THREADS {
            let seconds = totals.deferred_s.get(kind).copied().unwrap_or(0.0);
            self.add(DEFERRED, &[kind], seconds);
        }
    }

    /// Packets of polls by device; `other` has the devices without a series.
    pub(crate) fn polls(&mut self, totals: &WindowTotals, window_s: f64) {
        let count = |sizes: &PollSizes| sizes.packets_per_poll.count() as f64;
        let named = totals.polls.iter().filter(|(device, _)| *device != OTHER);
        let counts = named.map(|(device, sizes)| (device.clone(), count(sizes)));
        let turn = self.polled.turn(counts.into_map(), window_s);
        self.add(LIMITED_SERIES, &[POLLS], turn.refused.into());
        let Some(family) = self.histograms.get(POLLS) else { return };
        for device in &turn.removed {
            family.remove(device);
        }
        let empty = PollSizes::default();
        let begin = |device: &str| family.add(device, &empty.packets_per_poll, 0.0);
        begin(NOBODY);
        turn.admitted.iter().for_each(|device| begin(device));
        let own: BTreeSet<&String> = turn.own.iter().map(|(device, _)| device).collect();
        for (device, sizes) in &totals.polls {
            let row = if own.contains(device) { device.as_str() } else { NOBODY };
            family.add(row, &sizes.packets_per_poll, sizes.packets as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::{Fact, Log2};

    use super::*;

    #[test]
    fn what_is_named_as_the_rest_is_a_part_of_it() {
        let mut families = Families::new("1", 1).unwrap();
        let row = TaskRow {
            taken_ratio: Fact::ok(0.5),
            taken_net_ratio: Fact::ok(0.5),
            ..TaskRow::default()
        };
        let taken = TakenTime { network_s: 1.0, ..TakenTime::default() };
        let sizes = PollSizes { packets_per_poll: Log2::of(&[0, 1]), packets: 1 };
        let totals = WindowTotals {
            victims: [((OTHER, OTHER.to_owned()), taken)].into(),
            devices_s: [(OTHER.to_owned(), 0.5)].into(),
            polls: [(OTHER.to_owned(), sizes)].into(),
            ..WindowTotals::default()
        };
        for _ in 0..3 {
            families.tasks(std::slice::from_ref(&row), &totals, (1.0, |_| Some(OTHER.to_owned())));
            families.devices(&totals, 1.0);
            families.flows(&totals, 1.0);
            families.polls(&totals, 1.0);
        }
        let text = families.text().unwrap();
        for line in [
            "rxpath_task_cpu_stolen_seconds_total{by=\"network\",task=\"other\"} 3",
            "rxpath_device_cpu_stolen_seconds_total{device=\"other\"} 3",
            "rxpath_flow_cpu_stolen_seconds_total{port=\"other\",protocol=\"other\"} 3",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
        for top in [&mut families.tasks, &mut families.devices, &mut families.polled] {
            let turn = top.turn([(OTHER.to_owned(), 1.0)].into(), 1.0);
            assert!(turn.own.is_empty(), "{turn:?}");
        }
    }

    #[test]
    fn the_entry_of_interrupts_is_a_part_of_its_own_in_both_sums() {
        let mut families = Families::new("1", 1).unwrap();
        let row = TaskRow {
            comm: "sh".into(),
            taken_ratio: Fact::ok(0.875),
            taken_net_ratio: Fact::ok(0.5),
            irq_entry_ratio: Fact::ok(0.25),
            ..TaskRow::default()
        };
        let taken =
            TakenTime { network_s: 1.0, irq_entry_s: 0.5, hardirq_s: 0.25, ..TakenTime::default() };
        let totals = WindowTotals {
            victims: [(("unit", "a.service".to_owned()), taken)].into(),
            ..WindowTotals::default()
        };
        for _ in 0..3 {
            families.tasks(std::slice::from_ref(&row), &totals, (2.0, |_| None));
            families.victims(&totals, 2.0);
        }
        let text = families.text().unwrap();
        // Two windows before their admission went to the others.
        for (series, seconds) in [
            ("task_cpu_stolen_seconds_total{by=\"irq_entry\",task=\"sh\"}", "0.5"),
            ("task_cpu_stolen_seconds_total{by=\"irq_entry\",task=\"other\"}", "1"),
            ("task_cpu_stolen_seconds_total{by=\"other\",task=\"sh\"}", "0.25"),
            ("task_cpu_stolen_seconds_total{by=\"other\",task=\"other\"}", "0.5"),
            (
                "cpu_stolen_seconds_total{by=\"irq_entry\",victim=\"a.service\",victim_kind=\"unit\"}",
                "0.5",
            ),
            (
                "cpu_stolen_seconds_total{by=\"irq_entry\",victim=\"other\",victim_kind=\"other\"}",
                "1",
            ),
        ] {
            let line = format!("rxpath_{series} {seconds}");
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }

    #[test]
    fn the_time_of_all_ports_is_that_of_all_victims() {
        let mut families = Families::new("1", 1).unwrap();
        let taken = TakenTime { network_s: 1.0, ..TakenTime::default() };
        let totals = WindowTotals {
            victims: [(("unit", "a.service".to_owned()), taken)].into(),
            flows_s: [(("udp", 53), 0.5), (("tcp", 0), 0.25)].into(),
            ..WindowTotals::default()
        };
        (0..3).for_each(|_| families.flows(&totals, 1.0));
        let text = families.text().unwrap();
        // Two windows before their admission went to the others.
        for (labels, seconds) in [
            ("port=\"53\",protocol=\"udp\"", "0.5"),
            ("port=\"ephemeral\",protocol=\"tcp\"", "0.25"),
            ("port=\"other\",protocol=\"other\"", "2.25"),
        ] {
            let line = format!("rxpath_flow_cpu_stolen_seconds_total{{{labels}}} {seconds}");
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }
}
