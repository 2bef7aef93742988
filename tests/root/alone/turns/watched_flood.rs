//! `watch` under a flood costs little, and says about the same as who counts all the time.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rxpath_bpf::cost::CostMeter;
use serde_json::Value;

use super::Flood;
use crate::alone::probes::{number, probe, rows};
use crate::bed::{Bed, RX_IP};

impl Flood {
    /// Its threads' rows, by the process that a frame or `steal` says.
    fn rows<'v>(&self, result: &'v Value, process: &str) -> Vec<&'v Value> {
        // `ip netns exec` becomes what it runs.
        rows(result, "tasks").iter().filter(|task| task[process] == self.0.id()).collect()
    }
}

/// Programs that a process holds.
fn programs(pid: u32) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let id = |text: String| {
        let is_link = text.lines().any(|line| line.starts_with("link_type:"));
        let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"));
        line.filter(|_| !is_link)?.trim().parse().ok()
    };
    let ids = entries.filter_map(|entry| id(std::fs::read_to_string(entry.ok()?.path()).ok()?));
    ids.map(|id: u32| (id, id.to_string())).collect()
}

/// What a sampled frame says of a sender, summed over frames: seconds that were counted, of them on the CPU, and of
/// these in softirqs.
#[derive(Debug, Default)]
struct Summed {
    counted_s: f64,
    on_cpu_s: f64,
    softirq_s: f64,
}

#[test]
fn a_flood_is_watched_for_a_hundredth_of_a_cpu_and_seen_as_it_is() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4901)).unwrap()).unwrap();
    let flood = Flood::start(&tx, 4901);
    let mut child = Command::new("ip")
        .args(["netns", "exec", rx.name(), env!("CARGO_BIN_EXE_rxpath")])
        .args(["watch", "--json", "--interval", "500ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    for _ in 0..5 {
        next();
    }
    let meter = CostMeter::start(programs(child.id())).unwrap();
    let mut summed = Summed::default();
    let mut packets = 0.0;
    let mut sampled = 0;
    for _ in 0..12 {
        let frame = next();
        let ip = rows(&frame, "stages").iter().find(|stage| stage["stage"] == "ip").unwrap();
        packets += ip["rate_per_s"]["value"].as_f64().unwrap() * number(&frame, "window_s");
        assert_plausible(&frame);
        let of = frame["sampled"].as_array();
        let tasks = of.and_then(|all| {
            all.iter().find(|one| one["what"].as_str().unwrap().starts_with("tasks"))
        });
        sampled += usize::from(tasks.is_some());
        // A frame that repeats an earlier sample adds nothing.
        if tasks.is_some_and(|tasks| number(tasks, "age_s") > 0.0) {
            continue;
        }
        let counted_s =
            number(tasks.unwrap_or(&frame), if tasks.is_some() { "counted_s" } else { "window_s" });
        summed.counted_s += counted_s;
        for task in flood.rows(&frame, "process") {
            let of = |key: &str| task[key]["value"].as_f64().unwrap();
            summed.on_cpu_s += counted_s * number(task, "on_cpu_ratio");
            summed.softirq_s += counted_s * (of("taken_net_ratio") + of("own_softirq_ratio"));
        }
    }
    let cost = meter.stop();
    let cpu_ratio = cost.run_time_s / cost.measured_s;
    assert!(packets / cost.measured_s > 20_000.0, "{packets} packets are no flood");
    assert!(sampled > 7, "{sampled} frames are sampled");
    assert!(cost.runs_count > 0 && cpu_ratio < 0.01, "{cpu_ratio} of a CPU: {cost:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let exact = exact_share(&flood);
    let seen = summed.softirq_s / summed.on_cpu_s;
    // In a turn more programs look at each packet than those of `steal`, and most of their time is in the softirq: some 0.3
    // of 3 us a packet. So what is seen is more than the exact share by up to a tenth, and by noise on top of it.
    assert!(
        (-0.1..0.15).contains(&(seen - exact)),
        "softirqs take {seen} of the sender, exactly {exact}: {summed:?}"
    );
}

/// The share of a sender's time that softirqs take, by who counts all the time.
fn exact_share(flood: &Flood) -> f64 {
    let steal = probe(&["steal", "-d", "1h", "--irq-entry", "0"]);
    // why: the window of what is compared with.
    sleep(Duration::from_secs(2));
    let steal = steal.end();
    let senders = flood.rows(&steal, "tgid");
    let sum = |keys: &[&str]| -> f64 {
        senders.iter().map(|task| keys.iter().map(|key| number(task, key)).sum::<f64>()).sum()
    };
    sum(&["net_rx_s", "net_tx_s", "mixed_softirq_s", "own_softirq_s"]) / sum(&["on_cpu_s"])
}

/// No share is negative or more than there is.
fn assert_plausible(frame: &Value) {
    let cpus = rows(frame, "cpus").len() as f64;
    let is_in = |ratio: f64, most: f64| (-1e-6..=most * 1.05).contains(&ratio);
    for cpu in rows(frame, "cpus") {
        let net = cpu["net_softirq_ratio"]["value"].as_f64().unwrap();
        assert!(is_in(net, 1.0), "{cpu}");
    }
    for task in rows(frame, "tasks") {
        assert!(is_in(number(task, "on_cpu_ratio"), 1.0), "{task}");
        for key in ["waiting_ratio", "own_ratio", "taken_ratio", "own_softirq_ratio"] {
            assert!(is_in(task[key]["value"].as_f64().unwrap(), cpus), "{key} of {task}");
        }
    }
}
