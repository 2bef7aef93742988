//! `rxpath capture`, and the map of queues and landing of flows over trees of hosts.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::rxpath;

fn host(name: &str) -> String {
    format!("{}/../../testdata/hosts/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn json(args: &[&str]) -> Value {
    rxpath(args).json()
}

#[test]
fn a_capture_is_a_tree_that_check_takes() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("host");
    let target = target.to_str().unwrap();
    rxpath(&["capture", target]).ends(0).prints("replaced:").prints("keys left out");
    let manifest = fs::read_to_string(Path::new(target).join("capture.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["is_scrubbed"], true);
    let queues = json(&["check", "--queues", "--dev", "lo", "--sysroot", target, "--json"]);
    assert_eq!(queues["result"]["devices"][0]["device"], "lo");
    rxpath(&["capture", target]).ends(2).warns("not empty").warns("hint: ");
}

#[test]
fn a_capture_into_no_directory_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    rxpath(&["capture", file.join("below").to_str().unwrap()]).ends(2);
}

#[test]
fn every_queue_of_a_bare_metal_host_has_its_cpu_and_node() {
    let host = host("bare-metal-2node");
    let found = json(&["check", "--queues", "--sysroot", &host, "--json"]);
    let devices = found["result"]["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for (nic, device) in devices.iter().enumerate() {
        assert_eq!(device["node"]["value"], nic);
        let rows = device["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 4);
        for (queue, row) in rows.iter().enumerate() {
            let irq = &row["irq"]["value"];
            assert_eq!(irq["source"], "netdev");
            assert_eq!(irq["name"], format!("ice-eth{nic}-TxRx-{queue}"));
            assert_eq!(irq["effective_cpus"]["value"], (nic * 4 + queue).to_string());
            assert_eq!(irq["nodes"]["value"][0], nic);
            assert_eq!(row["rss_share_ratio"]["value"], 0.25);
            assert_eq!(row["packets_total"]["value"], 1_000_000 + queue);
            assert_eq!(row["drops_total"]["state"], "absent");
        }
    }
}

#[test]
fn devices_without_queues_of_their_own_are_named_and_not_shown() {
    let host = host("router");
    let found = json(&["check", "--queues", "--sysroot", &host, "--json"]);
    let names: Vec<&str> = found["result"]["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|device| device["device"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["wan0", "wan1"]);
    assert_eq!(found["result"]["passed_over"], serde_json::json!(["br0"]));
    rxpath(&["check", "--queues", "--sysroot", &host])
        .prints("not shown, without receive queues of their own: br0");
    let bridge = json(&["check", "--queues", "--sysroot", &host, "--dev", "br0", "--json"]);
    assert_eq!(bridge["result"]["devices"][0]["device"], "br0");
}

#[test]
fn a_flow_lands_where_key_and_table_say() {
    let host = host("bare-metal-2node");
    let flow = "66.9.149.187:2794->161.142.100.80:1766/udp";
    let found = json(&["check", "--flow", flow, "--dev", "eth1", "--sysroot", &host, "--json"]);
    let landing = &found["result"]["landings"][0];
    // The first vector of the verification suite, over a table of 2048 entries and 4 queues.
    let queue = 0x51cc_c178_u32 % 2048 % 4;
    assert_eq!(landing["hash"]["value"], "0x51ccc178");
    assert_eq!(landing["queue"]["value"], queue);
    assert_eq!(landing["irq_cpus"]["value"], (4 + queue).to_string());
    let ports = &found["result"]["spreads"][0]["value"]["source_ports"];
    assert_eq!(ports.as_array().unwrap().len(), 4);
    rxpath(&["check", "--flow", flow, "--dev", "eth1", "--sysroot", &host])
        .prints("sockets of the host were not looked at");
}

#[test]
fn bad_flows_devices_and_intervals_are_one_line_and_status_2() {
    let host = host("bare-metal-2node");
    for (args, what) in [
        (&["--flow", "1.2.3.4:5", "--dev", "eth0"][..], "names no protocol"),
        (&["--flow", "1.2.3.4:5->6.7.8.9:1/udp"], "--flow needs --dev"),
        (&["--flow", "1.2.3.4:5->6.7.8.9:1/udp", "--dev", "eth9"], "no such network device"),
        (&["--queues", "--dev", "eth9"], "devices here: eth0, eth1"),
        (&["--queues", "--interval", "1s"], "does not change"),
        (&["--queues", "--interval", "0s"], "above 0"),
        (&["--queues", "--interval", "soon"], "--interval"),
        (&["--queues", "--goal", "latency"], "cannot be used with"),
    ] {
        let all = [&["check", "--sysroot", &host], args].concat();
        let output = rxpath(&all);
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
        assert!(output.err.contains(what), "{args:?}: {output:?}");
        assert!(
            output.err.starts_with("rxpath: ") && output.err.lines().count() <= 2,
            "{args:?}: {output:?}"
        );
    }
}

/// Of virtio_net the queue's drops are all that the device counts, of which its ring is a part.
#[test]
fn queues_of_guests_have_their_interrupts_packets_and_drops_by_each_driver_s_names() {
    for (name, irqs, drops) in [
        ("guest-gve", [29, 30], [37, 5]),
        ("guest-vmxnet3", [27, 28], [37, 5]),
        ("guest-virtio", [28, 30], [40, 5]),
    ] {
        let found = json(&["check", "--queues", "--sysroot", &host(name), "--json"]);
        let rows = found["result"]["devices"][0]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{name}: {found}");
        for (queue, row) in rows.iter().enumerate() {
            assert_eq!(row["irq"]["value"]["irq"], irqs[queue], "{name}: {row}");
            assert_eq!(row["packets_total"]["value"], [300_000, 200_000][queue], "{name}: {row}");
            assert_eq!(row["drops_total"]["value"], drops[queue], "{name}: {row}");
        }
    }
}

#[test]
fn broken_trees_are_gaps_and_never_a_crash() {
    let damaged = ["broken", "garbage"];
    let whole = ["old-4.18", "cloud-vm", "router", "vm-6.18", "vm-6.18-live"];
    let guests = ["guest-gve", "guest-vmxnet3", "guest-virtio"];
    for name in damaged.into_iter().chain(whole).chain(guests) {
        let host = host(name);
        let output = rxpath(&["check", "--queues", "--sysroot", &host, "--json"]);
        let status = output.code;
        assert!(matches!(status, Some(0 | 2 | 3)), "{name}: {status:?} {output:?}");
        assert!(!output.err.contains("panicked"), "{name}: {output:?}");
    }
}
