//! Experiments between two hosts with real drivers: what the network lost is known by the cards' own counters of frames,
//! and where the driver has none, the ledger says so. What a ring lost is known by the counter of its driver.

use serde_json::Value;

use crate::reading::{json, part};
use crate::{Machine, root, run};

/// All of these commands ended well.
pub fn assert_done(out: &str, names: &[&str]) {
    for name in names {
        let errors = part(out, &format!("{name} errors"));
        // 4: the machine was busy, which is no matter here.
        let is_done = ["status 0", "status 4"].iter().any(|end| errors.trim_end().ends_with(end));
        assert!(is_done, "{name}: {errors}");
    }
}

/// What is said in these runs from an `e1000e` to a card of this driver.
fn to(driver: &str, kernel: &str, runs: &[&str]) -> Option<String> {
    let script =
        format!("{}:/between_hosts.sh", root().join("tests/rig/between_hosts.sh").display());
    let nics = format!("{driver} e1000e");
    let machine =
        Machine { kernel, nics: &nics, modules: "udp_diag tcp_diag", adds: &[&script], wire: true };
    let out = run(machine, &[&["sh", "/between_hosts.sh", driver][..], runs].concat())?;
    assert_done(&out, &[&["check"][..], runs].concat());
    // Which device has which driver, by the check and by the runs.
    let devices = part(&out, "devices").trim().to_owned();
    let (sender, receiver) = devices.split_once(' ').unwrap();
    let check = json(&out, "check")["result"].clone();
    for hosts in [&check, &json(&out, runs[0])["result"]["hosts"]] {
        for (alias, device, driver) in [("gen", sender, "e1000e"), ("sut", receiver, driver)] {
            assert_eq!(hosts[alias]["device"], device, "{hosts}");
            assert_eq!(hosts[alias]["driver"], driver, "{hosts}");
            assert_eq!(hosts[alias]["has_own_namespace"], true, "{hosts}");
        }
    }
    Some(out)
}

/// The trials of a run that count, and how many datagrams each did not deliver. A busy machine may void one, which is repeated.
fn counted(out: &str, name: &str) -> Vec<(Value, u64)> {
    let document = json(out, name);
    let trials = document["result"]["trials"].as_array().unwrap();
    let lost = |trial: &Value| {
        let count = |key: &str| trial["ledger"][key].as_u64().unwrap();
        let (offered, delivered) = (count("offered_packets"), count("delivered_packets"));
        assert!(offered > 1_000 && delivered > 0, "{}", trial["ledger"]);
        assert_eq!(count("sent_packets"), offered, "{}", trial["ledger"]);
        offered - delivered
    };
    let counted = trials.iter().filter(|trial| trial["void"].is_null());
    let counted: Vec<_> = counted.map(|trial| (trial.clone(), lost(trial))).collect();
    assert!(!counted.is_empty(), "{name}: no trial counts: {document}");
    counted
}

/// The last one of them.
pub fn trial(out: &str, name: &str) -> (Value, u64) {
    counted(out, name).pop().unwrap()
}

#[test]
fn frames_that_real_cards_lose_on_the_wire_are_the_networks_by_their_own_counters() {
    for kernel in ["6.12", "6.1"] {
        let Some(out) = to("igb", kernel, &["quiet", "astray"]) else { return };
        let (quiet, lost) = trial(&out, "quiet");
        let ledger = &quiet["ledger"];
        assert_eq!(ledger["unaccounted_packets"], 0, "{kernel}: {ledger}");
        assert_eq!(lost, 0, "{kernel}: {ledger}");
        assert!(ledger["notes"].is_null(), "the cards' frames are known: {kernel}: {ledger}");

        let (astray, lost) = trial(&out, "astray");
        let ledger = &astray["ledger"];
        assert!(lost > 100, "{kernel}: about half of the frames: {ledger}");
        assert_eq!(ledger["unaccounted_packets"], 0, "{kernel}: {ledger}");
        let drops = ledger["drops"].as_array().unwrap();
        let [network] = &drops[..] else { panic!("{kernel}: {ledger}") };
        assert_eq!(network["exact"], true, "{kernel}: {ledger}");
        assert_eq!(network["place"], "network", "{kernel}: {ledger}");
        assert_eq!(network["packets"], lost, "{kernel}: {ledger}");
        let devices = part(&out, "devices").trim().to_owned();
        let (sender, receiver) = devices.split_once(' ').unwrap();
        let formula = format!(
            "tx/ethtool.{sender}.tx_packets - rx/ethtool.{receiver}.rx_packets - \
             rx/ethtool.{receiver}.rx_missed_errors"
        );
        assert_eq!(network["counter"], formula, "{kernel}: {ledger}");
        assert_eq!(astray["verdict"]["stage"], "network", "{kernel}: {}", astray["verdict"]);
    }
}

#[test]
fn what_was_lost_before_a_card_that_counts_no_frames_is_unaccounted_and_the_reason_is_said() {
    let Some(out) = to("virtio_net", "6.12", &["quiet", "astray"]) else { return };
    let (quiet, lost) = trial(&out, "quiet");
    assert_eq!(lost, 0, "{}", quiet["ledger"]);
    assert_eq!(quiet["ledger"]["unaccounted_packets"], 0, "{}", quiet["ledger"]);
    let (astray, lost) = trial(&out, "astray");
    let ledger = &astray["ledger"];
    assert!(lost > 100, "about half of the frames: {ledger}");
    assert_eq!(ledger["unaccounted_packets"], lost, "{ledger}");
    assert!(ledger["drops"].as_array().unwrap().is_empty(), "{ledger}");
    let why = "what the network lost is not known: sut: virtio_net does not see what the \
               hypervisor's switch loses";
    assert!(ledger["notes"].as_array().unwrap().iter().any(|note| note == why), "{ledger}");
}

/// Trials of the run in which a ring runs over.
const RING_TRIALS: usize = 20;

/// Whether the counter of the driver has exactly what is missing, no other place has anything, and nothing is left over.
fn is_all_at_ring(ledger: &Value, lost: u64) -> bool {
    let drops = ledger["drops"].as_array().unwrap();
    let [ring] = &drops[..] else { return false };
    ring["place"] == "ring"
        && ring["counter"].as_str().unwrap().contains("pkts rx OOB")
        && ring["exact"] == true
        && ring["packets"] == lost
        && ledger["unaccounted_packets"] == 0
}

/// Of the NICs of the rig, only `vmxnet3` counts each frame for which it has no descriptor. The truth is what the sender's kernel
/// accepted less what the reader read. The ledger makes no term from the rest: a remainder of 0 says that the driver counted exactly
/// that, and that the network lost nothing.
#[test]
fn what_the_ring_of_a_real_driver_lost_is_in_the_ledger_to_the_frame() {
    let Some(out) = to("vmxnet3", "6.12", &["ring"]) else { return };
    let trials = counted(&out, "ring");
    let set = part(&out, "set");
    // Each aggregate loses about half of its datagrams; without a small ring none would be lost.
    let is_right =
        |(trial, lost): &&(Value, u64)| *lost > 100 && is_all_at_ring(&trial["ledger"], *lost);
    let wrong: Vec<String> = trials
        .iter()
        .filter(|trial| !is_right(trial))
        .map(|(trial, lost)| format!("{lost} are missing: {}", trial["ledger"]))
        .collect();
    let (all, bad) = (trials.len(), wrong.len());
    assert_eq!(bad, 0, "of {all} trials: {}\n{set}", wrong.join("\n"));
    assert_eq!(all, RING_TRIALS, "trials that count; {set}");
}
