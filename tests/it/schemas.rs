//! The schemas beside the sources are those of the types.

use std::path::Path;

use assert_cmd::Command;

use crate::schema;

fn rxpath(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn files_equal_the_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let names = rxpath(&["schema"]);
    for name in names.lines() {
        let path = directory.join(format!("{name}.schema.json"));
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            rxpath(&["schema", name]).trim(),
            kept.trim(),
            "{} is not up to date: make schema",
            path.display()
        );
    }
    assert!(names.lines().count() >= 6, "{names}");
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rxpath")).args(["schema", "ledgr"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("ledgr") && told.contains("serve-udp"), "{told}");
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
    let output = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args([&ask[..], &flow].concat())
        .output()
        .unwrap();
    // 4 where the queue can't be known from here.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let landings = schema::result("check-flow", &String::from_utf8(output.stdout).unwrap());
    assert_eq!(landings["landings"].as_array().unwrap().len(), 1);
}
