//! Alerts over counters when the exporter restarts: each has a case in which it goes on to fire, and one in which it stays quiet.

use std::collections::{BTreeMap, BTreeSet};

use regex_lite::Regex;
use rxpath_export::METRICS;
use rxpath_export::families::MetricKind;

use super::{HISTOGRAM, found, text};

/// Whether a series is one of a metric that begins again at 0 with the process.
fn is_counter(series: &str) -> bool {
    let is_its = |rest: &str| rest.is_empty() || HISTOGRAM.contains(&rest);
    let counters = METRICS.iter().filter(|metric| metric.kind != MetricKind::Gauge);
    counters.map(|metric| series.strip_prefix(metric.name)).any(|rest| rest.is_some_and(is_its))
}

/// Whether an expression asks for a counter, by itself or through recorded series.
fn has_counter(expression: &str, recorded: &BTreeMap<String, String>) -> bool {
    let names = found(r"\b((?:\w+:)?rxpath_\w+(?::\w+)?)", expression);
    names.iter().any(|name| match recorded.get(name) {
        Some(rule) => has_counter(rule, recorded),
        None => is_counter(name),
    })
}

/// The rules of a file by name, each up to its annotations.
fn rules(file: &str, begin: &str) -> BTreeMap<String, String> {
    let file = text(file);
    let items = file.split(begin).skip(1).filter_map(|item| item.split_once('\n'));
    let own = |rule: &str| rule.split("annotations:").next().unwrap_or_default().to_owned();
    items.map(|(name, rule)| (name.to_owned(), own(rule))).collect()
}

/// `90m` and `1h`, in minutes.
fn minutes(time: &str) -> u32 {
    let (number, unit) = time.split_at(time.len() - 1);
    number.parse::<u32>().unwrap() * if unit == "h" { 60 } else { 1 }
}

/// The minute in which values of promtool fall: 3 of `0+60x2 60+60x5`.
fn restart(values: &str) -> Option<u32> {
    let (mut minute, mut last) = (0, f64::NEG_INFINITY);
    for part in values.split(' ').filter(|part| *part != "stale") {
        let (value, times) = part.split_once('x').unwrap_or((part, "0"));
        let times: u32 = times.parse().unwrap();
        if value == "_" {
            minute += times.max(1);
            continue;
        }
        let (first, step) = value.split_once('+').unwrap_or((value, "0"));
        let [first, step] = [first, step].map(|number| number.parse::<f64>().unwrap());
        if first < last {
            return Some(minute);
        }
        last = first + step * f64::from(times);
        minute += times + 1;
    }
    None
}

/// The hosts of a test whose counters begin again, each with the minute.
fn restarts(test: &str) -> BTreeMap<String, u32> {
    let series =
        Regex::new(r#"series: '(\w+)\{[^']*instance="(\w+)"[^']*', values: '([^']*)'"#).unwrap();
    let counters = series.captures_iter(test).filter(|hit| is_counter(&hit[1]));
    counters.filter_map(|hit| Some((hit[2].to_owned(), restart(&hit[3])?))).collect()
}

/// Whether an alert fires on hosts that restarted at most so many minutes before the test looks.
fn after_restarts(cases: &str, alert: &str, within: u32) -> BTreeSet<bool> {
    let mut seen = BTreeSet::new();
    for test in cases.split("\n  - interval:") {
        let restarts = restarts(test);
        let looks = test.split("eval_time: ").skip(1);
        for look in looks.filter(|look| found(r"alertname: (\w+)", look) == [alert]) {
            let at = minutes(&found(r"^(\d+[mh])", look)[0]);
            let firing = found(r"instance: (\w+)", look);
            let recent =
                restarts.iter().filter(|(_, then)| (**then..=**then + within).contains(&at));
            seen.extend(recent.map(|(host, _)| firing.contains(host)));
        }
    }
    seen
}

/// It fires so soon after the restart only if it was pending before.
#[test]
fn an_alert_over_counters_outlives_a_restart_and_none_sets_it_off() {
    let (recorded, cases) = (rules("rules.yml", "- record: "), text("rules_test.yml"));
    let mut count = 0;
    for (alert, rule) in rules("alerts.yml", "- alert: ") {
        if !has_counter(&rule, &recorded) {
            continue;
        }
        let pending = minutes(&found(r"for: (\d+[mh])", &rule)[0]);
        let seen = after_restarts(&cases, &alert, pending);
        let why = "rules_test.yml needs a host that restarts with it and one that restarts without it, not longer than its `for` ago";
        assert_eq!(seen, BTreeSet::from([false, true]), "{alert}: {why}");
        count += 1;
    }
    assert!(count > 10, "{count}");
}

#[test]
fn a_restart_is_where_values_fall() {
    for (values, minute) in [
        ("0+60x2 60+60x5", Some(3)),
        ("0+60x2 _x4 420+60x5", None),
        ("0+60x2 _x4 60+60x5", Some(7)),
        ("600x3 _ 0x2", Some(5)),
        ("1x5 stale", None),
    ] {
        assert_eq!(restart(values), minute, "{values}");
    }
}
