//! The queries of `fleet/` over the reports of a made-up fleet, by DuckDB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rxpath_core::{Envelope, Warning};
use rxpath_tune::verify::{Standing, UNREAD, UNREADABLE, Verified};
use serde_json::{Value, json};

use crate::export::installed;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// DuckDB's command line, if it is installed.
fn duckdb() -> Option<PathBuf> {
    let own = root().join("target/fleet-tools/bin/duckdb");
    if own.is_file() { Some(own) } else { installed("duckdb") }
}

/// The rows that a file of `fleet/` gives, in this folder.
fn rows(program: &Path, file: &str, folder: &Path) -> Vec<Value> {
    let sql = fs::File::open(root().join("fleet").join(file)).unwrap();
    let output = Command::new(program)
        .args(["-json", "-bail"])
        .current_dir(folder)
        .stdin(Stdio::from(sql))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{file}: {told}");
    if output.stdout.is_empty() {
        return Vec::new();
    }
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{file}: {why}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// The report of a host, made of one that this program wrote.
fn report(of: &Value, host: &str, day: u32, ring: &str, warns: bool) -> String {
    let mut line = of.clone();
    line["host"] = host.into();
    line["time"] = format!("2026-11-{day:02}T06:00:00Z").into();
    line["fingerprint"] = ring.repeat(32).into();
    let result = &mut line["result"];
    result["nics"] = json!([{"device": "eth9", "driver": "ice", "firmware": "4.40"}]);
    result["fine"] = json!([
        {"id": "ring-rx", "device": "eth9", "text": ring},
        {"id": "device-drops", "device": "eth9", "text": format!("{host} {day}: a counter")},
    ]);
    result["unjudged"] =
        json!([{"id": "pcie-link", "device": "eth9", "reason": "denied", "text": ""}]);
    result["findings"] = if warns {
        json!([{"id": "rmem-max", "device": null, "severity": "warn", "observed": "1", "expected": "2"}])
    } else {
        json!([])
    };
    line.to_string() + "\n"
}

#[test]
fn the_queries_find_what_is_odd_and_what_changed() {
    let Some(program) = duckdb() else {
        return crate::skip::skip("duckdb", "no duckdb on this machine");
    };
    let output = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["check", "--format", "ndjson", "--window", "0s"])
        .output()
        .unwrap();
    let of: Value = serde_json::from_slice(&output.stdout).unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("reports")).unwrap();
    for day in [1, 2] {
        let line = |host: &str| {
            let is_odd = host == "c" && day == 2;
            report(&of, host, day, if is_odd { "64" } else { "4096" }, is_odd)
        };
        let lines: String = ["a", "b", "c", "d"].into_iter().map(line).collect();
        fs::write(dir.path().join(format!("reports/{day}.ndjson")), lines).unwrap();
    }
    // A host that made no report since is collected with the one that it has.
    fs::write(dir.path().join("reports/3.ndjson"), report(&of, "c", 2, "64", true)).unwrap();
    assert!(rows(&program, "load.sql", dir.path()).is_empty());
    let ask = |name: &str| rows(&program, &format!("queries/{name}.sql"), dir.path());

    let findings = ask("findings");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((&findings[0]["id"], &findings[0]["percent"]), (&json!("rmem-max"), &json!(25.0)));

    let drift = ask("drift");
    assert_eq!(drift.len(), 1, "counters and what all have are no drift: {drift:?}");
    assert_eq!((&drift[0]["host"], &drift[0]["usual_value"]), (&json!("c"), &json!("4096")));

    let odd = ask("odd-hosts");
    assert_eq!(odd.len(), 1, "{odd:?}");
    assert_eq!((&odd[0]["host"], &odd[0]["hosts"]), (&json!("c"), &json!(4)));

    let new = ask("new-findings");
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!((&new[0]["id"], &new[0]["change"]), (&json!("rmem-max"), &json!("new")));

    let changed = ask("changed");
    let ids: Vec<&Value> = changed.iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["ring-rx", "rmem-max"], "{changed:?}");
    assert_eq!((&changed[0]["before"], &changed[0]["after"]), (&json!("4096"), &json!("64")));

    let unjudged = ask("unjudged");
    assert_eq!(unjudged.len(), 1, "{unjudged:?}");
    assert_eq!((&unjudged[0]["reason"], &unjudged[0]["hosts"]), (&json!("denied"), &json!(4)));
    let files = fs::read_dir(root().join("fleet/queries")).unwrap().count();
    assert_eq!(files, 6, "a query without a test");
}

#[test]
fn the_query_over_tuned_hosts_has_what_does_not_hold_first() {
    let Some(program) = duckdb() else {
        return crate::skip::skip("duckdb", "no duckdb on this machine");
    };
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("tune")).unwrap();
    let change = |target: &str, now: Option<&str>, standing: Standing| Verified {
        target: target.into(),
        asked: "4096".into(),
        now: now.map(str::to_owned),
        standing,
    };
    let write = |host: &str, changes: Vec<Verified>, warnings: Vec<Warning>| {
        let answer = Envelope::new("tune-verify", json!({"id": null}), changes, warnings);
        let file = dir.path().join(format!("tune/{host}.json"));
        fs::write(file, serde_json::to_string_pretty(&answer).unwrap()).unwrap();
    };
    let unread = Standing::Unread { why: "no such device".into() };
    let of_a = [
        change("eth0/rings/rx", Some("4096"), Standing::Holds),
        change("eth1/rings/rx", None, unread),
    ];
    write("a", of_a.into(), Vec::new());
    let of_b = change("eth0/rings/rx", Some("512"), Standing::Drifted);
    write("b.example", vec![of_b], Vec::new());
    write("unchanged", Vec::new(), vec![Warning::new("being-applied", "journal 1")]);
    write("unread", Vec::new(), vec![Warning::new(UNREADABLE, "journal 3: can't be read")]);
    fs::write(dir.path().join("tune/silent.json"), "").unwrap();
    let rows = rows(&program, "tune.sql", dir.path());
    let of = |key: &str| -> Vec<Value> { rows.iter().map(|row| row[key].clone()).collect() };
    // Hosts whose changes nobody knows are no hosts without changes.
    assert_eq!(of("host"), ["b.example", "a", "unread", "a"], "{rows:?}");
    assert_eq!(of("state"), ["drifted", UNREAD, UNREAD, "holds"], "{rows:?}");
    assert_eq!(of("now"), [json!("512"), Value::Null, Value::Null, json!("4096")], "{rows:?}");
    let [no_device, no_journal] = ["no such device", "journal 3: can't be read"].map(Value::from);
    assert_eq!(of("why"), [Value::Null, no_device, no_journal, Value::Null], "{rows:?}");
}

/// A run of testdata as a host's, changed before it is written.
fn run(of: &str, to: &Path, change: impl Fn(&mut Value, &mut Value)) {
    let read = |file: &str| -> Value {
        let path = root().join("testdata/runs").join(of).join(file);
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let (mut manifest, mut environment) = (read("manifest.json"), read("environment.json"));
    manifest["run_id"] = to.file_name().unwrap().to_str().unwrap().into();
    change(&mut manifest, &mut environment);
    fs::create_dir_all(to).unwrap();
    fs::write(to.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(to.join("environment.json"), environment.to_string()).unwrap();
}

#[test]
fn the_queries_over_runs_find_rates_by_kernel_changes_and_disturbed_runs() {
    let Some(program) = duckdb() else {
        return crate::skip::skip("duckdb", "no duckdb on this machine");
    };
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    run("million-pps", &runs.join("a/first"), |_, _| {});
    run("million-pps", &runs.join("a/second"), |manifest, environment| {
        manifest["started"] = "2026-11-23T00:00:00Z".into();
        manifest["variants"][0]["metrics"]["delivered_pps"]["median"] = json!(100_000.0);
        manifest["trials"][5]["grade"] = "D".into();
        manifest["trials"][5]["void"] = Value::Null;
        manifest["capacity"] = json!({"variant": "naive", "unit": "datagrams", "regular": false,
            "lower_per_s": 90_000.0, "upper_per_s": null, "limited_by": {"stage": "one-cpu"}});
        environment["hosts"]["local"]["kernel.release"]["value"] = "6.19.0".into();
        environment["hosts"]["local"]["load.average"] = json!({"state": "ok", "value": "9 9 9"});
    });
    run("partial", &runs.join("b/third"), |_, _| {});
    assert!(rows(&program, "runs.sql", dir.path()).is_empty());
    let ask = |name: &str| rows(&program, &format!("runs/{name}.sql"), dir.path());

    let rates = ask("rates");
    let naive: Vec<&Value> = rates.iter().filter(|row| row["variant"] == "naive").collect();
    let found = |at: usize, key: &str| naive[at][key].clone();
    assert_eq!(naive.len(), 2, "of each kernel one, and none of a run that did not end: {rates:?}");
    assert_eq!(
        (found(0, "kernel"), found(0, "lower_per_s")),
        (json!("6.18.5-made-up"), Value::Null)
    );
    assert_eq!((found(1, "kernel"), found(1, "median")), (json!("6.19.0"), json!(100_000.0)));
    assert_eq!((found(1, "lower_per_s"), found(1, "worst_grade")), (json!(90_000.0), json!("D")));

    let changed = ask("changed");
    assert!(changed.iter().all(|row| row["host"] == "a"), "b has one run: {changed:?}");
    assert_eq!(changed[0]["what"], "local: kernel.release", "{changed:?}");
    assert!(changed[1]["what"].as_str().unwrap().ends_with(": delivered_pps"), "{changed:?}");
    let naive = changed.iter().find(|row| row["what"] == "naive: delivered_pps").unwrap();
    assert!((naive["ratio"].as_f64().unwrap() - 0.315).abs() < 0.001, "{naive}");

    let grades = ask("grades");
    let ids: Vec<&Value> = grades.iter().map(|row| &row["run_id"]).collect();
    assert_eq!((ids[0], grades[0]["worst_grade"].as_str()), (&json!("second"), Some("D")));
    assert!(ids.contains(&&json!("third")), "it did not end: {grades:?}");
    let files = fs::read_dir(root().join("fleet/runs")).unwrap().count();
    assert_eq!(files, 3, "a query without a test");
}
