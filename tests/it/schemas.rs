//! The schemas next to the sources are those of the types.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

use serde_json::Value;

use crate::printed::rxpath;
use crate::program;
use crate::schema;
use crate::steered::Steered;

#[test]
fn the_program_prints_and_writes_the_files() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let written = tempfile::tempdir().unwrap();
    rxpath(&["schema", "--write", &written.path().display().to_string()]);
    let names = rxpath(&["schema"]);
    for name in names.lines() {
        let file = format!("{name}.schema.json");
        let [kept, copy] = [&directory, written.path()]
            .map(|place| std::fs::read_to_string(place.join(&file)).unwrap());
        assert_eq!(rxpath(&["schema", name]), kept, "{name}");
        assert_eq!(copy, kept, "{name}");
    }
    assert_eq!(names.lines().count(), std::fs::read_dir(directory).unwrap().count());
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    program::rxpath(&["schema", "ledgr"]).ends(2).warns("ledgr").warns("serve-udp");
}

fn host(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts").join(name);
    path.display().to_string()
}

#[test]
fn what_is_printed_is_as_its_schema_says() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree").display().to_string();
    let captured = rxpath(&["capture", &tree, "--json"]);
    assert!(schema::result("capture", &captured)["files_count"].as_u64() > Some(0));
    let two_nodes = host("bare-metal-2node");
    let ask = ["check", "--sysroot", &two_nodes, "--json"];
    schema::result("check", &rxpath(&ask));
    let queues = schema::result("check-queues", &rxpath(&[&ask[..], &["--queues"]].concat()));
    let device = &queues["devices"][0];
    assert!(device["rows"].as_array().unwrap().len() > 1, "{queues}");
    let name = device["device"].as_str().unwrap();
    let flow = ["--flow", "192.0.2.1:1000->192.0.2.2:2000/udp", "--dev", name];
    let asked = program::rxpath(&[&ask[..], &flow].concat());
    // 4 where the queue can't be known from here.
    assert!(matches!(asked.code, Some(0 | 4)), "{asked:?}");
    let landings = schema::result("check-flow", &asked.out);
    assert_eq!(landings["landings"].as_array().unwrap().len(), 1);
}

#[test]
fn lists_explanations_plans_and_reports_are_as_their_schemas_say() {
    schema::result("list", &rxpath(&["list", "--all", "--json"]));
    schema::result("list", &rxpath(&["list", "--keys", "--json"]));
    schema::result("explain", &rxpath(&["explain", "--json"]));
    for words in ["GRO", "rmem-max", "Udp.RcvbufErrors", "softirq", "exit 4", "filter"] {
        let found = schema::result("explain", &rxpath(&["explain", words, "--all", "--json"]));
        assert!(!found.as_array().unwrap().is_empty(), "{words}");
    }
    let local = ["run", "udp-pinning", "--set", "topology.kind=local", "--dry-run", "--json"];
    let plan = schema::result("run-plan", &rxpath(&local));
    assert!(!plan["trials"].as_array().unwrap().is_empty(), "{plan}");
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html").display().to_string();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs/one-variant");
    let run = run.display().to_string();
    let written = schema::result("report", &rxpath(&["report", &run, "--out", &page, "--json"]));
    assert_eq!(written["reports"][0]["path"], page);
    let done = program::rxpath(&["cleanup", "--json"]);
    // Without root it may not look.
    if done.code != Some(3) {
        schema::result("cleanup", &done.out);
    }
}

/// Lines of a stream, each of which must be as the schema says that the first one names. Gives the types that came.
#[track_caller]
fn valid(name: &str, lines: &[Value]) -> BTreeSet<String> {
    assert_eq!(lines[0]["schema"], format!("rxpath/{name}-line/1.0"));
    let wanted = format!("{name}-line");
    let schema: Value = serde_json::from_str(&rxpath(&["schema", &wanted])).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for line in lines {
        let errors: Vec<String> =
            validator.iter_errors(line).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{wanted}: {line}: {errors:#?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"type": "nosuch"})), "{wanted} takes anything");
    lines.iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
}

/// All that a steered workload printed, from its settings to its end.
fn stream(words: &[&str], then: impl FnOnce(&str, &mut Steered)) -> Vec<Value> {
    let mut workload = Steered::start(words);
    let first = workload.line();
    let addr = first["addr"].as_str().unwrap_or_default().to_owned();
    then(&addr, &mut workload);
    let mut lines = vec![first];
    while lines.last().is_some_and(|line| line["type"] != "result") {
        lines.push(workload.line());
    }
    workload.order("close");
    let Steered { mut child, lines: rest, .. } = workload;
    lines.extend(rest.lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    lines
}

#[test]
fn every_line_of_a_stream_is_as_the_schema_that_it_names() {
    for (protocol, load) in [
        ("udp", vec!["udp"]),
        ("tcp", vec!["tcp", "stream"]),
        ("tcp", vec!["tcp", "rr"]),
        ("tcp", vec!["tcp", "crr"]),
        ("http", vec!["http"]),
    ] {
        let every = ["--interval", "20ms"];
        let serve = [&["serve", protocol, "127.0.0.1:0"], &every[..]].concat();
        let mut loaded = Vec::new();
        let served = stream(&serve, |addr, serve| {
            let to = if protocol == "http" { format!("http://{addr}/") } else { addr.to_owned() };
            let words = [&["load"], &load[..], &[&to, "-d", "800ms"], &every[..]].concat();
            loaded = stream(&words, |_, load| load.order("start 1"));
            serve.order("stop");
        });
        let name = format!("load-{}", load.join("-"));
        for (name, lines) in [(format!("serve-{protocol}"), &served), (name, &loaded)] {
            let types = valid(&name, lines);
            for kind in ["settings", "ready", "interval", "result"] {
                assert!(types.contains(kind), "{name}: no {kind} in {types:?}");
            }
        }
    }
}

#[test]
fn every_line_of_a_live_view_is_as_the_schema_that_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.jsonl");
    let words = ["watch", "--no-bpf", "--interval", "100ms", "-d", "1s", "--json", "--record"];
    let printed = rxpath(&[&words[..], &[&file.display().to_string()]].concat());
    let parsed = |text: &str| {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let file = file.display().to_string();
    // A recording keeps of each frame what changed; replayed, its lines are those of the live view.
    for text in [printed, rxpath(&["watch", "--replay", &file, "--json"])] {
        let types = valid("watch", &parsed(&text));
        assert!(types.contains("settings") && types.contains("interval"), "{types:?}");
    }
}
