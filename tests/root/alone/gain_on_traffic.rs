//! `rxpath tune auto --live` on traffic that is there: what helps is found, proven by the CPU time of a packet, and kept.

use std::path::PathBuf;

use serde_json::Value;

use crate::real_traffic::answer;
use crate::service::Service;

#[test]
fn a_setting_that_helps_is_found_on_real_traffic_and_left_in_force() {
    let Some(service) = Service::new() else { return };
    let service = service.stream();
    let words = ["--yes", "--settings", "GRO", "--guard", "loss_ratio<=+5%", "--budget", "20s"];
    let done = service.search(&[&words[..], &["--apply"]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let found = answer(&done);
    assert_eq!(done.status.code(), Some(0), "{said} {found}");
    assert_eq!(found["found"]["kept"][0]["name"], "GRO");
    // One poll hands 20 segments on as one: 0.6 times the CPU time was seen here.
    assert!(found["found"]["gain"]["interval"]["high"].as_f64().unwrap() < 1.0, "{found}");
    assert_eq!(found["plan"]["step"][0]["new"], "rx-gro=on");
    assert_eq!(found["live"]["restored_count"], 1);
    let count = |of: &str| found["live"][of].as_array().unwrap().len() as u64;
    let trials = found["found"]["trials_count"].as_u64().unwrap();
    assert!(count("slices") <= trials && trials <= count("slices") + count("breaches"), "{found}");
    let envelope: Value = serde_json::from_slice(&done.stdout).unwrap();
    let run = PathBuf::from(envelope["settings"]["run"].as_str().unwrap());
    for file in ["plan.toml", "tune-auto.md", "tune-auto.json", "tune-auto.html"] {
        assert!(run.join(file).exists(), "{file}");
    }
    assert_eq!(found["applied"]["in_force"], true);
    assert!(service.has_gro(), "what is kept is in force");
    let undo = service.rxpath(&["tune", "undo"]).output().unwrap();
    assert!(undo.status.success() && !service.has_gro(), "{undo:?}");
    service.assert_done();
}
