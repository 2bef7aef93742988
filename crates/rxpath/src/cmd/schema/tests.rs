//! The schemas of the types; those next to the sources, which are built in, are compared with them.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::envelope::StreamLine;
use rxpath_lab::selftest::SelftestResult;
use rxpath_load::tcp::result as tcp;
use rxpath_load::udp::result::{self as udp, LoadResult, ServeResult};
use rxpath_load::{http::load::result as http_load, http::serve::result as http_serve};
use rxpath_record::capacity::Capacity;
use rxpath_record::schema::printed;
use rxpath_record::watch;
use schemars::{Schema, schema_for};
use serde_json::Value;

use super::built_in;
use crate::cmd::prelude::*;

/// Name and schema; a new kind of output adds one line.
fn all() -> Vec<(&'static str, Schema)> {
    let mut all = rxpath_record::schema::schemas().to_vec();
    all.extend([
        ("serve-http", printed::<Envelope<Value, http_serve::ServeResult>>()),
        ("serve-udp", printed::<Envelope<Value, ServeResult>>()),
        ("load-udp", printed::<Envelope<Value, LoadResult>>()),
        ("load-http", printed::<Envelope<Value, http_load::LoadResult>>()),
        ("serve-tcp", printed::<Envelope<Value, tcp::ServeResult>>()),
        ("load-tcp-stream", printed::<Envelope<Value, tcp::StreamResult>>()),
        ("load-tcp-rr", printed::<Envelope<Value, tcp::TransactionsResult>>()),
        ("load-tcp-crr", printed::<Envelope<Value, tcp::TransactionsResult>>()),
        ("model-eval", printed::<Envelope<Value, rxpath_model::Evaluated>>()),
        ("doctor", printed::<Envelope<Value, rxpath_bpf::doctor::Diagnosis>>()),
        ("trace", printed::<Envelope<Value, crate::cmd::trace::TraceResult>>()),
        ("steal", printed::<Envelope<Value, rxpath_bpf::steal::Steal>>()),
        ("model-bounds", printed::<Envelope<Value, rxpath_model::bounds::FluidBounds>>()),
        ("check", printed::<Envelope<Value, rxpath_tune::Report>>()),
        ("check-summary", printed::<Envelope<Value, crate::output::check::summary::Summarized>>()),
        ("check-queues", printed::<Envelope<Value, crate::cmd::check::queues::QueueCheckResult>>()),
        ("check-flow", printed::<Envelope<Value, crate::cmd::check::flow::Landings>>()),
        ("capacity", printed::<Envelope<crate::cmd::capacity::Settings, Capacity>>()),
        ("capture", printed::<Envelope<Value, rxpath_host::lab::capture::Captured>>()),
        ("compare", printed::<Envelope<Value, rxpath_record::compared::Compared>>()),
        ("diagnose", printed::<Envelope<Value, crate::cmd::diagnose::host::Judged>>()),
        ("diagnose-runs", printed::<Envelope<Value, crate::cmd::diagnose::runs::All>>()),
        ("diagnose-selftest", printed::<Envelope<Value, SelftestResult>>()),
        // A file that `rxpath model` reads, also those of earlier versions.
        ("calibration", schema_for!(rxpath_model::calibration::Calibration)),
        ("model-calibrate", printed::<Envelope<Value, rxpath_model::calibration::Calibration>>()),
        ("model-validate", printed::<Envelope<Value, rxpath_lab::predict::validate::Validation>>()),
        ("model-simulate", printed::<Envelope<Value, crate::cmd::model::simulate::Simulated>>()),
        ("watch", printed::<Envelope<watch::WatchSettings, watch::WatchFrame>>()),
        ("export-status", printed::<Envelope<Value, crate::cmd::export::status::ExportStatus>>()),
        ("list", printed::<Envelope<Value, crate::cmd::list::ListResult>>()),
        ("explain", printed::<Envelope<Value, Vec<crate::output::explain::Explained<'_>>>>()),
        ("reproduce", printed::<Envelope<Value, crate::cmd::reproduce::Reproduced>>()),
        ("report", printed::<Envelope<Value, crate::cmd::report::Reports>>()),
        ("cleanup", printed::<Envelope<Value, crate::cmd::cleanup::Cleaned>>()),
        (
            "hosts-check",
            printed::<Envelope<Value, BTreeMap<String, rxpath_record::manifest::HostPart>>>(),
        ),
        (
            "hosts-cleanup",
            printed::<Envelope<Value, Vec<crate::cmd::hosts::cleanup::HostCleaned>>>(),
        ),
        ("run-plan", printed::<Envelope<Value, rxpath_lab::plan::RunPlan>>()),
        ("run-result", printed::<Envelope<Value, rxpath_record::manifest::Manifest>>()),
        ("warning", printed::<Warning>()),
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
    [
        ("serve-udp-line", printed::<StreamLine<Value, udp::Interval, ServeResult>>()),
        ("load-udp-line", printed::<StreamLine<Value, udp::Interval, LoadResult>>()),
        ("serve-tcp-line", printed::<StreamLine<Value, tcp::Interval, tcp::ServeResult>>()),
        ("load-tcp-stream-line", printed::<StreamLine<Value, tcp::Interval, tcp::StreamResult>>()),
        (
            "load-tcp-rr-line",
            printed::<StreamLine<Value, tcp::Interval, tcp::TransactionsResult>>(),
        ),
        (
            "load-tcp-crr-line",
            printed::<StreamLine<Value, tcp::Interval, tcp::TransactionsResult>>(),
        ),
        (
            "serve-http-line",
            printed::<StreamLine<Value, http_serve::Interval, http_serve::ServeResult>>(),
        ),
        (
            "load-http-line",
            printed::<StreamLine<Value, http_load::Interval, http_load::LoadResult>>(),
        ),
        (
            "watch-line",
            printed::<StreamLine<watch::WatchSettings, watch::WatchFrame, watch::WatchFrame>>(),
        ),
    ]
}

/// Gives the schema its title and removes rustdoc link marks from its texts.
fn readable(name: &str, schema: &mut Schema) {
    schema.insert("title".into(), format!("rxpath {name}").into());
    for (key, value) in schema.ensure_object().iter_mut() {
        unlinked(key, value);
    }
}

/// ``[`StreamLine`](path)`` and ``[`StreamLine`]`` as `StreamLine` in each description below.
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
    let texts: BTreeMap<String, String> = texts.collect();
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

/// What the default value of `T` prints, `T` always prints: fields that may be left out are left out there.
#[track_caller]
fn requires_what_is_always_printed<T: Default + Serialize + JsonSchema>(schema: &Schema) {
    let name = T::schema_name();
    let value = serde_json::to_value(T::default()).unwrap();
    let always: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let required = schema.pointer(&format!("/$defs/{name}/required")).unwrap();
    let required: BTreeSet<&str> =
        required.as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    assert_eq!(required, always, "{name}");
}

#[test]
fn what_is_always_printed_is_required() {
    use rxpath_core::measured::{CpuBreakdown, IrqLine, NapiPolls, ProbeCost, StageTimes};
    use rxpath_record::evidence::{TcpUse, WindowEvidence};
    let all: BTreeMap<&str, Schema> = all().into_iter().collect();
    let steal = &all["steal"];
    requires_what_is_always_printed::<rxpath_bpf::steal::TaskTaken>(steal);
    requires_what_is_always_printed::<rxpath_bpf::steal::probe::StealVictim>(steal);
    requires_what_is_always_printed::<CpuBreakdown>(steal);
    requires_what_is_always_printed::<ProbeCost>(steal);
    let trace = &all["trace"];
    requires_what_is_always_printed::<NapiPolls>(trace);
    requires_what_is_always_printed::<IrqLine>(trace);
    requires_what_is_always_printed::<StageTimes>(trace);
    let diagnose = &all["diagnose"];
    requires_what_is_always_printed::<WindowEvidence>(diagnose);
    requires_what_is_always_printed::<TcpUse>(diagnose);
}
