//! The forms of `rxpath check` that other programs read, held against their formats.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::commands::root;
use crate::program::{Said, rxpath};
use crate::skip::skip;

/// A host with findings of each severity, and a suppression.
fn sick() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("proc/sys/kernel/osrelease", "6.12.1-<&\"\n");
    put("proc/sys/net/ipv4/tcp_sack", "0\n");
    put("proc/sys/net/ipv4/tcp_low_latency", "1\n");
    put("proc/sys/net/ipv4/tcp_timestamps", "0\n");
    put("proc/sys/net/netfilter/nf_conntrack_count", "100\n");
    put("proc/sys/net/netfilter/nf_conntrack_max", "100\n");
    put(
        "suppress.toml",
        "[[suppress]]\nid = \"tcp-timestamps\"\nreason = \"a <lab> & no \\\"net\\\"\"\nuntil = \"2099-01-01\"\n",
    );
    dir
}

fn check(dir: &Path, more: &[&str]) -> Said {
    let config = dir.join("suppress.toml");
    let mut args =
        vec!["check", "--sysroot", dir.to_str().unwrap(), "--config", config.to_str().unwrap()];
    args.extend(more);
    rxpath(&args)
}

#[test]
fn ndjson_is_the_json_object_on_one_line_with_whose_it_is() {
    let dir = sick();
    let text = check(dir.path(), &["--format", "ndjson"]).ok();
    assert_eq!(text.matches('\n').count(), 1);
    let mut line: Value = serde_json::from_str(&text).unwrap();
    let whole = check(dir.path(), &["--json"]).ends(0).json();
    let fields = line.as_object_mut().unwrap();
    assert_eq!(fields.remove("host"), Some(Value::Null), "this tree has no name");
    assert_eq!(fields.remove("boot_id"), Some(Value::Null));
    assert!(fields.remove("time").unwrap().as_str().unwrap().ends_with('Z'));
    assert!(fields.remove("fingerprint").unwrap().as_str().unwrap().len() > 40);
    assert_eq!(fields.remove("version").unwrap(), env!("CARGO_PKG_VERSION"));
    assert_eq!(line, whole);
    let here = rxpath(&["check", "--format", "ndjson"]).ends(0).json();
    assert!(here["host"].is_string() && here["boot_id"].is_string(), "{here}");
}

/// Bytes that a host adds to a file of a fleet: 600 MB a day for ten thousand hosts.
const LINE_MOST: usize = 60_000;

#[test]
fn a_line_of_ndjson_of_each_captured_host_has_at_most_60_kb() {
    let hosts = std::fs::read_dir(root().join("testdata/hosts")).unwrap();
    let hosts: Vec<PathBuf> =
        hosts.map(|host| host.unwrap().path()).filter(|it| it.is_dir()).collect();
    assert!(hosts.len() > 8, "{hosts:?}");
    for host in hosts {
        let words = ["check", "--format", "ndjson", "--sysroot", host.to_str().unwrap()];
        let text = rxpath(&words).out;
        let line: Value = serde_json::from_str(&text).unwrap();
        let parts = line["result"].as_object().unwrap().iter();
        let sizes: Vec<(&String, usize)> =
            parts.map(|(part, value)| (part, value.to_string().len())).collect();
        assert!(text.len() <= LINE_MOST, "{}: {} bytes: {sizes:?}", host.display(), text.len());
    }
}

#[test]
fn sarif_holds_against_the_schema_of_the_standard() {
    let dir = sick();
    let log = check(dir.path(), &["--format", "sarif"]).ends(0).json();
    let schema =
        std::fs::read_to_string(root().join("testdata/sarif/sarif-schema-2.1.0.json")).unwrap();
    // A pattern of the standard ends in a bracket that ECMAScript takes as itself and other dialects refuse.
    let schema = schema.replace("{2}]?$", r"{2}\\]?$");
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&log).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let of = |id: &str| results.iter().find(|one| one["ruleId"] == id).unwrap();
    assert_eq!(of("tcp-sack")["level"], "warning");
    assert_eq!(of("conntrack-sizing")["level"], "error");
    assert_eq!(of("stale-settings")["level"], "note");
    assert_eq!(of("tcp-timestamps")["suppressions"][0]["kind"], "external");
    let at = of("tcp-sack")["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][at]["id"], "tcp-sack");
    // The validator is not one that takes everything.
    let mut broken = log.clone();
    broken["runs"][0]["results"][0]["level"] = "terrible".into();
    assert!(!validator.is_valid(&broken));
}

/// Whether `xmllint` finds a document valid by the schema, and what it says.
fn is_junit(text: &str) -> (bool, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let schema = root().join("testdata/junit/junit.xsd");
    let done = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .args([schema.as_path(), file.path()])
        .output()
        .unwrap();
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn junit_holds_against_its_schema() {
    if Command::new("xmllint").arg("--version").output().is_err() {
        return skip("junit_schema", "no xmllint");
    }
    let dir = sick();
    let text = check(dir.path(), &["--format", "junit", "--fail-on", "warn"]).ends(1).out;
    // Nothing can be judged of the last: its document holds skipped cases only.
    for (host, status) in [("bare-metal-2node", 0), ("router", 0), ("broken", 0), ("garbage", 3)] {
        let host = root().join("testdata/hosts").join(host);
        let args = ["check", "--goal", "latency", "--format", "junit", "--sysroot"];
        let done = rxpath(&[&args[..], &[host.to_str().unwrap()]].concat()).ends(status);
        let (valid, told) = is_junit(&done.out);
        assert!(valid, "{told}");
    }
    let (valid, told) = is_junit(&text);
    assert!(valid, "{told}\n{text}");
    // The schema is not one that takes everything.
    for (right, wrong) in [
        ("<testsuites ", "<testsuites size=\"1\" "),
        ("errors=\"0\"", "errors=\"none\""),
        ("<failure ", "<failed "),
        ("classname=", "class="),
        ("<skipped message", "<skipped/><skipped message"),
    ] {
        let broken = text.replacen(right, wrong, 1);
        assert_ne!(broken, text, "{right}");
        assert!(!is_junit(&broken).0, "{wrong}");
    }
}

/// JUnit XML has no standard; these are the elements and attributes that Ant's junitreport, Jenkins and GitLab read.
#[test]
fn junit_has_the_structure_that_build_servers_read() {
    let dir = sick();
    let text = check(dir.path(), &["--format", "junit", "--fail-on", "warn"]).ends(1).out;
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let suites = document.root_element();
    assert_eq!(suites.tag_name().name(), "testsuites");
    let number = |node: roxmltree::Node<'_, '_>, name: &str| -> usize {
        node.attribute(name).unwrap_or_else(|| panic!("{name}")).parse().unwrap()
    };
    let elements =
        |node: roxmltree::Node<'_, '_>| node.children().filter(roxmltree::Node::is_element).count();
    let (mut tests, mut failures) = (0, 0);
    for suite in suites.children().filter(roxmltree::Node::is_element) {
        assert_eq!(suite.tag_name().name(), "testsuite");
        assert!(suite.attribute("name").is_some());
        let cases: Vec<_> = suite.children().filter(roxmltree::Node::is_element).collect();
        let with = |name: &str| {
            cases.iter().filter(|case| case.children().any(|c| c.has_tag_name(name))).count()
        };
        assert_eq!(number(suite, "tests"), cases.len());
        assert_eq!(
            (number(suite, "failures"), number(suite, "skipped")),
            (with("failure"), with("skipped"))
        );
        for case in &cases {
            assert_eq!(case.tag_name().name(), "testcase");
            assert!(case.attribute("name").is_some() && case.attribute("classname").is_some());
            assert!(elements(*case) <= 1);
        }
        tests += cases.len();
        failures += with("failure");
    }
    assert_eq!((number(suites, "tests"), number(suites, "failures")), (tests, failures));
    let failed = document.descendants().filter(|node| node.has_tag_name("failure"));
    let names: Vec<&str> =
        failed.map(|node| node.parent().unwrap().attribute("name").unwrap()).collect();
    assert_eq!(
        names,
        ["tcp-sack", "conntrack-sizing"],
        "the suppressed one is skipped, info is below the limit"
    );
}

#[test]
fn json_lines_are_objects_with_their_type() {
    let dir = sick();
    let text = check(dir.path(), &["--format", "jsonl"]).ok();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "settings");
    assert_eq!(lines.last().unwrap()["type"], "result");
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count() as u64;
    assert_eq!(lines.last().unwrap()["findings_count"], of("finding"));
    assert_eq!(of("suppressed"), 1);
}

#[test]
fn markdown_has_a_row_for_each_finding() {
    let dir = sick();
    let text = check(dir.path(), &["--format", "md"]).ok();
    assert!(
        text.contains("| warn | tcp-sack |  | net.ipv4.tcp\\_sack is 0 | 1, the default |"),
        "{text}"
    );
    assert!(
        text.contains("Suppressed until 2099-01-01: tcp-timestamps (a \\<lab> & no \"net\")"),
        "{text}"
    );
}

#[test]
fn the_verdict_is_the_exit_status() {
    let dir = sick();
    check(dir.path(), &[]).ends(0);
    check(dir.path(), &["--fail-on", "fail"]).ends(1);
    std::fs::write(dir.path().join("proc/sys/net/netfilter/nf_conntrack_count"), "1\n").unwrap();
    check(dir.path(), &["--fail-on", "fail"]).ends(0);
    check(dir.path(), &["--fail-on", "warn"]).ends(1);
}

#[test]
fn a_bad_file_of_suppressions_is_refused_with_its_place() {
    let dir = sick();
    for (text, wanted) in [
        (
            "[[suppress]]\nid = \"tcp-sac\"\nreason = \"r\"\nuntil = \"2027-01-01\"\n",
            "suppress tcp-sac: no such rule",
        ),
        ("[[suppress]]\nid = \"tcp-sack\"\nuntil = \"2027-01-01\"\n", "missing field `reason`"),
        ("[[suppress]]\nid = \"tcp-sack\"\nreason = \"r\"\nuntil = \"soon\"\n", "until is `soon`"),
    ] {
        std::fs::write(dir.path().join("suppress.toml"), text).unwrap();
        check(dir.path(), &[]).ends(2).warns(wanted).warns("suppress.toml");
    }
}
