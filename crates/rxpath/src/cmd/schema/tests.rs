//! The schemas of the types; those next to the sources, which are built in, are compared with them.

use rxpath_core::envelope::Line;
use rxpath_load::tcp::result as tcp;
use rxpath_load::udp::result::{self as udp, LoadResult, ServeResult};
use rxpath_load::{http::load::result as http_load, http::serve::result as http_serve};
use schemars::{Schema, schema_for};
use serde_json::Value;

use super::built_in;
use crate::cmd::prelude::*;

/// Name and schema; a new kind of output adds one line.
fn all() -> Vec<(&'static str, Schema)> {
    let mut all = rxpath_record::schema::schemas().to_vec();
    all.extend([
        ("serve-http", schema_for!(Envelope<Value, http_serve::ServeResult>)),
        ("serve-udp", schema_for!(Envelope<Value, ServeResult>)),
        ("load-udp", schema_for!(Envelope<Value, LoadResult>)),
        ("load-http", schema_for!(Envelope<Value, http_load::LoadResult>)),
        ("serve-tcp", schema_for!(Envelope<Value, tcp::ServeResult>)),
        ("load-tcp-stream", schema_for!(Envelope<Value, tcp::StreamResult>)),
        ("load-tcp-rr", schema_for!(Envelope<Value, tcp::TransactionsResult>)),
        ("load-tcp-crr", schema_for!(Envelope<Value, tcp::TransactionsResult>)),
        ("model-eval", schema_for!(Envelope<Value, rxpath_model::Evaluated>)),
        ("doctor", schema_for!(Envelope<Value, rxpath_bpf::doctor::Diagnosis>)),
        ("trace", schema_for!(Envelope<Value, crate::cmd::trace::TraceResult>)),
        ("steal", schema_for!(Envelope<Value, rxpath_bpf::steal::Steal>)),
        ("model-bounds", schema_for!(Envelope<Value, rxpath_model::bounds::Bounds>)),
        ("check", schema_for!(Envelope<Value, rxpath_tune::Report>)),
        ("check-summary", schema_for!(Envelope<Value, crate::output::check::summary::Summarized>)),
        ("check-queues", schema_for!(Envelope<Value, crate::cmd::check::queues::Queues>)),
        ("check-flow", schema_for!(Envelope<Value, crate::cmd::check::flow::Landings>)),
        (
            "capacity",
            schema_for!(Envelope<crate::cmd::capacity::Settings, rxpath_record::capacity::Capacity>),
        ),
        ("capture", schema_for!(Envelope<Value, rxpath_host::capture::Captured>)),
        ("compare", schema_for!(Envelope<Value, crate::cmd::compare::Compared>)),
        ("diagnose", schema_for!(Envelope<Value, crate::cmd::diagnose::host::Judged>)),
        ("diagnose-runs", schema_for!(Envelope<Value, crate::cmd::diagnose::runs::All>)),
        ("diagnose-selftest", schema_for!(Envelope<Value, crate::cmd::diagnose::selftest::Answer>)),
        ("calibration", schema_for!(rxpath_model::calibration::Calibration)),
        ("model-calibrate", schema_for!(Envelope<Value, rxpath_model::calibration::Calibration>)),
        ("model-validate", schema_for!(Envelope<Value, crate::cmd::model::Validation>)),
        ("model-simulate", schema_for!(Envelope<Value, crate::cmd::model::Simulated>)),
        (
            "watch",
            schema_for!(Envelope<rxpath_record::watch::Settings, rxpath_record::watch::Frame>),
        ),
        ("export-status", schema_for!(Envelope<Value, crate::cmd::export::status::ExportStatus>)),
        ("list", schema_for!(Envelope<Value, crate::cmd::list::Answer>)),
        ("explain", schema_for!(Envelope<Value, Vec<crate::output::explain::Explained>>)),
        ("reproduce", schema_for!(Envelope<Value, crate::cmd::reproduce::Reproduced>)),
        ("report", schema_for!(Envelope<Value, crate::cmd::report::Reports>)),
        ("cleanup", schema_for!(Envelope<Value, crate::cmd::cleanup::Cleaned>)),
        (
            "hosts-check",
            schema_for!(
                Envelope<Value, std::collections::BTreeMap<String, rxpath_record::manifest::HostPart>>
            ),
        ),
        ("hosts-cleanup", schema_for!(Envelope<Value, Vec<crate::cmd::hosts::cleanup::HostCleaned>>)),
        ("run-plan", schema_for!(Envelope<Value, rxpath_lab::plan::Plan>)),
        ("run-result", schema_for!(Envelope<Value, rxpath_record::manifest::Manifest>)),
        ("warning", schema_for!(Warning)),
    ]);
    all.extend(lines());
    all.extend(crate::cmd::tune::schemas());
    for (name, schema) in &mut all {
        readable(name, schema);
    }
    all
}

/// The schemas of single lines of JSON Lines streams; `schema` in the first line of a stream names one.
fn lines() -> [(&'static str, Schema); 9] {
    use rxpath_record::watch;
    [
        ("serve-udp-line", schema_for!(Line<Value, udp::Interval, ServeResult>)),
        ("load-udp-line", schema_for!(Line<Value, udp::Interval, LoadResult>)),
        ("serve-tcp-line", schema_for!(Line<Value, tcp::Interval, tcp::ServeResult>)),
        ("load-tcp-stream-line", schema_for!(Line<Value, tcp::Interval, tcp::StreamResult>)),
        ("load-tcp-rr-line", schema_for!(Line<Value, tcp::Interval, tcp::TransactionsResult>)),
        ("load-tcp-crr-line", schema_for!(Line<Value, tcp::Interval, tcp::TransactionsResult>)),
        (
            "serve-http-line",
            schema_for!(Line<Value, http_serve::Interval, http_serve::ServeResult>),
        ),
        ("load-http-line", schema_for!(Line<Value, http_load::Interval, http_load::LoadResult>)),
        ("watch-line", schema_for!(Line<watch::Settings, watch::Frame, watch::Frame>)),
    ]
}

/// Gives the schema its title and removes rustdoc link marks from its texts.
fn readable(name: &str, schema: &mut Schema) {
    schema.insert("title".into(), format!("rxpath {name}").into());
    for (key, value) in schema.ensure_object().iter_mut() {
        unlinked(key, value);
    }
}

/// ``[`Line`](path)`` and ``[`Line`]`` as `Line` in each description below.
fn unlinked(key: &str, value: &mut Value) {
    match value {
        Value::String(text) if key == "description" => *text = without_links(text),
        Value::Array(items) => items.iter_mut().for_each(|item| unlinked("", item)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| unlinked(key, value)),
        _ => {}
    }
}

fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        out += before;
        let Some((name, behind)) = after.split_once("`]") else {
            return out + "[`" + after;
        };
        out += &format!("`{}`", name.rsplit("::").next().unwrap_or(name));
        rest = match behind.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    out + rest
}

/// With `RXPATH_WRITE_DOCS=1` they are written again.
#[test]
fn files_equal_the_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let texts = all().into_iter().map(|(name, schema)| {
        (format!("{name}.schema.json"), serde_json::to_string_pretty(&schema).unwrap() + "\n")
    });
    let texts: std::collections::BTreeMap<String, String> = texts.collect();
    if std::env::var("RXPATH_WRITE_DOCS").is_ok_and(|value| value == "1") {
        for (file, text) in texts {
            std::fs::write(directory.join(file), text).unwrap();
        }
        return;
    }
    let files = std::fs::read_dir(&directory).unwrap();
    assert_eq!(files.count(), texts.len(), "a file without a type, or the reverse: make schema");
    for (file, text) in texts {
        let kept = std::fs::read_to_string(directory.join(&file)).unwrap_or_default();
        assert_eq!(kept, text, "{file} is not up to date: make schema");
        let name = file.strip_suffix(".schema.json").unwrap();
        assert_eq!(built_in().get(name), Some(&text), "{name}, as the program has it");
    }
}

#[test]
fn texts_have_no_marks_of_rustdoc_and_titles_are_names() {
    assert_eq!(without_links("a [`Frame::window_s`] b [`X`](crate::X) c"), "a `window_s` b `X` c");
    for (name, schema) in all() {
        let text = serde_json::to_string(&schema).unwrap();
        assert!(!text.contains("[`"), "{name}: {text}");
        assert_eq!(schema.get("title").unwrap(), &format!("rxpath {name}"));
    }
}

#[test]
fn each_name_is_there_once_and_each_stream_has_its_answer() {
    let names: Vec<&str> = all().iter().map(|(name, _)| *name).collect();
    for (at, name) in names.iter().enumerate() {
        assert!(!names[..at].contains(name), "{name}");
        if let Some(answer) = name.strip_suffix("-line") {
            assert!(names.contains(&answer), "{name}");
        }
    }
}
