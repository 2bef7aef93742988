//! What a host of an experiment refuses is said with its hint, as on this machine.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::executable;
use crate::program::said;

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
    let rxpath = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        said(command.args(words).env("PATH", &path))
    };
    let [hosts, out] = [&hosts, &out].map(|path| path.to_str().unwrap());
    rxpath(&["hosts", "check", hosts]).warns("rxpath: sut: no room; make some\n");
    rxpath(&["run", "udp-batching", "--hosts", hosts, "--out", out])
        .warns("rxpath: sut: no room\nhint: make some\n");
}

/// An ssh that answers nothing until another one runs too. It does not reach gen1, and the other host refuses.
const TOGETHER: &str = r#"#!/bin/sh
begun=$(dirname "$0")/begun
echo x >>"$begun"
left=400
until [ "$(wc -l <"$begun")" -ge 2 ]; do
    left=$((left - 1))
    [ $left -gt 0 ] || { echo 'alone for 20 s' >&2; exit 255; }
    sleep 0.05
done
case "$*" in
*gen1.lab*) echo 'ssh: connect to host gen1.lab port 22: Connection refused' >&2; exit 255 ;;
esac
"#;

#[test]
fn cleanup_asks_all_hosts_at_once_and_prints_them_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let [ssh, hosts] = ["ssh", "lab.toml"].map(|name| dir.path().join(name));
    executable::write(&ssh, TOGETHER.to_owned() + REFUSING);
    fs::write(&hosts, INVENTORY.replace("\"local\"", "\"gen1.lab\"")).unwrap();
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["hosts", "cleanup"]).arg(&hosts).env("PATH", &path);
    let output = said(&mut command).ends(5);
    let [gen1, sut] = output.out.lines().collect::<Vec<_>>()[..] else { panic!("{output:?}") };
    assert!(gen1.starts_with("gen1: no answer to ssh (ssh: connect to host gen1.lab "), "{gen1}");
    assert_eq!(sut, "sut: no room; make some");
}

#[test]
fn an_inventory_whose_name_is_not_utf_8_is_shown_in_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join(OsStr::from_bytes(b"lab\xff.toml"));
    executable::write(&dir.path().join("ssh"), REFUSING);
    fs::write(&hosts, INVENTORY.replace("\"local\"", "\"gen1.lab\"")).unwrap();
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
    for command in ["check", "cleanup"] {
        let mut rxpath = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        rxpath.args(["hosts", command, "--json"]).arg(&hosts).env("PATH", &path);
        let answer = said(&mut rxpath).json();
        assert_eq!(answer["settings"]["inventory"], hosts.display().to_string(), "{answer}");
    }
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
