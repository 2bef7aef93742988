//! Experiments with a machine that is a host, over ssh: it has a kernel, NICs and a clock of its own, and this machine is the other
//! end of its NICs.

use std::sync::OnceLock;

use serde_json::Value;

use crate::between_hosts::{assert_done, trial};
use crate::reading::{json, part};
use crate::{is_there, output, root};

mod clocks;

/// How much faster its clock runs. NTP corrects at most 500 ppm.
const DRIFT_PPM: f64 = 400.0;
/// Rounds in which it runs as fast and as slow as NTP may make a clock, in turn.
const ROUNDS: u32 = 20;
/// `MAXFREQ`, include/linux/timex.h.
const MOST_PPM: f64 = 500.0;

/// What `guest_hosts.sh` says, to all tests that ask; `None`, and the test is named as skipped, where the machine can't be had.
fn measured() -> Option<&'static str> {
    static SAID: OnceLock<String> = OnceLock::new();
    is_there(&["setup", "--outside"]).then(|| SAID.get_or_init(said).as_str())
}

fn said() -> String {
    let script = root().join("tests/rig/guest_hosts.sh").display().to_string();
    let drift = DRIFT_PPM.to_string();
    let words = [
        "run",
        "--outside",
        "--drift",
        &drift,
        "--nics",
        "igb virtio_net",
        "--modules",
        "udp_diag tcp_diag",
        "--memory",
        "2048",
        "--",
        "sh",
        &script,
        env!("CARGO_BIN_EXE_rxpath"),
    ];
    output(&words)
}

/// How much faster the clock of the guest ran than that of this machine, and how far that may be wrong. **Unit** ppm.
fn drift(hosts: &Value, name: &str) -> [f64; 2] {
    let of = |alias: &str, key: &str| {
        hosts[alias]["drift"][key].as_f64().unwrap_or_else(|| panic!("{name}: {hosts}"))
    };
    let apart = of("guest", "ahead_ppm") - of("here", "ahead_ppm");
    [apart, of("guest", "error_ppm") + of("here", "error_ppm")]
}

/// The drift that the run shows contains the true one.
fn assert_drift(out: &str, name: &str) {
    let hosts = &json(out, name)["result"]["hosts"];
    let [apart, error] = drift(hosts, name);
    assert!((apart - DRIFT_PPM).abs() <= error, "{name}: {apart} +-{error} ppm");
    assert!(error < DRIFT_PPM, "{name}: says nothing: {apart} +-{error} ppm");
    assert_eq!(hosts["guest"]["ntp"]["frequency_ppm"], DRIFT_PPM, "{name}: {hosts}");
}

/// The drift that each round shows contains the true one, and the trial is not void because of the clock: 500 ppm are an ordinary
/// correction.
///
/// By how much the clocks differ, nobody knows here. The truth is the drift: the guest counts by an HPET, which QEMU makes of this
/// machine's clock, so that the frequency that `adjtimex` sets is all that drives the two apart.
fn assert_slewed(out: &str) {
    let (mut rounds, mut wrong, mut telling) = (Vec::new(), Vec::new(), 0);
    for round in 1..=ROUNDS {
        let name = format!("slewed {round}");
        assert_done(out, &[name.as_str()]);
        let result = json(out, &name)["result"].clone();
        let hosts = &result["hosts"];
        let truth = if round % 2 == 0 { -MOST_PPM } else { MOST_PPM };
        let [apart, error] = drift(hosts, &name);
        let set = &hosts["guest"]["ntp"]["frequency_ppm"];
        let trials = result["trials"].as_array().unwrap();
        let mut voids = trials.iter().filter_map(|trial| trial["void"].as_str());
        let void = voids.find(|why| why.contains("its clock was"));
        if (apart - truth).abs() > error || *set != truth || void.is_some() {
            wrong.push(round);
        }
        // The interval has one sign only.
        telling += u32::from(error < MOST_PPM);
        rounds
            .push(format!("{round}: {apart:.1} +-{error:.1} of {truth} ppm, set {set}, {void:?}"));
    }
    let rounds = rounds.join("\n");
    assert!(wrong.is_empty(), "wrong in {wrong:?}:\n{rounds}");
    // On a busy machine a comparison may be so wide that a short run says nothing.
    assert!(telling * 2 > ROUNDS, "{telling} show a direction:\n{rounds}");
}

/// What was not delivered lies within the bounds of the losses, and the ledger says so.
fn assert_accounted(ledger: &Value, lost: u64) {
    let lost = lost - ledger["in_flight_packets"].as_u64().unwrap();
    let (mut least, mut most) = (0u64, Some(0u64));
    for drop in ledger["drops"].as_array().unwrap() {
        let packets = drop["packets"].as_u64().unwrap();
        let bound = |key: &str| drop["bounds"][key].as_u64();
        least += bound("least_packets").unwrap_or(packets);
        let at_most = if drop["exact"] == true { Some(packets) } else { bound("most_packets") };
        most = most.zip(at_most).map(|(sum, here)| sum + here);
    }
    assert!(least <= lost && most.is_none_or(|most| lost <= most), "{lost}: {ledger}");
    let bound = |key: &str| ledger["unaccounted_bounds"][key].as_i64();
    let remainder = match ledger["unaccounted_packets"].as_i64() {
        Some(exact) => exact..=exact,
        None => bound("least_packets").unwrap()..=bound("most_packets").unwrap(),
    };
    assert!(remainder.contains(&0), "{ledger}");
}

fn drop_at<'a>(ledger: &'a Value, place: &str) -> &'a Value {
    let drops = ledger["drops"].as_array().unwrap();
    drops.iter().find(|drop| drop["place"] == place).unwrap_or_else(|| panic!("{place}: {ledger}"))
}

fn assert_found(out: &str, driver: &str, device: &str, tap: &str) {
    let hosts = json(out, &format!("{driver} check"))["result"].clone();
    for (alias, device, driver) in [("guest", device, driver), ("here", tap, "tun")] {
        assert_eq!(hosts[alias]["device"], device, "{hosts}");
        assert_eq!(hosts[alias]["driver"], driver, "{hosts}");
    }
    assert_ne!(hosts["guest"]["clock"], hosts["here"]["clock"], "two machines: {hosts}");
}

fn assert_ledgers(out: &str) {
    for name in ["quiet", "back"] {
        let (quiet, lost) = trial(out, name);
        assert_accounted(&quiet["ledger"], lost);
    }
    let (many, lost) = trial(out, "many");
    assert_accounted(&many["ledger"], lost);
    let socket = drop_at(&many["ledger"], "socket-buffer");
    assert!(socket["packets"].as_u64() > Some(1_000) && socket["exact"] == true, "{socket}");

    // igb counts the frames that arrive.
    let (astray, lost) = trial(out, "igb astray");
    assert!(lost > 100, "about half of the frames: {}", astray["ledger"]);
    assert_accounted(&astray["ledger"], lost);
    let network = drop_at(&astray["ledger"], "network");
    let formula = "tx/link.tap1.tx.packets - rx/ethtool.eth0.rx_packets - \
                   rx/ethtool.eth0.rx_missed_errors";
    assert_eq!(network["counter"], formula, "{network}");
    assert!(network["packets"].as_u64() > Some(100), "{network}");
    assert_eq!(astray["verdict"]["stage"], "network", "{}", astray["verdict"]);

    // What is lost before a virtio_net, its driver cannot know.
    let (astray, lost) = trial(out, "virtio_net astray");
    let ledger = &astray["ledger"];
    assert!(lost > 100, "about half of the frames: {ledger}");
    assert!(ledger["unaccounted_packets"].as_u64() > Some(100), "{ledger}");
    let why = "what the network lost is not known: guest: virtio_net does not see what the \
               hypervisor's switch loses";
    assert!(ledger["notes"].as_array().unwrap().iter().any(|note| note == why), "{ledger}");
}

#[test]
fn a_host_with_its_own_kernel_and_a_fast_clock_is_measured_over_ssh_and_left_as_it_was() {
    let Some(out) = measured() else { return };
    let runs = ["quiet", "many", "igb astray", "virtio_net astray", "back"];
    assert_done(out, &["igb check", "virtio_net check"]);
    assert_done(out, &runs);
    assert_found(out, "igb", "eth0", "tap1");
    assert_found(out, "virtio_net", "eth1", "tap2");
    for name in runs {
        assert_drift(out, name);
    }
    assert_slewed(out);
    assert_ledgers(out);
    let before = part(out, "before");
    assert!(before.contains("eth1"), "{before}");
    assert_eq!(before, part(out, "after"));
}
