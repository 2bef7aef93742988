//! The queries of `fleet/` over the reports of a made-up fleet, by DuckDB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
