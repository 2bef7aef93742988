//! What is read of real drivers: queue to interrupt to CPU, counters of each queue, both ways to ask a driver,
//! connection tracking, and the guard before the link that carries an ssh session.

use std::path::Path;

use rxpath_core::CpuList;
use serde_json::Value;

use super::readers;
use super::{Machine, NICS, run, skip};

/// The parts of an output that begin with a line `@@NAME`.
pub fn part<'a>(out: &'a str, name: &str) -> &'a str {
    let begin = format!("@@{name}\n");
    let (_, rest) = out.split_once(&begin).unwrap_or_else(|| panic!("no part {name}: {out}"));
    rest.split_once("\n@@").map_or(rest, |(part, _)| part)
}

pub fn json(out: &str, name: &str) -> Value {
    let text = part(out, name);
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

/// Every NIC but the one without a peer is asked for something, so that its queues count.
const MAKE_TRAFFIC: &str = "for at in /sys/class/net/*/device/driver; do \
    dev=${at#/sys/class/net/}; dev=${dev%%/*}; \
    case $(readlink $at) in *virtio_net) continue;; esac; \
    ip addr add 10.0.2.15/24 dev $dev; \
    tries=0; until arping -q -c 1 -w 2 -I $dev 10.0.2.2 || [ $tries -ge 20 ]; do tries=$((tries + 1)); done; \
    ip addr del 10.0.2.15/24 dev $dev; done";

fn of_driver<'a>(devices: &'a [Value], driver: &str) -> &'a Value {
    let found = devices.iter().find(|device| device["driver"]["value"] == driver);
    found.unwrap_or_else(|| panic!("no device of {driver}: {devices:?}"))
}

/// What a driver is expected to have: queues, the end of its receive interrupts' names, who counts.
struct Expected {
    driver: &'static str,
    queues: usize,
    irq_name: &'static str,
    counted_by: &'static str,
}

const DRIVER: &str = "driver's statistics";

/// QEMU gives igb 8 pairs of queues and as many vectors; the drivers take one for each of the 2 CPUs.
const EXPECTED: [Expected; 5] = [
    Expected { driver: "igb", queues: 2, irq_name: "-rx-QUEUE", counted_by: DRIVER },
    Expected { driver: "e1000e", queues: 1, irq_name: "-rx-QUEUE", counted_by: DRIVER },
    Expected { driver: "e1000", queues: 1, irq_name: "", counted_by: DRIVER },
    Expected {
        driver: "virtio_net",
        queues: 2,
        irq_name: "-input.QUEUE",
        counted_by: "kernel's queue statistics, drops: driver's statistics",
    },
    Expected { driver: "vmxnet3", queues: 2, irq_name: "-rxtx-QUEUE", counted_by: DRIVER },
];

/// Each queue has the interrupt that serves it, on a CPU that is here, and what it counted.
fn assert_mapped(devices: &[Value], expected: &Expected, interrupts: &str) {
    let driver = expected.driver;
    let device = of_driver(devices, driver);
    assert_eq!(device["counters"]["value"], expected.counted_by, "{device}");
    let rows = device["rows"].as_array().unwrap();
    assert_eq!(rows.len(), expected.queues, "{device}");
    let mut irqs = Vec::new();
    for (queue, row) in rows.iter().enumerate() {
        let irq = &row["irq"]["value"];
        let name = irq["name"].as_str().unwrap_or_else(|| panic!("{driver}: {row}"));
        let end = expected.irq_name.replace("QUEUE", &queue.to_string());
        assert!(name.ends_with(&end), "{driver}: {row}");
        let line = format!("{}:", irq["irq"]);
        let line = interrupts.lines().find(|text| text.trim_start().starts_with(&line));
        assert!(line.is_some_and(|line| line.trim_end().ends_with(name)), "{line:?}: {row}");
        irqs.push(irq["irq"].as_u64().unwrap_or_else(|| panic!("{driver}: {row}")));
        let cpus: CpuList = irq["effective_cpus"]["value"].as_str().unwrap().parse().unwrap();
        assert!(!cpus.as_slice().is_empty() && cpus.as_slice().iter().all(|cpu| *cpu < 2), "{row}");
        assert!(irq["nodes"]["value"].is_array() || irq["nodes"]["why"].is_string(), "{row}");
    }
    let all = irqs.len();
    irqs.sort_unstable();
    irqs.dedup();
    assert_eq!(irqs.len(), all, "{driver}: a vector for each queue: {device}");
    for row in rows {
        assert!(row["packets_total"]["value"].is_u64(), "{driver}: {row}");
    }
    let received: u64 = rows.iter().filter_map(|row| row["packets_total"]["value"].as_u64()).sum();
    assert!(driver == "virtio_net" || received > 0, "{driver} counted nothing: {device}");
}

#[test]
fn queues_of_real_drivers_have_interrupts_cpus_and_counters() {
    let machine = Machine { kernel: "6.12", nics: NICS, ..Machine::default() };
    let script = format!(
        "{MAKE_TRAFFIC}; echo @@queues; rxpath check --queues --json 2>/dev/null; \
         echo @@check; rxpath check --json 2>/dev/null; echo @@interrupts; cat /proc/interrupts"
    );
    let Some(out) = run(machine, &["sh", "-c", &script]) else { return };
    let found = json(&out, "queues");
    let devices = found["result"]["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 5, "{found}");
    for expected in &EXPECTED {
        assert_mapped(devices, expected, part(&out, "interrupts"));
    }
    let check = json(&out, "check");
    let lines = check["result"]["nics"].as_array().unwrap();
    for driver in NICS.split(' ') {
        assert!(lines.iter().any(|line| line["driver"] == driver), "{driver}: {lines:?}");
    }
    // A rule about devices has been asked of each of them: the driver is recorded with its name.
    let records = check["result"]["records"].as_array().unwrap();
    let named: Vec<_> = records.iter().filter(|one| one["id"] == "nic-driver-fw").collect();
    assert_eq!(named.len(), 5, "{records:?}");
    assert!(!check["result"]["findings"].as_array().unwrap().is_empty(), "{check}");
}

/// On this host, and inside the rig by the test below.
#[test]
fn both_ways_to_ask_agree_here() {
    for dev in readers::lasting() {
        let driver = std::fs::read_link(format!("/sys/class/net/{dev}/device/driver"));
        let driver = driver.ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let topics = readers::agree(&dev);
        assert!(topics.contains(&"features"), "{dev}: {topics:?}");
        println!("@agree {} {}", driver.as_deref().unwrap_or("none"), topics.join(" "));
    }
}

#[test]
fn both_ways_to_ask_agree_on_real_drivers() {
    let itself = std::env::current_exe().unwrap();
    let add = format!("{}:/bin/rig-tests", itself.display());
    for kernel in ["6.12", "6.1"] {
        let machine = Machine { kernel, nics: NICS, adds: &[&add], ..Machine::default() };
        let words = ["rig-tests", "reading::both_ways_to_ask_agree_here", "--exact", "--nocapture"];
        let Some(out) = run(machine, &words) else { return };
        let topics = |driver: &str| {
            let head = format!("@agree {driver} ");
            let line = out.lines().find_map(|line| line.split_once(&head).map(|(_, rest)| rest));
            line.unwrap_or_else(|| panic!("{kernel} {driver}: {out}"))
                .split(' ')
                .collect::<Vec<_>>()
        };
        for (driver, has) in [
            ("igb", &["rings", "channels", "coalesce", "pause", "private-flags", "link-modes"][..]),
            ("e1000e", &["rings", "coalesce", "pause", "link-modes"]),
            ("e1000", &["rings", "pause", "link-modes"]),
            ("virtio_net", &["rings", "channels", "coalesce", "link-modes"]),
            ("vmxnet3", &["rings", "channels", "link-modes"]),
        ] {
            let found = topics(driver);
            for topic in has {
                assert!(found.contains(topic), "{kernel} {driver} {topic}: {found:?}");
            }
        }
    }
}

#[test]
fn connection_tracking_is_read_where_its_module_is_loaded() {
    const NFT: &str = "/usr/sbin/nft";
    if !Path::new(NFT).exists() {
        return skip::skip("rig", "needs nft, to have connections tracked");
    }
    let machine = Machine {
        kernel: "6.12",
        nics: "e1000",
        modules: "crc32c_generic nf_tables nf_conntrack nf_conntrack_netlink nft_ct",
        adds: &[NFT],
        ..Machine::default()
    };
    // One flow of the machine's own.
    let rules = "add table inet t; add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c ct state established,new accept";
    let script = format!(
        "ip link set lo up; nft '{rules}' && ping -c 1 127.0.0.1 >/dev/null; \
         echo @@check; rxpath check --all --json --goal benchmark 2>/dev/null; \
         rxpath capture /tmp/host >/dev/null 2>&1; echo @@host; cat /tmp/host/netlink/host.json"
    );
    let Some(out) = run(machine, &["sh", "-c", &script]) else { return };
    let check = json(&out, "check");
    let named = |part: &str, id: &str| {
        let all = check["result"][part].as_array().unwrap();
        all.iter().find(|one| one["id"] == id).cloned()
    };
    let active = named("findings", "conntrack-active").unwrap_or_else(|| panic!("{check}"));
    assert!(active["observed"].as_str().unwrap().contains("flows are tracked"), "{active}");
    let sizing = named("fine", "conntrack-sizing").unwrap_or_else(|| panic!("{check}"));
    assert!(sizing["text"].as_str().unwrap().contains("of at most"), "{sizing}");
    let host = json(&out, "host");
    let counted = &host["conntrack"]["value"];
    assert!(counted["entries_count"].as_u64() > Some(0), "{host}");
    assert!(counted["entries_max"].as_u64() > Some(0), "{host}");
}

/// The link of igb goes down while its rings are changed: not under the person who asks for it.
#[test]
fn the_link_that_carries_the_session_is_not_taken_down_unless_forced() {
    let machine = Machine { kernel: "6.12", nics: "igb", ..Machine::default() };
    let script = "dev=$(basename $(ls -d /sys/class/net/*/device | head -n 1 | xargs dirname)); \
        ip addr add 10.77.0.2/24 dev $dev; \
        rings() { rxpath tune plan --set $dev/rings/rx=512 -o /tmp/again.toml >/dev/null 2>&1; \
        grep -c '^..step' /tmp/again.toml; }; \
        rxpath tune plan --set $dev/rings/rx=512 -o /tmp/plan.toml >/dev/null 2>&1; \
        echo @@plan; cat /tmp/plan.toml; \
        export SSH_CONNECTION='10.77.0.9 50000 10.77.0.2 22'; \
        echo @@refused; rxpath tune apply /tmp/plan.toml 2>&1; echo status $?; \
        echo @@still; rings; \
        echo @@elsewhere; SSH_CONNECTION='127.0.0.1 50000 127.0.0.1 22' rxpath tune apply /tmp/plan.toml 2>&1; \
        echo status $?; \
        echo @@applied; rings; rxpath tune undo >/dev/null 2>&1; \
        echo @@forced; rxpath tune apply --force /tmp/plan.toml 2>&1; echo status $?; \
        echo @@end; SSH_CONNECTION= rxpath tune undo >/dev/null 2>&1; true";
    let Some(out) = run(machine, &["sh", "-c", script]) else { return };
    let plan = part(&out, "plan");
    assert!(plan.contains("link-bounce"), "{plan}");
    let refused = part(&out, "refused");
    assert!(refused.contains("your ssh session from 10.77.0.9 runs over it"), "{refused}");
    assert!(refused.contains("--force") && refused.contains("status 2"), "{refused}");
    assert_ne!(part(&out, "still").trim(), "0", "nothing was changed: {out}");
    assert!(part(&out, "elsewhere").contains("status 0"), "{out}");
    assert_eq!(part(&out, "applied").trim(), "0", "there is nothing left to plan: {out}");
    assert!(part(&out, "forced").contains("status 0"), "{out}");
}
