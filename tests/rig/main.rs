//! The program on real drivers: `tools/rig.sh` boots a small machine with emulated NICs, `probe.sh` tries every setting
//! in it, and what came of each is held against `expected.toml`.
//!
//! It takes minutes, so `make rig` runs it and `make test` does not.

// Helpers beside the test functions may unwrap too: a panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

mod between_hosts;
mod exporting;
mod guest_hosts;
mod lists;
mod observing;
mod reading;
mod searching;
mod undoing;

#[path = "../support/counters.rs"]
mod counters;
#[path = "../support/readers.rs"]
mod readers;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/there_and_back.rs"]
mod there_and_back;

const NICS: &str = "igb e1000e e1000 virtio_net vmxnet3";

/// What was said by each command of one try.
type Said = BTreeMap<String, (i32, Value)>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit status of `tools/rig.sh` where the machine can't be had: no command in it ends with it.
const NOT_HERE: i32 = 125;

fn rig(words: &[&str]) -> Output {
    Command::new(root().join("tools/rig.sh")).args(words).output().unwrap()
}

/// A machine to boot.
#[derive(Clone, Copy, Default)]
struct Machine<'a> {
    kernel: &'a str,
    nics: &'a str,
    modules: &'a str,
    /// Whether its NICs reach each other, and nobody else.
    wire: bool,
    /// Files beside the program.
    adds: &'a [&'a str],
}

/// Whether this setup can be had here; if not, the test is named as skipped.
fn is_there(words: &[&str]) -> bool {
    let setup = rig(words);
    let is_there = setup.status.code() != Some(NOT_HERE);
    if !is_there {
        let why = String::from_utf8_lossy(&setup.stderr).lines().last().unwrap_or("").to_owned();
        skip::skip("rig", &why);
    }
    is_there
}

/// What `tools/rig.sh` says with these words.
fn output(words: &[&str]) -> String {
    let done = rig(words);
    let out = String::from_utf8(done.stdout).unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{err}{}", &out[out.len().saturating_sub(2000)..]);
    out
}

/// What a command says inside the machine; `None`, and the test is named as skipped, where the machine can't be had.
fn run(machine: Machine<'_>, command: &[&str]) -> Option<String> {
    if !is_there(&["setup", "--kernel", machine.kernel]) {
        return None;
    }
    let mut words = vec!["run", "--kernel", machine.kernel, "--nics", machine.nics];
    words.extend(["--modules", machine.modules, "--add", env!("CARGO_BIN_EXE_rxpath")]);
    words.extend(machine.wire.then_some("--wire"));
    words.extend(machine.adds.iter().flat_map(|file| ["--add", file]));
    words.push("--");
    words.extend(command);
    Some(output(&words))
}

/// Tries by driver and wish.
fn tries(out: &str) -> BTreeMap<(String, String), Said> {
    let mut found = BTreeMap::new();
    for part in out.split("\n@@").map(|part| part.trim_start_matches("@@")) {
        let (head, body) = part.split_once('\n').unwrap_or((part, ""));
        let Some((driver, wish)) = head.split_once(' ') else { continue };
        let mut said = Said::new();
        for answer in format!("\n{body}").split("\n@").skip(1) {
            let (command, text) = answer.split_once('\n').unwrap_or((answer, ""));
            let (command, status) = command.split_once(' ').unwrap_or((command, ""));
            let status = status.split(' ').next().unwrap().parse().unwrap_or(-1);
            let value = serde_json::from_str(text).unwrap_or(Value::String(answer.into()));
            said.insert(command.to_owned(), (status, value));
        }
        found.insert((driver.to_owned(), wish.to_owned()), said);
    }
    found
}

/// What came of a try, in the words of `expected.toml`: without the device's name, which follows from the order of loading.
fn outcome(said: &Said) -> String {
    let change =
        &said.get("apply").map_or(Value::Null, |apply| apply.1["result"]["changes"][0].clone());
    let device = change["set"].as_str().and_then(|set| set.split('/').next()).unwrap_or_default();
    let words = told(said, change);
    if device.is_empty() { words } else { words.replace(device, "DEV") }
}

fn told(said: &Said, change: &Value) -> String {
    let result = |command: &str| &said[command].1["result"];
    let Some(step) = result("plan")["step"].get(0) else {
        let left = &result("plan")["left_out"][0];
        if left["is_set"] == true {
            return "already".into();
        }
        let why = left["why"].as_str().unwrap_or("no plan");
        let absent = ["does not have it", "this driver has no", "not here"];
        let is_absent = absent.iter().any(|words| why.contains(words));
        return if is_absent { "absent".into() } else { format!("left out: {why}") };
    };
    let after = change["after"].as_str().unwrap_or("");
    let also = match change["also"].as_str() {
        Some(also) => format!("; also {also}"),
        None => String::new(),
    };
    match change["outcome"].as_str().unwrap_or("none") {
        // Whether an interrupt came in between is chance.
        "pending" => format!("applied{also}"),
        "rounded" => format!("rounded: {after}{also}"),
        "refused" => format!("refused: {}", change["why"].as_str().unwrap()),
        "none" => panic!("no change of {step}: {:?}", said["apply"]),
        word => format!("{word}{also}"),
    }
}

/// Whatever came of it: told alike by all commands, and undone to the last bit.
fn assert_consistent(name: &(String, String), said: &Said) {
    let steps = said["plan"].1["result"]["step"].as_array().map_or(0, Vec::len);
    // What is asked for and left out makes the request a partial one, or a wrong one where nothing else is in it.
    let left_out = said["plan"].1["result"]["left_out"].as_array().cloned().unwrap_or_default();
    let is_so = |left: &Value| left["is_set"] == true;
    // What rules want and a plan leaves out was not asked for.
    let is_whole = name.0 == "host" || left_out.iter().all(is_so);
    let status = match (is_whole, steps) {
        (true, _) => 0,
        (false, 0) => 2,
        (false, _) => 5,
    };
    assert_eq!(said["plan"].0, status, "{name:?}: {said:?}");
    if steps == 0 {
        return;
    }
    let changes = said["apply"].1["result"]["changes"].as_array().unwrap();
    let good = |change: &Value| {
        matches!(change["outcome"].as_str(), Some("applied" | "pending" | "rounded"))
    };
    let status = if changes.iter().all(good) { 0 } else { 5 };
    assert_eq!(said["apply"].0, status, "{name:?}: {said:?}");
    for undo in said["undo"].1["result"].as_array().unwrap() {
        let state = undo["state"].as_str().unwrap();
        assert!(matches!(state, "restored" | "already"), "{name:?}: {undo}");
        assert!(undo.get("coupled").is_none(), "{name:?}: {undo}");
    }
    assert_eq!(said["undo"].0, 0, "{name:?}");
    // The plan that is made afterwards finds what the first one found. Rules look at counters too, and at no device
    // whose link is not back yet.
    if name.0 == "host" {
        return;
    }
    assert_eq!(said["again"].1["result"]["step"], said["plan"].1["result"]["step"], "{name:?}");
    if let Some((status, words)) = said.get("masks") {
        assert_eq!(*status, 0, "{name:?}: {words}");
    }
}

/// What comes of each wish, by driver.
type Table = BTreeMap<String, BTreeMap<String, String>>;

/// Tries every setting, and compares what came of each with the table.
#[test]
fn every_setting_of_every_driver_is_as_expected() {
    let kernel = "6.12";
    let probe = format!("{}:/probe.sh", root().join("tests/rig/probe.sh").display());
    let machine = Machine { kernel, nics: NICS, adds: &[&probe], ..Machine::default() };
    let Some(out) = run(machine, &["sh", "/probe.sh"]) else { return };
    let tries = tries(&out);
    let mut found = Table::new();
    for (name, said) in &tries {
        if name.1 != "together" && name.0 != "host" {
            found.entry(name.0.clone()).or_default().insert(name.1.clone(), outcome(said));
        }
    }
    let text = toml::to_string(&found).unwrap();
    let kept = root().join("target/rig").join(format!("found-{kernel}.toml"));
    std::fs::write(&kept, &text).unwrap();
    for (name, said) in &tries {
        assert_consistent(name, said);
    }
    assert_eq!(found.len(), 5, "drivers: {:?}", found.keys());
    let by_rules = |goal: &str| {
        let said = &tries[&("host".to_owned(), goal.to_owned())];
        said["plan"].1["result"]["step"].as_array().map_or(0, Vec::len)
    };
    assert!(by_rules("latency") > 0 && by_rules("throughput") > 0, "the rules find something here");
    let text = std::fs::read_to_string(root().join("tests/rig/expected.toml")).unwrap();
    let expected: Table = toml::from_str(&text).unwrap();
    for (driver, wishes) in &found {
        for (wish, came) in wishes {
            let wanted = expected.get(driver).and_then(|wishes| wishes.get(wish));
            assert_eq!(
                Some(came),
                wanted,
                "{driver} {wish}; all that was found is in {}",
                kept.display()
            );
        }
    }
    assert_eq!(found, expected, "nothing is expected that was not tried");
}

/// What the kernel's verifier of these versions thinks of each program.
#[test]
fn every_bpf_program_loads_on_debians_kernels() {
    for kernel in ["6.12", "6.1"] {
        let machine = Machine { kernel, nics: "e1000", ..Machine::default() };
        let Some(out) = run(machine, &["rxpath", "doctor", "--json"]) else { return };
        let document: Value = serde_json::from_str(&out).unwrap();
        let probes = document["result"]["probes"].as_array().unwrap();
        let build = |found: &&Value| found["what"] == "this build of rxpath";
        let build = document["result"]["findings"].as_array().unwrap().iter().find(build).unwrap();
        if build["state"]["state"] != "ok" {
            skip::skip("bpf_programs", "this build has no BPF programs");
            return;
        }
        assert!(probes.len() >= 8, "{kernel}: {probes:?}");
        let mut refused = Vec::new();
        for probe in probes {
            // Tracepoints that came with 6.2 and 6.3: the probes are left out, and say why.
            let later = [
                ("stages", "sk_data_ready"),
                ("locks", "sock_recv_length"),
                ("reads", "sock_recv_length"),
            ];
            let later = later.into_iter().find(|(name, _)| probe["probe"] == *name);
            if let Some((_, tracepoint)) = later.filter(|_| kernel == "6.1") {
                let why = probe["programs"]["why"].as_str().unwrap();
                assert!(why.contains(&format!("no tracepoint sock/{tracepoint}")), "{why}");
                continue;
            }
            let programs = probe["programs"]["value"].as_array();
            let programs = programs.unwrap_or_else(|| panic!("{kernel}: {probe}"));
            refused.extend(programs.iter().filter(|program| program["id"]["state"] != "ok"));
        }
        // All of them at once: a machine takes minutes to boot.
        assert!(refused.is_empty(), "{kernel}: {refused:#?}");
    }
}

/// Parts of the kernel that many hosts lack, read by the check: the list of netfilter hooks with its modules loaded.
#[test]
fn the_check_reads_what_modules_add() {
    const NFT: &str = "/usr/sbin/nft";
    if !Path::new(NFT).exists() {
        return skip::skip("rig", "needs nft, to put a chain on a hook");
    }
    let machine = Machine {
        kernel: "6.12",
        nics: "virtio_net vmxnet3",
        modules: "crc32c_generic nf_tables nfnetlink_hook",
        adds: &[NFT],
        ..Machine::default()
    };
    let rules = "add table inet t; add chain inet t c { type filter hook input priority 0; }";
    let script = format!("nft '{rules}' && rxpath check --goal throughput --json");
    let Some(out) = run(machine, &["sh", "-c", &script]) else { return };
    let document: Value = serde_json::from_str(&out).unwrap();
    let result = &document["result"];
    let named = |part: &str, id: &str| {
        let all = result[part].as_array().unwrap();
        all.iter().filter(|one| one["id"] == id).cloned().collect::<Vec<_>>()
    };
    let hooks = named("records", "nf-hooks");
    assert_eq!(hooks.len(), 1, "{result}");
    assert!(hooks[0]["text"].as_str().unwrap().contains("input t c"), "{hooks:?}");
    let drivers = named("records", "nic-driver-fw");
    let told = |name: &str| drivers.iter().any(|one| one["text"].to_string().contains(name));
    assert!(told("virtio_net") && told("vmxnet3"), "{drivers:?}");
}

/// Error correction, of which no emulated NIC has any: a simulated device. The state from its making, nothing
/// configured, is one that the kernel takes from nobody: undo says so.
#[test]
fn error_correction_is_set_and_undone() {
    let machine = Machine { kernel: "built", ..Machine::default() };
    let script = "echo '7 1 2' >/sys/bus/netdevsim/new_device && ip link set eth0 up; cd /tmp; \
        say() { name=$1; shift; echo \"@@$name\"; rxpath tune \"$@\" --json 2>/dev/null; }; \
        say plan1 plan --set eth0/fec/off=on -o one.toml; say apply1 apply one.toml; say undo1 undo; \
        say forget undo --forget; \
        say plan2 plan --set eth0/fec/off=off --set eth0/fec/rs=on -o two.toml; say apply2 apply two.toml; \
        say verify2 verify; say undo2 undo; say plan3 plan --set eth0/fec/rs=on; echo '@@end'";
    let Some(out) = run(machine, &["sh", "-c", script]) else { return };
    let result = |name: &str| reading::json(&out, name)["result"].clone();
    let applied = |name: &str| {
        let change = result(name)["changes"][0].clone();
        assert_eq!(change["outcome"], "applied", "{change}");
        change["after"].as_str().unwrap().to_owned()
    };
    assert_eq!(applied("apply1"), "off=on");
    let stuck = result("undo1")[0].clone();
    assert_eq!(stuck["state"], "failed", "{stuck}");
    assert_eq!(applied("apply2"), "off=off rs=on");
    assert_eq!(result("undo2")[0]["state"], "restored", "{out}");
    let again = result("plan3")["step"][0].clone();
    assert_eq!((&again["old"], &again["new"]), (&"rs=off".into(), &"rs=on".into()), "{again}");
}

/// Page pools and their counters, on a kernel that has both: the device is simulated, its pools are the kernel's own.
#[test]
fn page_pools_are_read_with_what_they_counted() {
    let machine = Machine { kernel: "built", ..Machine::default() };
    let switch = "/sys/kernel/debug/netdevsim/netdevsim7/ports/0/pp_hold";
    // A device of two queues; the first one's pool hands a page out, gets it back, and hands one out again.
    let script = format!(
        "echo '7 1 2' >/sys/bus/netdevsim/new_device && ip link set eth0 up && \
         echo y >{switch} && echo n >{switch} && echo y >{switch} && \
         rxpath capture /tmp/host >/dev/null 2>&1 && cat /tmp/host/netlink/host.json"
    );
    let Some(out) = run(machine, &["sh", "-c", &script]) else { return };
    let answers: Value =
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    let pools = answers["page_pools"]["value"].as_array().unwrap();
    assert_eq!(pools.len(), 2, "{pools:?}");
    // A pool fetches pages in bulk: those in its cache count as handed out (net/core/page_pool.c, the fast cache).
    let held: Vec<&Value> = pools.iter().filter(|pool| pool["inflight_count"] != 0).collect();
    let [held] = held[..] else { panic!("{pools:?}") };
    let pages = held["inflight_count"].as_u64().unwrap();
    assert_eq!(held["inflight_bytes"], pages * 4096, "{held}");
    assert!(held["ifindex"].as_u64().unwrap() > 1 && held["napi_id"].is_u64(), "{held}");
    let stats = &held["stats"];
    let of = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!(of("alloc_slow_total") + of("alloc_fast_total"), 2, "{held}");
    let back = ["recycle_cached_total", "recycle_ring_total"].map(of);
    assert_eq!(back.iter().sum::<u64>(), 1, "{held}");
    let idle = pools.iter().find(|pool| pool["inflight_count"] == 0).unwrap();
    assert_eq!(idle["stats"]["alloc_slow_total"], 0, "{idle}");
}
