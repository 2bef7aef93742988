//! What a host of an experiment refuses is said with its hint, as on this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::executable;

const INVENTORY: &str = r#"
    [hosts.gen1]
    ssh = "local"
    role = "sender"
    [hosts.sut]
    ssh = "sut.lab"
    role = "receiver"
    addr = ["127.0.0.1"]
"#;

/// An ssh whose host refuses whatever it is asked for.
const REFUSING: &str = r#"#!/bin/sh
echo '@@rxpath-endpoint 1'
while IFS= read -r asked; do
    id=${asked#*:}; id=${id%%,*}
    echo "{\"failure\":{\"id\":$id,\"text\":\"no room\",\"hint\":\"make some\"}}"
done
"#;

#[test]
fn the_hint_of_a_host_is_the_hint_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let [ssh, hosts, out] = ["ssh", "lab.toml", "runs"].map(|name| dir.path().join(name));
    executable::write(&ssh, REFUSING);
    fs::write(&hosts, INVENTORY).unwrap();
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
    let said = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        let output = command.args(words).env("PATH", &path).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let [hosts, out] = [&hosts, &out].map(|path| path.to_str().unwrap());
    let check = said(&["hosts", "check", hosts]);
    assert!(check.contains("rxpath: sut: no room; make some\n"), "{check}");
    let run = said(&["run", "udp-batching", "--hosts", hosts, "--out", out]);
    assert!(run.contains("rxpath: sut: no room\nhint: make some\n"), "{run}");
}

#[test]
fn an_endpoint_says_the_hint_of_what_it_runs() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .arg("endpoint")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let ask = r#"{"id":7,"do":"settings","what":{"advise":{"device":"nosuch0","goal":null}}}"#;
    writeln!(input, "{ask}").unwrap();
    let said = lines.find(|line| line.contains("\"id\":7")).unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let failure = &said["failure"];
    assert_eq!(failure["text"], "--dev nosuch0: no such network device here", "{said}");
    assert!(failure["hint"].as_str().unwrap().starts_with("devices here: "), "{said}");
    drop(input);
    assert!(child.wait().unwrap().success());
}
