//! `load http` where the host itself is short of something: a network namespace of its own is made short of it.

use std::process::Command;

use crate::bed::may_run;
use crate::program::{Said, said};

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");

/// Runs a script of the shell in a network namespace that has a loopback device and nothing else.
fn in_namespace(script: &str) -> Said {
    let script = format!("ip link set lo up; {script}");
    said(Command::new("unshare").args(["--net", "sh", "-ec", &script]))
}

/// Starts our own server in the background, waits for its port, and runs a load against it.
fn served(before: &str, load: &str) -> String {
    format!(
        "{before}
        {RXPATH} serve http 127.0.0.1:8080 >/dev/null & server=$!
        trap 'kill $server' EXIT
        trap 'exit 130' HUP INT TERM
        for try in $(seq 600); do
            if ss -Hltn sport = :8080 | grep -q LISTEN; then break; fi
            sleep 0.05
        done
        {RXPATH} load http http://127.0.0.1:8080/ {load} --json"
    )
}

#[test]
fn exhausted_ports_are_told_with_the_range_and_the_way_out() {
    if !may_run() {
        return;
    }
    let few = "sysctl -qw net.ipv4.ip_local_port_range='40000 40007'";
    let answer = in_namespace(&served(few, "-c 16 -d 3s")).json();
    let result = &answer["result"];
    // The port of the first try is in TIME_WAIT or the server's already.
    assert!(result["requests_total"].as_u64().unwrap() > 0, "{answer}");
    assert!(
        result["error_causes_total"]["connect EADDRNOTAVAIL"].as_u64().unwrap() > 0,
        "{answer}"
    );
    let warnings = answer["warnings"].as_array().unwrap();
    let told = warnings.iter().find(|warning| warning["code"] == "ports-exhausted").unwrap();
    assert!(told["cause"].as_str().unwrap().contains("40000 to 40007: 8 ports"), "{told}");
    assert!(told["cure"].as_str().unwrap().contains("--source"), "{told}");
}

#[test]
fn another_source_address_has_ports_of_its_own() {
    if !may_run() {
        return;
    }
    let few = "sysctl -qw net.ipv4.ip_local_port_range='40000 40007'";
    let output = in_namespace(&served(few, "-c 6 -n 600 --source 127.0.0.5"));
    assert_eq!(output.json()["result"]["requests_total"], 600);
}

#[test]
fn a_host_without_a_route_is_told_at_once() {
    if !may_run() {
        return;
    }
    in_namespace(&format!("exec {RXPATH} load http http://192.0.2.1/"))
        .ends(2)
        .refuses("connect 192.0.2.1:80: Network is unreachable", "ip route get 192.0.2.1");
}

/// A link-local address with its zone, as RFC 6874 writes it in a URL and as curl takes it; `Host` has no zone.
#[test]
fn a_link_local_address_is_loaded_through_its_zone() {
    if !may_run() {
        return;
    }
    let dummy = "ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up; ip -6 address add fe80::a/64 dev d0 nodad";
    for zone in ["%25d0", "%d0"] {
        let script = served(dummy, "-n 10")
            .replace("serve http 127.0.0.1:8080", "serve http '[::]:8080'")
            .replace("http://127.0.0.1:8080/", &format!("'http://[fe80::a{zone}]:8080/'"));
        let answer = in_namespace(&script).json();
        assert_eq!(answer["result"]["requests_total"], 10, "{zone}: {answer}");
        assert_eq!(answer["settings"]["url"], "http://[fe80::a%25d0]:8080/");
    }
    let no_such = format!("{RXPATH} load http 'http://[fe80::a%25gone]:8080/' -n 1");
    let output = in_namespace(&no_such).ends(2);
    assert_eq!(
        output.err,
        "rxpath: this host has no interface `gone`; `ip link` lists its interfaces\n"
    );
}
