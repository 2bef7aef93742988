//! `rxpath diagnose` on traffic of a lab: what is lost while it watches, and what looking costs.

use std::fs;
use std::io::Read;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use crate::bed::{Bed, RX_IP, send};
use crate::program::{Said, said};

/// Watches inside a namespace.
pub fn watching(rx: &Namespace, words: &[&str]) -> Child {
    Command::new("ip")
        .args(["netns", "exec", rx.name(), env!("CARGO_BIN_EXE_rxpath")])
        .args(["diagnose", "--json"])
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until its window has begun.
#[expect(clippy::unbuffered_bytes, reason = "what it says later is read at its end")]
pub fn in_window(child: &mut Child) {
    let mut told = String::new();
    for byte in child.stderr.as_mut().unwrap().bytes() {
        told.push(byte.unwrap().into());
        if told.ends_with('\n') && told.lines().any(|line| line.starts_with("watching for ")) {
            return;
        }
    }
    panic!("it ended before its window: {told}");
}

/// Times that its main thread went to sleep: in its window once after each look.
pub fn looks(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

pub fn end(child: Child) -> (Option<i32>, Value) {
    let ended = Said::from(child.wait_with_output().unwrap());
    (ended.code, ended.json())
}

#[test]
fn what_is_lost_while_it_watches_is_named_with_its_counter() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4810)).unwrap()).unwrap();
    let mut child = watching(&rx, &["-d", "600s"]);
    in_window(&mut child);
    send(&tx, 4811, 20_000);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let (code, value) = end(child);
    assert_eq!(code, Some(130), "{value}");
    let result = crate::schema::result("diagnose", &value.to_string());
    assert_eq!(result["stage"], "no-listener", "{result}");
    assert!(result["evidence"].to_string().contains("Udp.NoPorts"), "{result}");
    assert!(!result["next"].as_array().unwrap().is_empty());
    let probed = &result["evidence_read"]["probed"];
    assert!(!probed["cpus"].as_array().unwrap().is_empty(), "{probed}");
    assert!(probed.get("gaps").is_none(), "{probed}");
}

#[test]
fn what_looking_costs_stands_beside_the_verdict() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        said(command.args(["diagnose", "-d", "500ms"]).args(words)).ok()
    };
    let value: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let cost = &value["result"]["probe_cost"];
    let number = |of: &str| cost[of].as_f64().unwrap_or_else(|| panic!("{of} in {cost}"));
    // A part was measured, and stands for the whole window.
    assert!(number("measured_s") > 0.0, "{cost}");
    let programs = cost["programs"].as_array().unwrap();
    let ran = |of: &str| programs.iter().filter_map(|one| one[of].as_u64()).sum::<u64>();
    let (runs, ns) = (ran("runs_count"), ran("run_time_ns"));
    assert!(runs > 0 && ns > 0, "{cost}");
    assert!(number("run_time_s") > ns as f64 / 1e9, "{cost}");
    assert!(number("runs_count") > runs as f64, "{cost}");
    assert!(number("map_bytes") > 0.0 && number("reader_cpu_s") > 0.0, "{cost}");
    // The account's, the locks', the drops' and the reads' programs.
    for program in ["sched_switch", "contention_begin", "kfree_skb", "sock_recv_length"] {
        assert!(programs.iter().any(|one| one["program"] == program), "{program} in {cost}");
    }
    let text = run(&[]);
    assert!(
        text.lines().any(|line| line.starts_with("probe: ") && line.contains(" runs (")),
        "{text}"
    );
    let text = run(&["--no-bpf"]);
    assert!(
        text.contains("probe: run time not known (BPF was not asked for); reader 0."),
        "{text}"
    );
}
