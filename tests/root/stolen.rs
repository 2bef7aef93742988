//! The bundled scenarios of stolen time, short: whose work it was, that the rows make the CPUs' time and nothing is in
//! them twice, where steered packets landed. Nothing here is a time or a rate: those parts are in `make bench`.

use std::collections::BTreeSet;

use rxpath_core::Division;
use rxpath_core::measured::TaskKind;
use rxpath_host::read::thread;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::stolen::{StolenCpuTime, VictimRecord};

use crate::bed::tried;
use crate::bundled::{SMALLEST, holds};
use crate::experiment::run_bundled;
use crate::flows::are_seen;
use crate::skip::skip;

fn can_run() -> bool {
    if !crate::bed::may_run() {
        return false;
    }
    let bpf = rxpath_bpf::can_run(&rxpath_host::Root::host());
    if let Err(reason) = bpf.require("load BPF programs") {
        skip("bpf_programs", &reason.to_string());
        return false;
    }
    if thread::allowed_cpus().unwrap().0.len() < 2 {
        skip("second_cpu", "one CPU: there is none to steer to");
        return false;
    }
    true
}

pub fn run(scenario: &str) -> Option<Manifest> {
    // What is asserted here does not depend on the cost of an interrupt. Something is delivered in the window on a busy machine too.
    let sets = [&SMALLEST[..], &["observe.irq_entry=3us", "trials.measure=1s"]].concat();
    run_with(scenario, &sets)
}

fn run_with(scenario: &str, sets: &[&str]) -> Option<Manifest> {
    // What was not delivered in a window has no cost: a sender may have no CPU in one. These two send next to nothing.
    let is_light = ["steal-idle", "steal-openssl"].contains(&scenario);
    let is_moving = |trial: &Trial| is_light || trial.evidence.delivered_pps > 0.0;
    let is_whole =
        |manifest: &Manifest| manifest.trials.iter().all(is_moving) && are_seen(&manifest.trials);
    can_run().then(|| tried(|| run_bundled(scenario, sets), is_whole)).inspect(|manifest| {
        holds(manifest);
        manifest.trials.iter().for_each(adds_up);
    })
}

pub fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

pub fn whole(parts: &Division) -> bool {
    near(parts.sum_s(), parts.on_cpu_s) && parts.own_s > -1e-9
}

fn stolen(trial: &Trial) -> &StolenCpuTime {
    trial.stolen.as_ref().unwrap_or_else(|| panic!("{} has no stolen time", trial.variant))
}

pub fn victim(trial: &Trial) -> &VictimRecord {
    stolen(trial).victim.as_ref().unwrap_or_else(|| panic!("{} has no victim", trial.variant))
}

/// The parts of every row make its time, the rows of a CPU its window, the tasks the CPUs; the victim's row is its own.
fn adds_up(trial: &Trial) {
    let seen = stolen(trial);
    for task in &seen.tasks {
        assert!(whole(&task.time), "{}: {task:?}", trial.variant);
    }
    for cpu in seen.cpus.iter().map(|cpu| &cpu.row) {
        assert!(whole(&cpu.time), "{}: {cpu:?}", trial.variant);
        assert!(near(cpu.time.on_cpu_s + cpu.lost_s, cpu.window_s), "{}: {cpu:?}", trial.variant);
    }
    let tasks: f64 = seen.tasks.iter().map(|task| task.time.on_cpu_s).sum();
    let cpus: f64 = seen.cpus.iter().map(|cpu| cpu.row.time.on_cpu_s).sum();
    assert!(near(tasks, cpus), "{}: {tasks} of tasks, {cpus} of CPUs", trial.variant);
    assert!(seen.probe.runs_count > 0 && seen.probe.map_bytes > 0, "{:?}", seen.probe);
    let victim = victim(trial);
    assert!(whole(&victim.row.time), "{}: {victim:?}", trial.variant);
    let window = (trial.window_ns[1] - trial.window_ns[0]) as f64 / 1e9;
    assert!(victim.row.asked_s <= window + 1e-3 && victim.row.asked_s > 0.0, "{victim:?}");
    let row = seen.tasks.iter().find(|task| task.pid == victim.tid).unwrap();
    // It begins where the kernel starts it, and pins itself.
    assert!(row.cpus.contains(&victim.cpu), "{row:?}");
    if victim.command.is_empty() {
        assert_eq!(row.comm, "rxpath-victim");
        assert!(victim.row.time.own_softirq_s < own_softirq_most_s(), "{victim:?}");
    }
    let net = victim.row.time.net_rx_s + victim.row.time.net_tx_s;
    assert!(victim.row.time.certain_s <= net + 1e-9, "{victim:?}");
    for metric in ["victim_got_ratio", "victim_taken_ratio"] {
        assert!(trial.metrics.contains_key(metric), "{metric}: {:?}", trial.metrics);
    }
    // What was not delivered in the window has no cost.
    let moved = trial.evidence.delivered_pps > 0.0;
    assert_eq!(trial.metrics.contains_key("network_cpu_s_per_mpacket"), moved, "{trial:?}");
}

/// Less than softirqs take that the built-in victim raises: its start and its end are calls, which may raise one, of up to
/// `net.core.netdev_budget_usecs` and the poll that passes it; the loop raises none.
pub fn own_softirq_most_s() -> f64 {
    // Other network namespaces than the first do not show it; by default it is two ticks (net/core/dev.c), of 4 ms mostly.
    let budget = std::fs::read_to_string("/proc/sys/net/core/netdev_budget_usecs");
    let budget_us = budget.map_or(8_000.0, |text| text.trim().parse::<f64>().unwrap());
    2.0 * (budget_us / 1e6 + 1e-3)
}

pub fn trial<'m>(manifest: &'m Manifest, variant: &str) -> &'m Trial {
    manifest.trials.iter().find(|trial| trial.variant == variant).unwrap()
}

/// Packets that the softirqs of the victim's CPU handled.
fn landed(trial: &Trial) -> u64 {
    let cpu = victim(trial).cpu;
    let found = stolen(trial).cpus.iter().find(|found| found.row.cpu == cpu).unwrap();
    found.landed_packets.unwrap()
}

#[test]
fn an_idle_cpu_is_its_victims() {
    let Some(manifest) = run("steal-idle") else { return };
    assert_eq!(manifest.main_metric, "victim_got_ratio");
    assert_eq!(manifest.trials.len(), 1);
    let cost = &stolen(&manifest.trials[0]).interrupt;
    assert!(near(cost.irq_entry_us, 3.0) && cost.source == "given", "{cost:?}");
}

#[test]
fn the_cost_of_an_interrupt_is_calibrated_unless_it_is_given() {
    let Some(manifest) = run_with("steal-idle", &SMALLEST) else { return };
    let cost = &stolen(&manifest.trials[0]).interrupt;
    // A CPU that others keep busy cannot be calibrated.
    let is_busy = cost.source.contains(" was too busy: ");
    let is_known = cost.irq_entry_us > 0.0 && cost.source.starts_with("measured");
    assert!(is_known != is_busy, "{cost:?}");
}

#[test]
fn streams_are_taken_from_the_task_on_the_cpu_that_they_were_steered_to() {
    let Some(manifest) = run("steal-streams") else { return };
    for variant in ["streams-1", "streams-8"] {
        let streams = trial(&manifest, variant);
        let victim = victim(streams);
        let backlog = victim.row.taken_by.iter().find(|by| by.dev == "backlog");
        let by_others = victim.deferred_s > 0.0;
        assert!(
            backlog.is_some_and(|by| by.packets > 0 && by.net_s > 0.0) || by_others,
            "{victim:?}"
        );
        assert!(landed(streams) > 0, "{:?}", stolen(streams).cpus);
        assert!(streams.metrics.contains_key("victim_taken_s_per_gbit"), "{:?}", streams.metrics);
    }
}

#[test]
fn steered_packets_land_where_they_were_steered() {
    let Some(manifest) = run("steal-isolation") else { return };
    let cpus = |variant: &str| -> BTreeSet<u32> {
        trial(&manifest, variant).flow_cpus.iter().filter_map(|flow| flow.cpu).collect()
    };
    let onto = trial(&manifest, "onto-victim");
    let here = victim(onto).cpu;
    assert_eq!(cpus("onto-victim"), [here].into());
    assert!(!cpus("away").contains(&here) && !cpus("away").is_empty());
    let both = cpus("spread");
    assert!(both.len() == 2 && both.contains(&here), "16 flows on one of two CPUs: {both:?}");
    // Whatever else the machine received can only add.
    let window = (onto.window_ns[1] - onto.window_ns[0]) as f64 / 1e9;
    let delivered = onto.metrics["delivered_pps"] * window;
    assert!(landed(onto) as f64 >= 0.5 * delivered, "{} of {delivered}", landed(onto));
    let rule = manifest.variants.iter().find(|variant| variant.name == "flow-rule").unwrap();
    let why = rule.not_available.as_deref().unwrap();
    assert!(why.contains("veth") && why.contains("ethtool -N"), "{why}");
}

#[test]
fn ways_of_networking_are_compared_by_what_they_take() {
    let Some(manifest) = run("steal-compare") else { return };
    for variant in &manifest.variants {
        match &variant.not_available {
            Some(why) => assert!(why.contains("CONFIG_") || why.contains("not installed"), "{why}"),
            None => {
                for metric in ["victim_taken_s_per_gbit", "victim_taken_s_per_mpacket"] {
                    assert!(variant.metrics.contains_key(metric), "{metric}: {variant:?}");
                }
            }
        }
    }
    let there = |name: &str| {
        manifest.variants.iter().any(|it| it.name == name && it.not_available.is_none())
    };
    let pairs = [
        ("rps-off", "rps-on"),
        ("rps-on", "gro-on"),
        ("bridge", "macvlan"),
        ("iptables", "nft"),
        ("gro-on", "napi-threaded"),
    ];
    for (base, variant) in pairs.into_iter().filter(|(base, it)| there(base) && there(it)) {
        for metric in ["victim_taken_s_per_gbit", "victim_taken_s_per_mpacket"] {
            let compared = manifest.comparisons.iter().any(|it| {
                (it.base.as_str(), it.variant.as_str(), it.metric.as_str())
                    == (base, variant, metric)
            });
            assert!(compared, "{base} and {variant} by {metric}: {:?}", manifest.comparisons);
        }
    }
    assert!(there("rps-off") && there("rps-on") && there("gro-on"), "{:?}", manifest.variants);
    let threaded = trial(&manifest, "napi-threaded");
    let by_thread = stolen(threaded).tasks.iter().find(|task| task.kind == TaskKind::Napi);
    assert!(by_thread.is_some_and(|task| task.cpus == [victim(threaded).cpu]), "{by_thread:?}");
    assert!(victim(threaded).deferred_s > 0.0, "the thread's time is not theft, and is told");
}
