//! Experiments between two hosts with real drivers: what the network lost is known by the cards' own counters of frames,
//! and where the driver has none, the ledger says so.

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

/// What is said from an `e1000e` to a card of this driver.
fn to(driver: &str, kernel: &str) -> Option<String> {
    let script =
        format!("{}:/between_hosts.sh", root().join("tests/rig/between_hosts.sh").display());
    let nics = format!("{driver} e1000e");
    let machine =
        Machine { kernel, nics: &nics, modules: "udp_diag tcp_diag", adds: &[&script], wire: true };
    let out = run(machine, &["sh", "/between_hosts.sh", driver])?;
    assert_done(&out, &["check", "quiet", "astray"]);
    // Which device has which driver, by the check and by the runs.
    let devices = part(&out, "devices").trim().to_owned();
    let (sender, receiver) = devices.split_once(' ').unwrap();
    let check = json(&out, "check")["result"].clone();
    for hosts in [&check, &json(&out, "quiet")["result"]["hosts"]] {
        for (alias, device, driver) in [("gen", sender, "e1000e"), ("sut", receiver, driver)] {
            assert_eq!(hosts[alias]["device"], device, "{hosts}");
            assert_eq!(hosts[alias]["driver"], driver, "{hosts}");
            assert_eq!(hosts[alias]["has_own_namespace"], true, "{hosts}");
        }
    }
    Some(out)
}

/// A run's trial, and how many datagrams it did not deliver. A busy machine may void one, which is repeated.
pub fn trial(out: &str, name: &str) -> (Value, u64) {
    let document = json(out, name);
    let trials = document["result"]["trials"].as_array().unwrap();
    let trial = trials.iter().rfind(|trial| trial["void"].is_null());
    let trial = trial.unwrap_or_else(|| panic!("{document}"));
    let count = |key: &str| trial["ledger"][key].as_u64().unwrap();
    let (offered, delivered) = (count("offered_packets"), count("delivered_packets"));
    assert!(offered > 1_000 && delivered > 0, "{}", trial["ledger"]);
    assert_eq!(count("sent_packets"), offered, "{}", trial["ledger"]);
    (trial.clone(), offered - delivered)
}

#[test]
fn frames_that_real_cards_lose_on_the_wire_are_the_networks_by_their_own_counters() {
    for kernel in ["6.12", "6.1"] {
        let Some(out) = to("igb", kernel) else { return };
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
    let Some(out) = to("virtio_net", "6.12") else { return };
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
