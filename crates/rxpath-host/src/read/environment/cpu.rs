//! The CPUs: model, topology, mitigations, frequency, idle states, clock.

use rxpath_core::Fact;
use serde_json::{Map, Value, json};

use super::Facts;
use crate::error::parts_of;
use crate::read::procfs::cpuinfo;
use crate::read::{ntp, thread, topology};

const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn collect(facts: &mut Facts<'_>) {
    let info = facts.root.parsed(cpuinfo::PATH, cpuinfo::parse);
    let info = parts_of(&info);
    let model = info.clone().and_then(|info| Fact::of(info.model(), "not in /proc/cpuinfo"));
    facts.put("cpu.model", model);
    facts.put("cpu.count", info.clone().map(|info| info.cpus));
    // The flag is x86's; other architectures don't say it here.
    let guest = info.and_then(|info| {
        let is_guest = info.first.contains_key("flags").then(|| info.has("hypervisor"));
        Fact::of(is_guest, "this architecture's /proc/cpuinfo does not tell")
    });
    facts.put("virtualization.guest", guest);
    facts.result("cpu.online", facts.root.cpus(&format!("{CPU}/online")));
    facts.live("cpu.allowed", thread::allowed_cpus);
    let topology = topology::read(facts.root);
    let cores = parts_of(&topology)
        .and_then(|topology| Fact::of(topology.cores(), "a CPU does not tell its siblings"));
    facts.put("cpu.cores", cores);
    facts.result("cpu.topology", topology);
    facts.text("cpu.smt", &format!("{CPU}/smt/control"));
    facts.text("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    facts.text(
        "clock.available",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    );
    let root = facts.root;
    facts.live(ntp::FACT, || ntp::read(root));
    files(facts, "cpu.mitigations", &format!("{CPU}/vulnerabilities"));
    frequency(facts);
    idle(facts);
}

/// Every file of a directory by name.
fn files(facts: &mut Facts<'_>, name: &str, dir: &str) {
    let listed = facts.root.list(dir).map(|names| {
        let entries = names.into_iter().filter_map(|file| {
            let text = facts.root.value(&format!("{dir}/{file}")).ok()?;
            Some((file, Value::from(text)))
        });
        entries.collect::<Map<String, Value>>()
    });
    facts.result(name, listed);
}

fn frequency(facts: &mut Facts<'_>) {
    let dir = format!("{CPU}/cpufreq");
    let policies = facts.root.list(&dir).unwrap_or_default();
    let policies: Vec<&String> =
        policies.iter().filter(|name| name.starts_with("policy")).collect();
    if policies.is_empty() {
        let why = "no cpufreq policies: the hypervisor or firmware sets the frequency";
        facts.put("cpu.frequency", Fact::<()>::absent(why));
    } else {
        let attributes = [
            "scaling_driver",
            "scaling_governor",
            "energy_performance_preference",
            "scaling_min_freq",
            "scaling_max_freq",
        ];
        let all: Map<String, Value> = policies
            .into_iter()
            .map(|policy| {
                let of = attributes.iter().filter_map(|name| {
                    let value = facts.root.value(&format!("{dir}/{policy}/{name}")).ok()?;
                    Some(((*name).to_owned(), Value::from(value)))
                });
                (policy.clone(), Value::Object(of.collect()))
            })
            .collect();
        facts.put("cpu.frequency", Fact::ok(all));
    }
    let turbo = facts
        .root
        .number::<u8>(&format!("{CPU}/intel_pstate/no_turbo"))
        .map(|off| off == 0)
        .or_else(|_| facts.root.number::<u8>(&format!("{dir}/boost")).map(|on| on == 1));
    facts.result("cpu.turbo", turbo);
}

fn idle(facts: &mut Facts<'_>) {
    facts.text("cpu.idle.driver", &format!("{CPU}/cpuidle/current_driver"));
    facts.text("cpu.idle.governor", &format!("{CPU}/cpuidle/current_governor"));
    let dir = format!("{CPU}/cpu0/cpuidle");
    let states = facts.root.list(&dir).map(|names| {
        let states = names.iter().filter(|name| name.starts_with("state")).map(|state| {
            let of = |file: &str| facts.root.value(&format!("{dir}/{state}/{file}")).ok();
            json!({
                "name": of("name"),
                "exit_latency_us": of("latency").and_then(|text| text.parse::<u64>().ok()),
                "disabled": of("disable").map(|text| text != "0"),
            })
        });
        states.collect::<Vec<_>>()
    });
    facts.result("cpu.idle.states", states);
}
