//! Every query of the dashboards and every recorded rule has data on a host with load and probes, asked of a real Prometheus.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rxpath_host::lab::netns::Namespace;
use rxpath_host::write::setter::{HostSetter, Setter};
use serde_json::Value;

use crate::bed::{RX_IP, send};
use crate::exporter::Running;
use crate::scraper::{Scraper, installed};
use crate::service::Service;
use crate::skip::skip;

/// Metrics without a series on a host on which nothing is wrong, and why.
const MAY_BE_EMPTY: [(&str, &str); 4] = [
    ("rxpath_probe_not_loaded", "every probe loads here"),
    ("rxpath_not_read", "root may read everything"),
    ("rxpath_counted_ratio", "within this budget the probes count all of the time"),
    ("rxpath_check_finding_info", "a host may have no finding"),
];
/// Ports of the receiver: one that is read, one whose queue is full, and one without a socket.
const READ: u16 = 4811;
const FULL: u16 = 4810;
const CLOSED: u16 = 4812;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring").canonicalize().unwrap()
}

/// Queries by where they stand, with values in place of Grafana's variables.
fn queries(instance: &str) -> Vec<(String, String)> {
    let rules = fs::read_to_string(folder().join("rules.yml")).unwrap();
    let records = rules.lines().filter_map(|line| line.trim().strip_prefix("- record: "));
    let mut all: Vec<_> =
        records.map(|name| ("rules.yml".to_owned(), name.trim().to_owned())).collect();
    for board in ["host", "fleet"] {
        let path = folder().join(format!("dashboards/{board}.json"));
        let text = fs::read_to_string(path).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        for panel in json["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let filled = target["expr"].as_str().unwrap();
                let filled = filled.replace("$__rate_interval", "1m").replace("$job", "rxpath");
                let filled = filled.replace("$instance", instance);
                all.push((format!("{board}: {}", panel["title"]), filled));
            }
        }
    }
    let is_exempt = |query: &str| MAY_BE_EMPTY.iter().any(|(metric, _)| query.contains(metric));
    all.retain(|(_, query)| !is_exempt(query));
    assert!(all.len() > 20, "{all:?}");
    all
}

/// Whether a query has a number.
fn has_data(scraper: &Scraper, query: &str) -> bool {
    let Some(answer) = scraper.answer(query) else { return false };
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    let series = answer["data"]["result"].as_array().unwrap();
    series.iter().any(|one| one["value"][1].as_str().is_some_and(|value| value != "NaN"))
}

/// A veth polls with NAPI only while GRO is on.
fn poll(rx: &Namespace) {
    let on = "rx-gro=on";
    rx.run(move |_| HostSetter::default().write(&"veth/features".parse().unwrap(), on))
        .unwrap()
        .unwrap();
}

#[test]
fn every_panel_and_rule_has_data_on_a_host_with_load_and_probes() {
    let Some(program) = installed("prometheus") else {
        return skip("prometheus", "no prometheus on this machine");
    };
    let Some(mut service) = Service::new() else { return };
    poll(&service.rx);
    let _full = service.rx.run(|_| UdpSocket::bind((RX_IP, FULL)).unwrap()).unwrap();
    let (tx, rx) = (service.tx.name().to_owned(), service.rx.name().to_owned());
    let to = format!("{RX_IP}:{READ}");
    service.start(&rx, &["serve", "udp", &to, "-d", "600s"]);
    service.start(&tx, &["load", "udp", &to, "--rate", "5k", "-d", "600s"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", &rx, "--budget", "100%", "--check-every", "1h"]);
    // Under this load a calibration may find no CPU that is idle enough.
    command.args(["--irq-entry", "5us"]);
    let exporter = Running::of(command);
    let rules = format!("rule_files: ['{}/rules.yml']", folder().display());
    let scraper = Scraper::start(&program, exporter.target(), &rules);
    let mut waiting = queries(exporter.target());
    let deadline = Instant::now() + Duration::from_secs(300);
    while !waiting.is_empty() {
        assert!(Instant::now() < deadline, "no data: {waiting:#?}\n{}", exporter.page());
        send(&service.tx, FULL, 200);
        send(&service.tx, CLOSED, 20);
        // why: the pace of looking, and of what is lost; the deadline above ends it.
        sleep(Duration::from_millis(500));
        waiting.retain(|(_, query)| !has_data(&scraper, query));
    }
}
