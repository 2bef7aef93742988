//! Every setting that a namespace and a veth have is changed by a plan and undone, and everything reads as before.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::place::Place;
use crate::bed::until;
use crate::there_and_back::{Subject, files_below, of_groups, others};

/// Devices whose own sysctls are tried; those of the others are read.
const DEVICES: [&str; 3] = ["all", "default", "veth"];

/// Attributes of a veth that can be written.
const ATTRIBUTES: [(&str, &str); 7] = [
    ("veth/threaded", "1"),
    ("veth/gro_flush_timeout", "20000"),
    ("veth/napi_defer_hard_irqs", "2"),
    ("veth/tx_queue_len", "777"),
    ("veth/queues/rx-0/rps_cpus", "3"),
    ("veth/queues/rx-1/rps_flow_cnt", "512"),
    ("veth/queues/tx-1/xps_cpus", "2"),
];

/// Sysctls of the namespace, with values to try.
fn of_sysctls(paths: &[PathBuf]) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for path in paths {
        let Ok(now) = fs::read_to_string(path) else { continue };
        let key = path.strip_prefix("/proc/sys").unwrap().to_string_lossy().replace('/', ".");
        let parts: Vec<&str> = key.split('.').collect();
        if let ["net", _, "conf" | "neigh", device, ..] = parts.as_slice()
            && !DEVICES.contains(device)
        {
            continue;
        }
        all.push((key, others(now.trim())));
    }
    all
}

fn subject() -> Subject {
    let sysctls = files_below(Path::new("/proc/sys/net"));
    let mut tried = of_sysctls(&sysctls);
    tried.extend(of_groups("veth"));
    tried.extend(ATTRIBUTES.map(|(name, value)| (name.to_owned(), vec![value.to_owned()])));
    let net = Path::new("/sys/class/net");
    let mut files = sysctls;
    files.extend(files_below(&net.join("veth/queues")));
    files.extend(ATTRIBUTES.map(|(name, _)| net.join(name)));
    files.retain(|path| !path.to_string_lossy().contains("/byte_queue"));
    // What the kernel does later, as when a link comes up, waits for a thread of the kernel.
    let patience = Duration::from_secs(20);
    Subject { device: "veth".into(), files, tried, patience }
}

#[test]
fn every_setting_comes_back_and_takes_nothing_with_it() {
    let Some(place) = Place::new() else { return };
    place.sysctl("net.ipv6.conf.veth.disable_ipv6", "0");
    place.ip(&["address", "add", "fd77::2/64", "dev", "veth", "nodad"]);
    place.ip(&["route", "add", "198.51.100.0/24", "via", "10.77.0.1"]);
    place.ip(&["link", "add", "link", "veth", "name", "above", "type", "macvlan"]);
    let dir = place.dir.path().to_owned();
    let run = move |_: &mut rxpath_host::lab::netns::Inside| {
        let subject = subject();
        // The link's own address is no setting, and its check for duplicates ends by itself.
        until("no tentative address", || {
            !subject.everything()["ip -6 address"].contains("tentative")
        });
        subject.try_all(&dir)
    };
    let trials = place.ns.run(run).unwrap();
    let (made, left) = (trials.made, trials.left);
    assert!(left.is_empty(), "{} of {}: {left:#?}", left.len(), made.len());
    for kind in [
        "net.core.",
        "net.ipv4.conf.",
        "net.ipv6.conf.",
        "net.ipv4.tcp_",
        "veth/features",
        "veth/link",
        "veth/channels",
        "veth/queues",
    ] {
        assert!(made.iter().any(|knob| knob.starts_with(kind)), "none of {kind}: {made:?}");
    }
    assert!(made.len() >= 250, "{} settings: {made:?}", made.len());
}
