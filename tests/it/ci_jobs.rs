//! Jobs for CI systems: the examples in `packaging/ci`, and the release of this project.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::commands::root;
use crate::executable;
use crate::skip::skip;

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");
const RELEASE: &str = ".github/workflows/release.yml";
const GITHUB: &str = "packaging/ci/github.yml";
const GITLAB: &str = "packaging/ci/gitlab.yml";

/// A YAML file as JSON; none where Python cannot read YAML.
fn yaml(file: &str) -> Option<Value> {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))";
    let text = fs::File::open(root().join(file)).unwrap();
    if !Command::new("python3").args(["-c", "import yaml"]).output().ok()?.status.success() {
        return None;
    }
    let done = Command::new("python3").args(["-c", script]).stdin(text).output().unwrap();
    assert!(done.status.success(), "{file}: {}", String::from_utf8_lossy(&done.stderr));
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

/// The values of a key in all steps of all jobs of a workflow.
fn of_steps(workflow: &Value, key: &str) -> Vec<String> {
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.flat_map(|job| job["steps"].as_array().unwrap());
    steps.filter_map(|step| step[key].as_str().map(str::to_owned)).collect()
}

#[test]
fn workflows_are_yaml_with_pinned_actions_and_no_rights_but_those_of_their_jobs() {
    for file in [RELEASE, GITHUB] {
        let Some(workflow) = yaml(file) else { return skip("yaml", "no PyYAML") };
        assert_eq!(workflow["permissions"], serde_json::json!({}), "{file}");
        let actions = of_steps(&workflow, "uses");
        assert!(actions.len() >= 2, "{file}: {actions:?}");
        for action in actions {
            let (_, pin) = action.split_once('@').unwrap_or_else(|| panic!("{file}: {action}"));
            let is_commit = pin.len() == 40 && pin.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(is_commit, "{file}: {action}");
        }
        for job in workflow["jobs"].as_object().unwrap().values() {
            assert!(job["timeout-minutes"].is_u64(), "{file}: a job without an end: {job}");
        }
    }
}

#[test]
fn the_release_is_made_by_the_script_that_makes_it_anywhere() {
    let Some(workflow) = yaml(RELEASE) else { return skip("yaml", "no PyYAML") };
    let runs = of_steps(&workflow, "run");
    let releases = runs.iter().filter(|run| run.trim() == "tools/release.sh");
    assert_eq!(releases.count(), 1, "{runs:?}");
    for run in &runs {
        assert!(!run.contains("cargo build") && !run.contains("nfpm"), "{run}");
    }
    // What builds has no right to publish.
    let rights = &workflow["jobs"]["packages"]["permissions"];
    assert_eq!(*rights, serde_json::json!({"contents": "read"}));
}

#[test]
fn the_jobs_of_gitlab_are_yaml_and_call_what_is_there() {
    let Some(jobs) = yaml(GITLAB) else { return skip("yaml", "no PyYAML") };
    let lines = |job: &Value| -> Vec<String> {
        let lines = job["script"].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap().to_owned()).collect()
    };
    let jobs: Vec<&Value> = jobs.as_object().unwrap().values().collect();
    let called: Vec<String> = jobs.iter().flat_map(|job| lines(job)).collect();
    let script =
        called.iter().find_map(|line| line.split(' ').find(|word| word.contains("check-fleet")));
    assert!(root().join(script.unwrap()).is_file(), "{called:?}");
    assert!(called.iter().any(|line| line.starts_with("rxpath check ")), "{called:?}");
}

/// Hosts as trees of files, behind a program in place of ssh.
struct FakeHosts(tempfile::TempDir);

impl FakeHosts {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (host, connections) in [("well", "1\n"), ("full", "100\n")] {
            put(&format!("{host}/proc/sys/kernel/osrelease"), "6.12.1\n");
            put(&format!("{host}/proc/sys/net/ipv4/tcp_sack"), "1\n");
            put(&format!("{host}/proc/sys/net/netfilter/nf_conntrack_count"), connections);
            put(&format!("{host}/proc/sys/net/netfilter/nf_conntrack_max"), "100\n");
        }
        // Its arguments are the host and the command's words.
        let ssh = format!(
            "#!/bin/sh\nhost=$1\n[ \"$host\" != down ] || exit 255\nshift 3\nexec {RXPATH} check \
             --sysroot {}/$host \"$@\"\n",
            dir.path().display()
        );
        executable::write(&dir.path().join("ssh"), ssh);
        Self(dir)
    }

    /// What the script says of these hosts.
    fn check(&self, hosts: &[&str]) -> Output {
        let bin = Path::new(RXPATH).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        Command::new(root().join("packaging/ci/check-fleet.sh"))
            .arg(self.0.path().join("out"))
            .args(hosts)
            .env("PATH", path)
            .env("SSH", self.0.path().join("ssh"))
            .output()
            .unwrap()
    }

    fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.path().join("out").join(name)).ok()
    }
}

#[test]
fn a_job_over_a_fleet_fails_for_a_finding_and_for_a_host_without_a_report() {
    for (hosts, status, reports) in [
        (&["well"][..], 0, 1),
        (&["well", "full"], 1, 2),
        (&["down", "full", "well"], 1, 2),
        (&["full", "down"], 1, 1),
        (&["down", "well"], 5, 1),
        (&["down"], 5, 0),
        (&[], 2, 0),
    ] {
        let fleet = FakeHosts::new();
        let done = fleet.check(hosts);
        let told = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{hosts:?}: {told}");
        let lines = fleet.file("reports.ndjson").unwrap_or_default();
        assert_eq!(lines.lines().count(), reports, "{hosts:?}: {told}");
        for line in lines.lines() {
            let report: Value = serde_json::from_str(line).unwrap();
            assert!(report["result"]["findings"].is_array(), "{line}");
        }
        assert!(fleet.file("reports/down.json").is_none());
        assert_eq!(fleet.file("summary.txt").is_some_and(|text| !text.is_empty()), reports > 0);
    }
}

#[test]
fn a_job_over_a_fleet_keeps_no_report_of_the_run_before() {
    let fleet = FakeHosts::new();
    assert_eq!(fleet.check(&["well", "full"]).status.code(), Some(1));
    assert_eq!(fleet.check(&["well"]).status.code(), Some(0));
    assert!(fleet.file("reports/full.json").is_none() && fleet.file("reports/well.json").is_some());
}
