//! Topics to explain: rules, counters, metrics, drop reasons, stages, terms, experiments, exit statuses.
//!
//! Texts that exist elsewhere (rules, stages, places of loss, metrics, experiments, statuses) are taken from there.

use rxpath_diagnose::stages;
use rxpath_export::families;
use rxpath_record::ledger::Place;
use rxpath_record::metric::{Good, METRICS};
use rxpath_record::verdict::Stage;
use rxpath_tune::{Rule, rules};
use schemars::schema_for;

use super::{experiments, settings, written};
use crate::exit::Exit;
use crate::output::explain::topic::{Topic, TopicKind};
use crate::output::word;
use crate::tui::remedies;

/// Everything, in the order of [`TopicKind::ALL`].
pub fn all() -> anyhow::Result<Vec<Topic>> {
    let mut topics = written::terms()?;
    topics.push(stage_in_general());
    topics.extend(rules::all().map(rule));
    topics.extend(written::counters()?.into_iter().map(with_remedy));
    topics.extend(written::reasons()?.into_iter().map(with_remedy));
    topics.extend(stages());
    topics.extend(places());
    topics.extend(metrics());
    topics.extend(experiments::topics()?);
    topics.extend(Exit::STATUSES.iter().map(|(code, meaning)| {
        Topic::new(TopicKind::ExitStatus, format!("exit {code}"), *meaning)
            .also(&[
                &format!("exit status {code}"),
                &format!("exit code {code}"),
                &format!("status {code}"),
            ])
            .part("Meaning", format!("{meaning}; the same for every command"))
    }));
    Ok(topics)
}

fn rule(rule: &'static Rule) -> Topic {
    let mut topic = Topic::new(TopicKind::Rule, rule.id, rule.what);
    topic.also = settings::names(rule.set_now);
    topic.rule = Some(rule);
    topic
}

/// Adds the remedy that the live view has for this name.
fn with_remedy(topic: Topic) -> Topic {
    let last = topic.name.rsplit('.').next().unwrap_or_default().to_owned();
    match remedies().find(|(name, _)| *name == last) {
        Some((_, remedy)) => topic.part("What to do", remedy),
        None => topic,
    }
}

/// What all stages have in common, and their names.
fn stage_in_general() -> Topic {
    const WHAT: &str = "What `rxpath diagnose` names as the limit of the receive path: a part of the path, or a way in which a part \
                        is short of something.";
    let names: Vec<String> = Stage::ALL.iter().map(word).collect();
    Topic::new(TopicKind::Term, "stage", WHAT)
        .also(&["stages", "stage of diagnose", "stages of diagnose"])
        .part("What it is", WHAT)
        .part("The stages, in the order of the path (rxpath explain NAME)", names.join(", "))
}

fn stages() -> impl Iterator<Item = Topic> {
    let texts = texts(&serde_json::Value::from(schema_for!(Stage)));
    Stage::ALL.into_iter().map(move |stage| {
        let name = word(&stage);
        let text = texts.iter().find(|(known, _)| *known == name);
        let what = text.map_or_else(String::new, |(_, text)| text.clone());
        Topic::new(TopicKind::Stage, name, what.as_str())
            .see(stages::info(stage).check_rules)
            .part("What limits", what)
            .part("Found by", "rxpath diagnose, on this host or in a run")
    })
}

fn places() -> impl Iterator<Item = Topic> {
    texts(&serde_json::Value::from(schema_for!(Place))).into_iter().map(|(name, what)| {
        Topic::new(TopicKind::LossPlace, name, what.as_str())
            .part("Where packets are lost", what)
            .part(
                "Shown by",
                "the ledger of rxpath run and rxpath report, with the counter that owns the loss; \
             rxpath_lost_packets_total of rxpath export, where a receiving host can count it",
            )
    })
}

fn metrics() -> impl Iterator<Item = Topic> {
    METRICS.iter().map(|metric| {
        let good = match metric.good {
            Good::Up => "higher is better",
            Good::Down => "lower is better",
        };
        Topic::new(TopicKind::Metric, metric.name, metric.what)
            .part("What it is", metric.what)
            .part("Unit", format!("{}; {good}", metric.unit))
    })
}

/// How a metric of `rxpath export` begins, and no other name.
pub(super) const EXPORTED: &str = "rxpath_";

/// The metrics of `rxpath export`.
pub(super) fn exported() -> Vec<Topic> {
    let one = |metric: &rxpath_export::ExportedMetric| {
        let (kind, series) = match metric.kind {
            families::MetricKind::Counter => {
                ("counter: it never falls while the exporter lives", vec![])
            }
            families::MetricKind::Gauge => ("gauge: as the last window or check left it", vec![]),
            families::MetricKind::Histogram => (
                "histogram: counters of what was measured, by upper bound",
                ["bucket", "sum", "count"].map(|end| format!("{}_{end}", metric.name)).to_vec(),
            ),
        };
        let labels =
            if metric.labels.is_empty() { "none".into() } else { metric.labels.join(", ") };
        let page = Topic::new(TopicKind::Metric, metric.name, metric.what)
            .part("What it is", metric.what)
            .part("Kind", kind)
            .part("Labels", labels)
            .part("Where it comes from", "rxpath export; --names prints all of its metrics");
        Topic { also: series, ..page }
    };
    rxpath_export::METRICS.iter().map(one).collect()
}

/// The variants of an enum with their descriptions, from its schema: the type's doc comments are the text.
fn texts(schema: &serde_json::Value) -> Vec<(String, String)> {
    let variant = |one: &serde_json::Value| {
        let text = one["description"].as_str()?.split("\n\n").next()?.replace('\n', " ");
        let names = one.get("enum").and_then(|names| names.as_array()).cloned();
        let name = one.get("const").cloned().or_else(|| names?.first().cloned())?;
        Some((name.as_str()?.to_owned(), text))
    };
    schema["oneOf"].as_array().into_iter().flatten().filter_map(variant).collect()
}
