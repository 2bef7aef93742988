//! Commands whose probes cannot be loaded, for want of a capability or of the kernel's types: counters go on, and what is missing
//! is said.

use std::process::Command;

use rxpath_host::HostError;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::procfs::nf_conntrack;
use serde_json::Value;

use crate::alone::watch::stage;
use crate::arena::Arena;
use crate::bed::{Bed, may_run, without_types};
use crate::counters::counters;
use crate::program::said;
use crate::skip::skip;

/// Seconds of the windows of an exporter.
const WINDOWS: &str = "rxpath_window_seconds_total";

/// A look that has no probes: the path from counters, and the reason in its gaps.
fn works_on_counters(look: &Value, missing: &str) {
    let frame = &look["result"];
    let why = frame["gaps"]["BPF probes"].as_str().unwrap_or_else(|| panic!("{frame}"));
    assert!(why.contains(missing), "{missing} in {why}");
    assert!(look["settings"]["probes"].as_str().unwrap().starts_with("counters only: "), "{look}");
    let told = look["warnings"].as_array().unwrap().iter();
    let told: Vec<&Value> = told.filter(|one| one["code"] == "not-known").collect();
    assert!(told.iter().any(|one| one.to_string().contains(missing)), "{look}");
    for name in ["nic", "ip", "socket", "application"] {
        assert!(stage(frame, name)["rate_per_s"]["value"].is_f64(), "{name} in {frame}");
    }
    assert!(!frame["cpus"].as_array().unwrap().is_empty(), "{frame}");
    // What only probes know is a gap with the same reason, and costs nothing.
    let polled = stage(frame, "backlog")["rate_per_s"].to_string();
    assert!(polled.contains(missing), "{polled}");
    assert!(frame["probe_cost"].is_null(), "{frame}");
}

#[test]
fn without_root_a_view_works_on_counters_and_says_which_capability_is_missing() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let once = ["watch", "--once", "--json", "--interval", "200ms"];
    works_on_counters(&arena.nobody(&once).ends(0).json(), "CAP_BPF");
}

#[test]
fn without_types_a_view_works_on_counters_and_says_so() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let once = ["watch", "--once", "--json", "--interval", "200ms"];
    works_on_counters(&without_types(&once).ends(0).json(), "BTF");
}

#[test]
fn without_root_a_diagnosis_watches_counters_and_says_what_is_missing() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let value = arena.nobody(&["diagnose", "-d", "200ms", "--json"]).ends(0).json();
    let missing: Vec<&Value> = (value["warnings"].as_array().unwrap().iter())
        .filter(|warning| warning["code"] == "not-measured")
        .collect();
    // One reason for all four.
    assert_eq!(missing.len(), 1, "{value}");
    let text = missing[0].to_string();
    for what in ["CPU time by task", "waits for locks", "drop reasons", "which threads read"] {
        assert!(text.contains(what), "{what}: {text}");
    }
    assert!(text.contains("CAP_"), "{text}");
    let probed = &value["result"]["evidence_read"]["probed"];
    assert!(probed["cpus"].as_array().unwrap().is_empty() && probed.get("locks").is_none());
    arena.nobody(&["diagnose", "--selftest"]).ends(3).warns("needs CAP_NET_ADMIN");
    arena.assert_clean("after a refused self-test");
}

/// On a kernel that shows no types nothing is measured, and everything else is judged.
#[test]
fn without_types_a_diagnosis_watches_counters_and_says_what_is_missing() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let value = without_types(&["diagnose", "-d", "200ms", "--json"]).ends(0).json();
    let all = value["warnings"].as_array().unwrap();
    let missing: Vec<&Value> = all.iter().filter(|one| one["code"] == "not-measured").collect();
    assert!(!missing.is_empty(), "{value}");
    assert!(missing.iter().all(|one| one.to_string().contains("BTF")), "{missing:?}");
    let result = &value["result"];
    assert!(result["stage"].is_string(), "{result}");
    assert!(result["evidence_read"]["window_s"].as_f64() > Some(0.1), "{result}");
    assert_eq!(result["probe_cost"]["gap"], "no BPF program runs", "{result}");
}

#[test]
fn without_the_kernels_types_counters_go_on_and_the_reason_is_said_once() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let words = ["export", "--once", "--interval", "200ms", "--check-every", "0s"];
    let output = without_types(&words).ends(0).warns("BTF");
    assert_eq!(output.err.matches("counters only").count(), 1, "{output:?}");
    let page = output.out;
    assert!(page.contains("\nrxpath_probe_up 0\n"), "{page}");
    assert!(page.contains("\nrxpath_not_read{what=\"BPF probes\"} 1\n"), "{page}");
    assert!(counters(&page)[WINDOWS] >= 0.2, "{page}");
    assert!(!page.contains("rxpath_cpu_stolen_seconds_total{"), "{page}");
    let needs = "\nrxpath_probe_not_loaded{needs=\"kernel\",what=\"BPF probes\"} 1\n";
    assert!(page.contains(needs), "{page}");
}

#[test]
fn without_a_capability_counters_go_on_and_what_is_needed_is_said_once() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_rxpath")]);
    command.args(["export", "--once", "--interval", "200ms", "--check-every", "0s"]);
    let output = said(&mut command).ends(0).warns("CAP_BPF").warns("start it again");
    assert_eq!(output.err.matches("counters only").count(), 1, "{output:?}");
    let page = output.out;
    let needs = "\nrxpath_probe_not_loaded{needs=\"privilege\",what=\"BPF probes\"} 1\n";
    assert!(page.contains(needs) && counters(&page)[WINDOWS] >= 0.2, "{page}");
}

/// Netlink shows its counters to `CAP_NET_ADMIN` alone, which an exporter gives up at its start.
#[test]
fn without_a_capability_connection_tracking_is_read_from_procfs() {
    const ENTRIES: u64 = 7;
    let Some(bed) = Bed::new() else { return };
    let rx = Namespace::create(&bed.owner, "rx").unwrap();
    let read = rx.run(|inside| {
        let mut netlink = Netlink::netfilter()?;
        let empty = netlink.conntrack()?;
        netlink.fill_conntrack(ENTRIES)?;
        let procfs = nf_conntrack::read(&inside.root())?;
        Ok::<_, HostError>([empty, netlink.conntrack()?, procfs])
    });
    let [empty, netlink, procfs] = match read.unwrap() {
        Err(error @ (HostError::Unsupported { .. } | HostError::Missing { .. })) => {
            return skip("conntrack_procfs", &error.to_string());
        }
        read => read.unwrap(),
    };
    assert_eq!((empty.entries_count, netlink.entries_count), (0, ENTRIES));
    assert_eq!(procfs, netlink, "both sources have the same");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", rx.name(), "setpriv"]);
    command.args(["--inh-caps=-net_admin", "--bounding-set=-net_admin"]);
    command.args([env!("CARGO_BIN_EXE_rxpath"), "diagnose", "-d", "200ms", "--no-bpf", "--json"]);
    let value = said(&mut command).ends(0).json();
    let tracked = &value["result"]["evidence_read"]["conntrack"];
    assert_eq!(tracked["entries_count"], ENTRIES, "{value}");
    assert_eq!(tracked["entries_max"].as_u64(), netlink.entries_max, "{value}");
}
