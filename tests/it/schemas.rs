//! The schemas beside the sources are those of the types.

use std::path::Path;

use assert_cmd::Command;

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
