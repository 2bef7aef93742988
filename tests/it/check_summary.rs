//! `rxpath check --summarize`: many reports, bad ones among them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::{rxpath, said};

/// The reports of captured hosts: one in three copies, another alone.
fn fleet(dir: &Path) {
    for (host, names) in
        [("bare-metal-2node", &["rack1/a", "rack1/b", "rack2/c"][..]), ("router", &["gate"])]
    {
        let tree = format!("{}/../../testdata/hosts/{host}", env!("CARGO_MANIFEST_DIR"));
        let report = rxpath(&["check", "--json", "--goal", "benchmark", "--sysroot", &tree]).ok();
        for name in names {
            let path = dir.join(format!("{name}.json"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &report).unwrap();
        }
    }
}

fn summary(dir: &Path) -> (Option<i32>, Value) {
    let output = rxpath(&["check", "--summarize", dir.to_str().unwrap(), "--json"]);
    (output.code, output.json())
}

#[test]
fn what_check_prints_is_what_the_summary_reads() {
    let dir = tempfile::tempdir().unwrap();
    fleet(dir.path());
    // One of three loses a finding that all of them have.
    let path = dir.path().join("rack2/c.json");
    let mut odd: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let lost = odd["result"]["findings"][0]["id"].as_str().unwrap().to_owned();
    odd["result"]["findings"].as_array_mut().unwrap().retain(|one| one["id"] != lost.as_str());
    fs::write(&path, odd.to_string()).unwrap();
    let (status, value) = summary(dir.path());
    assert_eq!(status, Some(0));
    assert_eq!(value["schema"], "rxpath/check-summary/1.0");
    let result = &value["result"];
    assert_eq!(result["hosts_count"], 4);
    let groups = result["groups"].as_array().unwrap();
    let of = |driver: &str| groups.iter().find(|group| group["driver"] == driver).unwrap();
    let ice = of("ice");
    assert_eq!((&ice["hosts_count"], &ice["odd_hosts_count"]), (&3.into(), &1.into()));
    assert_eq!(ice["odd_hosts"][0]["host"], "rack2/c");
    assert_eq!(ice["odd_hosts"][0]["differences"][0]["id"], lost.as_str());
    assert_eq!(ice["odd_hosts"][0]["differences"][0]["has_it"], false);
    let shown = rxpath(&["check", "--summarize", dir.path().to_str().unwrap()]).out;
    assert!(shown.contains(&format!("rack2/c: lacks {lost} (2 of 3)")), "{shown}");
}

#[test]
fn a_directory_whose_name_is_not_utf_8_is_summed_up() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join(OsStr::from_bytes(b"fleet\xff"));
    fs::create_dir(&odd).unwrap();
    fleet(&odd);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    let value = said(command.args(["check", "--json", "--summarize"]).arg(&odd)).ends(0).json();
    assert_eq!(value["settings"]["directory"], odd.display().to_string());
    assert_eq!(value["result"]["hosts_count"], 4);
}

#[test]
fn bad_files_are_named_and_the_rest_is_summed_up() {
    let dir = tempfile::tempdir().unwrap();
    fleet(dir.path());
    let good = fs::read_to_string(dir.path().join("gate.json")).unwrap();
    let put = |name: &str, content: &[u8]| fs::write(dir.path().join(name), content).unwrap();
    put("cut.json", &good.as_bytes()[..good.len() / 2]);
    put("empty.json", b"");
    put("text", b"eth0 is fine\n");
    put("other.json", good.replace("rxpath/check/", "rxpath/trace/").as_bytes());
    put("newer.json", good.replace("rxpath/check/1.0", "rxpath/check/7.0").as_bytes());
    put("binary.json", &[0xff, 0, 0x7f, b'E']);
    put(".hidden", b"x");
    nix::unistd::mkfifo(&dir.path().join("pipe.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/no/such/file", dir.path().join("gone.json")).unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("circle")).unwrap();
    let (status, value) = summary(dir.path());
    assert_eq!(status, Some(5), "some files could not be used");
    assert_eq!(value["result"]["hosts_count"], 4);
    let bad: Vec<(&str, &str)> = value["result"]["bad_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bad| (bad["file"].as_str().unwrap(), bad["why"].as_str().unwrap()))
        .collect();
    for (name, wanted) in [
        ("cut", "cut off at line"),
        ("empty", "empty"),
        ("text", "not JSON"),
        ("other", "schema `rxpath/trace/1.0`"),
        ("newer", "newer version 7.0"),
        ("binary", "not JSON"),
        ("pipe", "not a regular file"),
        ("gone", "No such file"),
        ("circle", "a directory, not entered"),
    ] {
        let found = bad.iter().find(|(file, _)| *file == name);
        assert!(found.is_some_and(|(_, why)| why.contains(wanted)), "{name}: {bad:?}");
    }
    assert_eq!(bad.len(), 9, "{bad:?}");
    assert_eq!(value["warnings"][0]["code"], "bad-reports");
}

#[test]
fn nothing_to_sum_up_is_one_line_and_status_2() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let ask = |args: &[&str], wanted: &str| {
        let output = rxpath(args).ends(2).warns(wanted);
        assert!(output.err.starts_with("rxpath: "), "{output:?}");
        assert!(output.err.lines().count() <= 2, "{output:?}");
    };
    ask(&["check", "--summarize", path], "no file in it");
    ask(&["check", "--summarize", "/no/such/dir"], "No such file");
    ask(&["check", "--summarize", path, "--goal", "latency"], "cannot be used with");
    ask(&["check", "--summarize", path, "--format", "sarif"], "prints only table or json");
    fs::write(dir.path().join("x"), "{}").unwrap();
    ask(
        &["check", "--summarize", path],
        "none of its 1 files is a report: x: JSON without a schema",
    );
}

#[test]
fn hosts_judged_for_different_goals_are_warned_about() {
    let dir = tempfile::tempdir().unwrap();
    fleet(dir.path());
    let path = dir.path().join("gate.json");
    let report = fs::read_to_string(&path).unwrap();
    fs::write(&path, report.replacen("\"goal\": \"benchmark\"", "\"goal\": null", 1)).unwrap();
    let (status, value) = summary(dir.path());
    assert_eq!(status, Some(0));
    assert_eq!(value["warnings"][0]["code"], "mixed-goals");
}
