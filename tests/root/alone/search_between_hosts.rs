//! `rxpath tune auto` between hosts: what helps is found and proven there as in the lab.

use crate::arena::Arena;
use crate::bed::{may_run, searched};
use crate::over_ssh::STALLING;
use crate::program::said;
use crate::schema;

const INVENTORY: &str = r#"
    [hosts.gen1]
    ssh = "local"
    role = "sender"
    [hosts.sut]
    ssh = "local"
    role = "receiver"
    addr = ["127.0.0.1"]
"#;

#[test]
fn a_buffer_that_is_too_small_is_found_between_hosts() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let path = |name: &str| arena.dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("s.toml"), STALLING).unwrap();
    std::fs::write(path("lab.toml"), INVENTORY).unwrap();
    let search = || {
        let mut command = arena.inside(env!("CARGO_BIN_EXE_rxpath"));
        command
            .args(["tune", "auto", "--json", "--change-hosts", "--budget", "60s", "--out"])
            .args([path("runs"), "--scenario".into(), path("s.toml"), "--hosts".into()])
            .arg(path("lab.toml"))
            .args(["--set", "trials.ramp=20ms", "--set", "trials.measure=100ms"])
            .args(["--settings", "larger receive buffer"]);
        said(&mut command)
    };
    let result = schema::result("tune-auto", &searched(search).ok());
    let kept = result["found"]["kept"].as_array().unwrap();
    assert!(kept.iter().any(|one| one["name"] == "larger receive buffer"), "{result}");
    // 1.7 times the goodput; five pairs of 100 ms say no more than that it is a gain.
    let gain = &result["found"]["gain"]["interval"];
    assert!(gain["low"].as_f64() > Some(1.0) && gain["high"].as_f64() > Some(1.3), "{result}");
    // The plan was made on the receiver's host: an option of the service is no step of it.
    assert!(result["plan"]["left_out"][0]["why"].as_str().unwrap().contains("of the service"));
}
