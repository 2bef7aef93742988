//! What drivers say here, and what a host of an old kernel is told.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::readers;

#[test]
fn both_ways_to_ask_a_driver_agree() {
    for dev in readers::lasting() {
        let topics = readers::agree(&dev);
        assert!(topics.contains(&"features"), "{dev}: {topics:?}");
    }
}

fn old_host(words: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts/old-4.18");
    Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["check", "--sysroot"])
        .arg(root)
        .args(words)
        .output()
        .unwrap()
}

fn json(words: &[&str]) -> Value {
    let done = old_host(words);
    assert!(done.status.success(), "{done:?}");
    serde_json::from_slice(&done.stdout).unwrap()
}

/// 4.18 has neither ethtool netlink nor the netdev family: names of interrupts and the driver's statistics tell.
#[test]
fn queues_of_an_old_kernel_are_mapped_by_names() {
    let found = json(&["--queues", "--json"]);
    let devices = found["result"]["devices"].as_array().unwrap();
    let [eth0] = &devices[..] else { panic!("{devices:?}") };
    assert_eq!((&eth0["device"], &eth0["driver"]["value"]), (&"eth0".into(), &"ixgbe".into()));
    assert_eq!(eth0["counters"]["value"], "driver's statistics");
    let rows = eth0["rows"].as_array().unwrap();
    let told: Vec<(u64, String, f64, u64)> = rows
        .iter()
        .map(|row| {
            let irq = &row["irq"]["value"];
            assert_eq!(irq["source"], "name", "{row}");
            (
                irq["irq"].as_u64().unwrap(),
                irq["effective_cpus"]["value"].as_str().unwrap().to_owned(),
                row["rss_share_ratio"]["value"].as_f64().unwrap(),
                row["packets_total"]["value"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        (40, "0", 0.25, 41_000_000),
        (41, "2", 0.25, 39_000_000),
        (42, "3", 0.25, 40_500_000),
        (43, "0", 0.25, 4_294),
    ]
    .map(|(irq, cpus, share, packets)| (irq, cpus.to_owned(), share, packets));
    assert_eq!(told, expected);
}

#[test]
fn rules_about_nics_are_asked_on_an_old_kernel() {
    let found = json(&["--all", "--json", "--goal", "throughput"]);
    let result = &found["result"];
    let answered = |id: &str| {
        ["findings", "records", "fine"].iter().any(|part| {
            let all = result[*part].as_array().unwrap();
            all.iter().any(|one| one["id"] == id && one["device"] == "eth0")
        })
    };
    for id in
        ["nic-driver-fw", "ring-rx", "channels-combined", "rss-indirection", "link-speed-duplex"]
    {
        assert!(answered(id), "{id}: {result}");
    }
    let filtered =
        result["findings"].as_array().unwrap().iter().find(|one| one["id"] == "rp-filter");
    let observed = filtered.unwrap_or_else(|| panic!("{result}"))["observed"].as_str().unwrap();
    assert!(observed.contains("strict on: eth0, all"), "{observed}");
}
