use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn finding(id: &str, device: Option<&str>) -> Value {
    json!({"id": id, "device": device, "area": "queues", "severity": "warn", "observed": "a \"b\"",
           "expected": "c", "why": "d", "effect_size": "tens", "effect": "e", "changes": [], "more": "f"})
}

fn report(kernel: &str, nics: &[(&str, &str, &str)], findings: &[(&str, Option<&str>)]) -> Value {
    let nics: Vec<Value> = nics
        .iter()
        .map(|(device, driver, firmware)| json!({"device": device, "driver": driver, "firmware": firmware}))
        .collect();
    let findings: Vec<Value> = findings.iter().map(|(id, device)| finding(id, *device)).collect();
    json!({"schema": "rxpath/check/1.0", "settings": {"goal": null, "kernel": kernel},
           "result": {"nics": nics, "findings": findings, "fine": []}, "warnings": []})
}

fn summary(reports: &[(&str, Value)]) -> Summary {
    let mut fleet = Fleet::default();
    for (name, report) in reports {
        fleet.add(name, report.to_string().as_bytes());
    }
    fleet.summary()
}

const ICE: (&str, &str, &str) = ("eth0", "ice", "4.30");

#[test]
fn the_odd_one_out_comes_first_with_its_difference() {
    let usual = [("ring-rx", Some("eth0")), ("tcp-sack", None)];
    let mut reports: Vec<(String, Value)> =
        (0..9).map(|n| (format!("h{n}"), report("6.12", &[ICE], &usual))).collect();
    reports.push(("other".into(), report("6.12", &[ICE], &[("tcp-sack", None), ("eee", None)])));
    reports.push(("near".into(), report("6.12", &[ICE], &[("ring-rx", Some("eth0"))])));
    let reports: Vec<(&str, Value)> =
        reports.iter().map(|(n, r)| (n.as_str(), r.clone())).collect();
    let summary = summary(&reports);
    let [group] = summary.groups.as_slice() else { panic!("{:#?}", summary.groups) };
    assert_eq!((group.hosts_count, group.odd_hosts_count), (11, 2));
    assert_eq!(group.usual_findings, ["ring-rx", "tcp-sack"]);
    let odd: Vec<&str> = group.odd_hosts.iter().map(|odd| odd.host.as_str()).collect();
    assert_eq!(odd, ["other", "near"]);
    let first = &group.odd_hosts[0];
    assert!((first.distance - 20.0 / 11.0).abs() < 1e-9, "{first:?}");
    let differences: Vec<(&str, bool, u64)> =
        first.differences.iter().map(|d| (d.id.as_str(), d.has_it, d.hosts_count)).collect();
    assert_eq!(differences, [("eee", true, 1), ("ring-rx", false, 10)]);
}

#[test]
fn a_host_is_in_the_group_of_each_of_its_nics_with_the_findings_of_that_nic() {
    let two = [ICE, ("eth1", "igb", "")];
    let findings = [("ring-rx", Some("eth1")), ("tcp-sack", None), ("mtu", Some("br0"))];
    let summary = summary(&[
        ("a", report("6.12", &two, &findings)),
        ("b", report("6.12", &two, &[])),
        ("c", report("6.12", &two, &[])),
        ("bare", report("6.12", &[], &[("tcp-sack", None)])),
    ]);
    let of = |driver: &str| summary.groups.iter().find(|group| group.driver == driver).unwrap();
    let ids = |driver: &str| -> Vec<String> {
        of(driver).odd_hosts[0].differences.iter().map(|d| d.id.clone()).collect()
    };
    assert_eq!(ids("ice"), ["tcp-sack"]);
    assert_eq!(ids("igb"), ["ring-rx", "tcp-sack"]);
    assert_eq!((of("").hosts_count, of("").odd_hosts_count), (1, 0), "one host is not odd");
    assert_eq!(summary.findings_count, 4);
    assert_eq!(summary.clean_hosts_count, 2);
}

#[test]
fn findings_count_hosts_once_and_devices_singly() {
    let two = [ICE, ("eth1", "ice", "4.30")];
    let summary = summary(&[
        ("a", report("6.12", &two, &[("ring-rx", Some("eth0")), ("ring-rx", Some("eth1"))])),
        ("b", report("6.12", &two, &[("ring-rx", Some("eth0")), ("eee", Some("eth0"))])),
    ]);
    let counts: Vec<(&str, u64, u64)> = summary
        .findings
        .iter()
        .map(|one| (one.id.as_str(), one.hosts_count, one.findings_count))
        .collect();
    assert_eq!(counts, [("ring-rx", 2, 3), ("eee", 1, 1)]);
}

#[test]
fn rare_versions_are_named() {
    let mut reports: Vec<(String, Value)> =
        (0..7).map(|n| (format!("h{n}"), report("6.12", &[ICE], &[]))).collect();
    reports.push(("old".into(), report("6.1", &[("eth0", "ice", "4.10")], &[])));
    let reports: Vec<(&str, Value)> =
        reports.iter().map(|(n, r)| (n.as_str(), r.clone())).collect();
    let driver = summary(&reports).drivers.remove(0);
    assert_eq!((driver.driver.as_str(), driver.hosts_count), ("ice", 8));
    assert_eq!(driver.firmwares[0].version, "4.10");
    assert_eq!(driver.firmwares[0].hosts, ["old"]);
    assert_eq!(driver.kernels[0].hosts, ["old"]);
    assert!(driver.kernels[1].hosts.is_empty(), "the usual is not named host by host");
}

#[test]
fn bad_files_are_told_by_name_with_what_is_wrong_and_the_others_count() {
    let good = report("6.12", &[ICE], &[("eee", None)]).to_string();
    let mut fleet = Fleet::default();
    let other = good.replace("rxpath/check/", "rxpath/doctor/");
    let newer = good.replace("check/1.0", "check/2.0");
    let no_list = good.replace("\"findings\":[", "\"fundings\":[");
    let unknown = good.replace("\"severity\":\"warn\"", "\"severity\":\"awful\"");
    for (name, content, _) in cases(&good, &other, &newer, &no_list, &unknown) {
        fleet.add(name, content.as_bytes());
    }
    fleet.add("binary", b"\x7fELF\x00\xff");
    fleet.add("good", good.as_bytes());
    fleet.add("later-minor", good.replace("check/1.0", "check/1.9").as_bytes());
    let summary = fleet.summary();
    assert_eq!(summary.hosts_count, 2);
    assert_eq!(summary.bad_files.len(), 10);
    for (name, _, wanted) in cases(&good, &other, &newer, &no_list, &unknown) {
        let bad = summary.bad_files.iter().find(|bad| bad.file == name).unwrap();
        assert!(bad.why.contains(wanted), "{name}: {}", bad.why);
    }
}

type Case<'a> = (&'a str, &'a str, &'a str);

fn cases<'a>(
    good: &'a str,
    other: &'a str,
    newer: &'a str,
    no_list: &'a str,
    unknown: &'a str,
) -> [Case<'a>; 9] {
    [
        ("empty", " \n", "empty"),
        ("cut", &good[..good.len() / 2], "cut off at line 1, column"),
        ("text", "queue 0 is fine", "not JSON"),
        ("list", "[1, 2]", "JSON without a schema"),
        ("plain", "{\"a\": 1}", "JSON without a schema"),
        ("other", other, "schema `rxpath/doctor/1.0`, not a report of `rxpath check --json`"),
        ("newer", newer, "of the newer version 2.0: this rxpath reads 1.x"),
        ("no-list", no_list, "not of the form of its schema: missing field `findings`"),
        ("unknown", unknown, "not of the form of its schema: unknown variant `awful`"),
    ]
}

#[test]
fn the_order_of_reading_makes_no_difference() {
    let reports: Vec<(String, String)> = (0..20)
        .map(|n| {
            let id = format!("rule-{}", n % 3);
            (format!("h{n}"), report("6.12", &[ICE], &[(id.as_str(), None)]).to_string())
        })
        .collect();
    let read = |range: std::ops::Range<usize>| {
        let mut fleet = Fleet::default();
        for (name, text) in &reports[range] {
            fleet.add(name, text.as_bytes());
        }
        fleet
    };
    let whole = read(0..20).summary();
    let mut parts = read(10..20);
    parts.merge(read(0..10));
    assert_eq!(parts.summary(), whole);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, &mut Ids::default());
    }

    #[test]
    fn a_report_cut_anywhere_is_bad(at in 0.0f64..1.0) {
        let text = report("6.12", &[ICE], &[("eee", None), ("ring-rx", Some("eth0"))]).to_string();
        let at = (text.len() as f64 * at) as usize;
        let bad = parse(&text.as_bytes()[..at], &mut Ids::default()).unwrap_err().to_string();
        prop_assert!(bad == "empty" || bad.starts_with("cut off at line "), "{bad}");
    }
}
