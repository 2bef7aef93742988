//! Two receivers on hosts of their own, and a sender whose clock is a day ahead of theirs.

use rxpath_record::run::RunReader;

use super::pairs::SCENARIO;
use super::{QUICK, SOON, site};

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";

#[test]
fn both_receivers_get_what_was_sent_to_them_and_both_hosts_are_changed_for_the_trial() {
    let Some(mut site) = site() else { return };
    let inventory = site.add_receiver();
    let check = site.rxpath(&["hosts", "check", &inventory]).ends(0);
    let ready = "ready: gen1 -> sut (10.78.5.2), sut2 (10.78.5.3)";
    assert!(check.out.contains(ready), "{check:?}");
    let before = ["sut", "sut2"].map(|alias| site.sysctl(alias, SOMAXCONN));
    let changing = format!("{SCENARIO}[tune.receiver]\n\"net.core.somaxconn\" = 4321\n");
    let (file, out) = (site.write("s.toml", &changing), site.path("runs"));
    let words = ["run", &file, "--hosts", &inventory, "--out", &out, "--keep-noisy"];
    let run = site.rxpath(&[&words[..], &["--change-hosts"]].concat());
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    assert_eq!(["sut", "sut2"].map(|alias| site.sysctl(alias, SOMAXCONN)), before);
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let events = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
    let read_back = r#""setting":"net.core.somaxconn","old":"#;
    let manifest = RunReader::open(&directory).unwrap().manifest;
    // A trial that is void is repeated, and its settings are made again.
    let made = 2 * manifest.trials.len();
    assert_eq!(events.matches(read_back).count(), made, "one on each: {events}");
    let trial = manifest.trials.last().unwrap();
    assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    let receivers: Vec<&str> = trial.pairs.iter().map(|pair| pair.receiver.as_str()).collect();
    assert_eq!(receivers, ["sut", "sut2"], "{:?}", trial.pairs);
    for pair in &trial.pairs {
        assert!(pair.offered_packets > 500, "{pair:?}");
        assert_eq!(pair.delivered_packets, Some(pair.offered_packets), "{pair:?}");
        let host = &trial.hosts[&pair.receiver];
        assert_eq!(host.ledger.as_ref().unwrap().unaccounted_packets, Some(0), "{host:?}");
        // Rates are right only if the instants of each host were brought to one clock.
        assert!((200.0..4_000.0).contains(&host.delivered_pps.unwrap()), "{host:?}");
    }
    assert_eq!(trial.hosts.keys().collect::<Vec<_>>(), ["gen1", "sut", "sut2"]);
    // A day between the clocks, and delays of less than a second at both.
    let serve = |name: &str| trial.workloads[name]["result"]["one_way_delay_us"]["p50"].as_f64();
    for name in ["serve@sut", "serve@sut2"] {
        let delay_us = serve(name).unwrap_or_else(|| panic!("{name}: {:?}", trial.workloads));
        assert!((0.0..1e6).contains(&delay_us), "{name}: {delay_us}");
    }
    site.holds_nothing(SOON);
}

#[test]
fn a_receiver_that_is_lost_ends_the_run_on_all_hosts() {
    let Some(mut site) = site() else { return };
    let inventory = site.add_receiver();
    let out = site.path("runs");
    let words = ["run", "udp-pinning", "--hosts", &inventory, "--out", &out, "--trials", "1"];
    let long = ["trials.measure=60s", "trials.time_limit=5min"];
    let sets: Vec<&str> = QUICK.iter().chain(&long).flat_map(|set| ["--set", set]).collect();
    let run = site.start(&[&words[..], &sets].concat());
    site.wait_for("gen1", " load udp ");
    site.wait_for("sut2", " serve udp ");
    site.kill_in("sut2", " endpoint");
    run.wait().ends(5).warns("sut2 was lost");
    site.holds_nothing(SOON);
}
