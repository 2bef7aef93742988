//! Rules, alerts and dashboards over the metrics of `rxpath export`: what they ask for exists, and Prometheus takes them.

mod restarts;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use regex_lite::Regex;
use rxpath_export::METRICS;
use serde_json::Value;

use crate::export::{Scraper, installed, start_with, target};

/// What the series of a histogram add to its name.
const HISTOGRAM: [&str; 3] = ["_bucket", "_sum", "_count"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring").canonicalize().unwrap()
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn rxpath(words: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// What the first group of a pattern finds in a text.
fn found(pattern: &str, text: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    pattern.captures_iter(text).map(|hit| hit[1].to_owned()).collect()
}

/// A panel: its place and title, and its queries.
struct Panel {
    at: String,
    queries: Vec<String>,
}

/// The panels of a dashboard, after what every dashboard must hold.
fn panels(name: &str) -> Vec<Panel> {
    let board: Value = serde_json::from_str(&text(&format!("dashboards/{name}.json"))).unwrap();
    let mut seen = BTreeSet::new();
    let mut panels = Vec::new();
    for panel in board["panels"].as_array().unwrap() {
        let at = format!("{name}: {}", panel["title"].as_str().unwrap());
        assert!(seen.insert(panel["id"].as_u64().unwrap()), "{at}: its id is used twice");
        let (x, w) = (panel["gridPos"]["x"].as_u64().unwrap(), panel["gridPos"]["w"].as_u64());
        assert!(x + w.unwrap() <= 24, "{at}: wider than the 24 columns of Grafana");
        let targets = panel["targets"].as_array().unwrap().iter();
        let query = |one: &Value| {
            assert_eq!(one["datasource"]["uid"], "${datasource}", "{at}");
            one["expr"].as_str().unwrap().to_owned()
        };
        let queries = targets.map(query).collect();
        panels.push(Panel { at, queries });
    }
    assert!(panels.len() > 5);
    panels
}

/// A query of a dashboard as Grafana sends it: with values in place of its variables.
fn filled(query: &str, instance: &str) -> String {
    let filled = query
        .replace("$__rate_interval", "1m")
        .replace("$instance", instance)
        .replace("$job", "rxpath");
    assert!(!filled.contains('$'), "{filled}: a variable without a value");
    filled
}

/// The metrics of the exporter.
fn exported() -> BTreeSet<String> {
    found(r"(?m)^(rxpath_\w+)", &rxpath(&["export", "--names"]).unwrap()).into_iter().collect()
}

/// The queries of rules, alerts and panels, each with its place.
fn queries() -> Vec<(String, String)> {
    let mut queries: Vec<(String, String)> = Vec::new();
    for name in ["rules.yml", "alerts.yml"] {
        // No names in comments and annotations.
        let text = text(name);
        let kept: Vec<&str> = text
            .lines()
            .filter(|line| {
                !["#", "summary:", "runbook:"].iter().any(|no| line.trim_start().starts_with(no))
            })
            .collect();
        queries.push((name.to_owned(), kept.join("\n").replace("- name: rxpath", "")));
    }
    for board in ["host", "fleet"] {
        for panel in panels(board) {
            queries.extend(panel.queries.into_iter().map(|query| (panel.at.clone(), query)));
        }
    }
    queries
}

/// Pages with queries, and how these are found.
const DOCUMENTED: [(&str, &str); 3] = [
    ("how-to/export-to-prometheus.md", r"\? \| `([^`]+)` \|"),
    ("how-to/run-in-kubernetes.md", r"(?s)```\n( +label_replace.+?)\n +```"),
    ("reference/export.md", r"`(rate\([^`]+)`"),
];

/// The queries of the documents, each with its page.
fn documented() -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for (page, pattern) in DOCUMENTED {
        let hits = found(pattern, &text(&format!("../docs/{page}")));
        assert!(!hits.is_empty(), "{page}: no query");
        queries.extend(hits.into_iter().map(|query| (page.to_owned(), query)));
    }
    queries
}

/// The metric that a series belongs to, or its own name.
fn metric<'n>(series: &'n str, exported: &BTreeSet<String>) -> &'n str {
    let of_histogram = HISTOGRAM.iter().filter_map(|end| series.strip_suffix(end));
    let metric = [series].into_iter().chain(of_histogram).find(|name| exported.contains(*name));
    metric.unwrap_or(series)
}

#[test]
fn everything_that_is_asked_for_is_exported_or_recorded() {
    let exported = exported();
    let recorded: BTreeSet<String> =
        found(r"- record: (\S+)", &text("rules.yml")).into_iter().collect();
    let mut asked = BTreeSet::new();
    for (at, query) in queries().into_iter().chain(documented()) {
        for name in found(r"\b((?:\w+:)?rxpath_\w+(?::\w+)?)", &query) {
            let known = if name.contains(':') { &recorded } else { &exported };
            assert!(known.contains(metric(&name, known)), "{at}: nothing has the name {name}");
            asked.insert(name);
        }
    }
    assert!(asked.len() > 20, "{asked:?}");
    let unused: Vec<_> = recorded.difference(&asked).collect();
    assert!(unused.is_empty(), "recorded under names that are not found: {unused:?}");
}

/// Prometheus takes a label that no series has, and finds nothing.
#[test]
fn a_query_asks_for_labels_that_its_metric_has() {
    let (exported, selector) = (exported(), Regex::new(r"\b(rxpath_\w+)\{([^}]*)\}").unwrap());
    // Those of a scrape, and of the buckets of a histogram.
    let of_all = ["job", "instance", "le"];
    let mut count = 0;
    for (at, query) in queries().into_iter().chain(documented()) {
        for hit in selector.captures_iter(&query) {
            let name = metric(&hit[1], &exported);
            let labels = METRICS.iter().find(|metric| metric.name == name).unwrap().labels;
            for label in found(r#"(\w+)\s*(?:=~|!~|!=|=)\s*""#, &hit[2]) {
                let label = label.as_str();
                let is_there = of_all.contains(&label) || labels.contains(&label);
                assert!(is_there, "{at}: {name} has no label {label}");
                count += 1;
            }
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn the_fleet_has_a_heatmap_of_limited_time_by_stage() {
    let board: Value = serde_json::from_str(&text("dashboards/fleet.json")).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let of_stages = panels.iter().find(|panel| panel["type"] == "heatmap").unwrap();
    let query = of_stages["targets"][0]["expr"].as_str().unwrap();
    for part in ["sum by (stage)", "rate(rxpath_path_limited_seconds_total{"] {
        assert!(query.contains(part), "{query}");
    }
    // Its rows are the stages: no numbers to put into buckets.
    assert_eq!(of_stages["targets"][0]["legendFormat"], "{{stage}}");
    assert_eq!(of_stages["options"]["calculate"], false);
}

/// Metrics that nothing shows, and why.
const NOT_SHOWN: [(&str, &str); 2] = [
    ("rxpath_softirq_busiest_cpu", "the number of a CPU is no quantity to draw"),
    ("rxpath_stage_latencies_total", "the histogram of the same latencies has their number"),
];

#[test]
fn every_metric_is_in_a_panel_a_rule_or_an_alert() {
    let exported = exported();
    let names = |(_, query): (String, String)| found(r"\b(rxpath_\w+)", &query);
    let shown: BTreeSet<String> =
        queries().into_iter().flat_map(names).map(|name| metric(&name, &exported).into()).collect();
    let left_out: BTreeSet<String> = NOT_SHOWN.iter().map(|(name, _)| (*name).into()).collect();
    let hidden: BTreeSet<String> = exported.difference(&shown).cloned().collect();
    assert_eq!(hidden, left_out, "the left ones are shown nowhere");
}

#[test]
fn every_alert_has_a_runbook_that_explain_answers_and_a_case_in_which_it_fires() {
    let (alerts, cases) = (text("alerts.yml"), text("rules_test.yml"));
    let names = found(r"- alert: (\w+)", &alerts);
    let runbooks = found(r#"runbook: "rxpath explain (.+)""#, &alerts);
    assert!(names.len() > 10 && names.len() == runbooks.len(), "{names:?} {runbooks:?}");
    let table = text("../docs/how-to/alert-with-prometheus.md");
    for name in &names {
        assert!(
            table.contains(&format!("| `{name}` |")),
            "{name}: not in the table of the documents"
        );
        let fires = format!("alertname: {name}\n        exp_alerts:\n          - exp_labels:");
        assert!(cases.contains(&fires), "{name}: no case of rules_test.yml has it firing");
    }
    let page = rxpath(&["export", "--once", "--no-bpf", "--interval", "100ms"]).unwrap();
    let stages = found(r#"rxpath_path_limited\{stage="(.+)"\}"#, &page);
    assert!(stages.len() > 20, "{page}");
    for runbook in runbooks {
        let topics = match runbook.as_str() {
            "{{ $labels.stage }}" => stages.clone(),
            // A rule's name: explain has every rule by construction.
            "{{ $labels.rule }}" => vec!["rmem-max".to_owned()],
            _ => vec![runbook],
        };
        for topic in topics {
            let words: Vec<&str> = ["explain"].into_iter().chain(topic.split(' ')).collect();
            assert!(rxpath(&words).is_some(), "rxpath explain {topic} knows nothing");
        }
    }
}

/// What the cases of an alert have: hosts, those of each test apart, and sets of labels with which it is to fire.
fn hosts_and_firings(cases: &str, alert: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let is_its = |test: &&str| found(r"alertname: (\w+)", test).iter().any(|name| name == alert);
    let tests = cases.split("\n  - interval:").skip(1).filter(is_its);
    let (mut hosts, mut firings) = (BTreeSet::new(), BTreeSet::new());
    for (at, test) in tests.enumerate() {
        let apart =
            |pattern: &str| found(pattern, test).into_iter().map(move |one| format!("{at}: {one}"));
        hosts.extend(apart(r#"(job="\w+",instance="\w+")"#));
        firings.extend(apart(r"exp_labels: (\{.+?\})"));
    }
    (hosts, firings)
}

#[test]
fn every_alert_has_three_hosts_in_its_cases_one_on_which_it_fires_and_one_on_which_it_does_not() {
    let cases = text("rules_test.yml");
    for alert in found(r"- alert: (\w+)", &text("alerts.yml")) {
        let (hosts, firings) = hosts_and_firings(&cases, &alert);
        assert!(hosts.len() >= 3, "{alert}: only {hosts:?}");
        assert!(
            !firings.is_empty() && firings.len() < hosts.len(),
            "{alert}: {firings:?} {hosts:?}"
        );
        let is_its = |test: &&str| test.contains(&format!("alertname: {alert}\n"));
        let mut tests = cases.split("\n  - interval:").filter(is_its);
        let has_gap = |test: &str| !found(r"values: '.*( _x\d+ )[\d.]", test).is_empty();
        assert!(tests.any(has_gap), "{alert}: no case with scrapes after a gap");
    }
}

fn promtool(program: &Path, words: &[&str]) {
    let output = Command::new(program).args(words).current_dir(folder()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {words:?}: {told}");
}

#[test]
fn promtool_takes_rules_and_panels_and_the_alerts_fire_when_they_should() {
    let Some(program) = installed("promtool") else {
        return crate::skip::skip("prometheus", "no promtool on this machine");
    };
    promtool(&program, &["check", "rules", "rules.yml", "alerts.yml"]);
    promtool(&program, &["test", "rules", "rules_test.yml"]);
    let mut file = "groups:\n- name: panels\n  rules:\n".to_owned();
    let of_panels = ["host", "fleet"].into_iter().flat_map(panels);
    let of_panels = of_panels.flat_map(|panel| panel.queries).map(|query| filled(&query, "h"));
    for query in of_panels.chain(documented().into_iter().map(|(_, query)| query)) {
        let quoted = serde_json::to_string(&query).unwrap();
        let number = file.len();
        file.push_str(&format!("  - {{record: 'panel{number}', expr: {quoted}}}\n"));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("panels.yml");
    fs::write(&path, file).unwrap();
    promtool(&program, &["check", "rules", path.to_str().unwrap()]);
}

/// Series in the answer to a query; `None` while Prometheus does not answer.
fn series(scraper: &Scraper, query: &str) -> Option<usize> {
    let answer = scraper.answer(query)?;
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    Some(answer["data"]["result"].as_array()?.len())
}

#[test]
fn a_real_prometheus_has_an_answer_for_every_panel_and_rule() {
    let Some(program) = installed("prometheus") else {
        return crate::skip::skip("prometheus", "no prometheus on this machine");
    };
    // Probes are for the tests that run alone; there is one exporter with them at a time.
    let (_running, address) =
        start_with(&["--no-bpf", "--listen", "127.0.0.1:0", "--interval", "200ms"]);
    let instance = target(&address);
    let rules = format!("rule_files: ['{0}/rules.yml', '{0}/alerts.yml']", folder().display());
    let scraper = Scraper::start(&program, &instance, &rules);
    let mut queries = found(r"- record: (\S+)", &text("rules.yml"));
    for panel in ["host", "fleet"].into_iter().flat_map(panels) {
        queries.extend(panel.queries.iter().map(|query| filled(query, &instance)));
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    // A rate needs two scrapes, and rules over rules an evaluation each.
    while series(&scraper, "instance:rxpath_agent_cpu:rate5m") != Some(1)
        || series(&scraper, "instance_stage:rxpath_packets_lost:rate5m").is_none_or(|n| n == 0)
    {
        assert!(Instant::now() < deadline, "no rule has a value: {:?}", scraper.answer("up"));
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(100));
    }
    for query in queries {
        let names = found(r"\b(rxpath_\w+)", &query);
        // A metric that this host does not have (no BPF, no finding) is no fault of the query.
        let is_there = names.iter().all(|name| series(&scraper, name).is_some_and(|n| n > 0));
        let is_quiet = query.contains(":ratio_rate5m") || query.contains("cpu_stolen");
        if is_there && !is_quiet {
            assert!(series(&scraper, &query).is_some_and(|n| n > 0), "{query} has no answer");
        }
    }
}
