//! TCP workloads in a network namespace of their own: no route, no host, no port left.

use std::process::Command;

use crate::bed::may_run;
use crate::program::{Said, said};

/// A script in a fresh network namespace with loopback up; `$RXPATH` is the program.
fn inside(script: &str) -> Said {
    let script = format!("set -e\nip link set lo up\n{script}");
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]).env("RXPATH", env!("CARGO_BIN_EXE_rxpath"));
    said(&mut command)
}

#[test]
fn a_host_that_cannot_be_reached_is_said_with_the_reason() {
    if !may_run() {
        return;
    }
    for (route, address, says) in [
        ("true", "10.9.9.9:7", "has no route to 10.9.9.9"),
        ("ip route add unreachable 10.9.9.0/24", "10.9.9.9:7", "no host answers for 10.9.9.9"),
        ("true", "[fd00::9]:7", "has no route to fd00::9"),
    ] {
        let script = format!("{route}\nexec \"$RXPATH\" load tcp stream {address}");
        inside(&script).ends(2).refuses("connect ", says);
    }
}

#[test]
fn used_up_ports_are_counted_and_explained() {
    if !may_run() {
        return;
    }
    let script = r#"
        echo 40000 40099 > /proc/sys/net/ipv4/ip_local_port_range
        # By default a port on loopback may be used again after a second.
        echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse
        "$RXPATH" serve tcp 127.0.0.1:7000 > /dev/null &
        server=$!
        until ss -tln | grep -q :7000; do sleep 0.01; done
        "$RXPATH" load tcp crr 127.0.0.1:7000 --close client -d 2s --json
        kill -INT $server
        wait $server || test $? = 130
    "#;
    let answer = inside(script).ends(0).json();
    let result = &answer["result"];
    // With 100 ports, each of which rests after its use, no more than 100 transactions can be made.
    assert!(result["transactions_total"].as_u64().unwrap() <= 100);
    assert!(result["errors_total"]["connect EADDRNOTAVAIL"].as_u64().unwrap() > 0, "{result}");
    let warning = answer["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|warning| warning["code"] == "ports-exhausted")
        .unwrap();
    let cure = warning["cure"].as_str().unwrap();
    assert!(cure.contains("--close server"), "{cure}");
    let cause = warning["cause"].as_str().unwrap();
    assert!(cause.contains("40000 to 40099") && cause.contains("TIME_WAIT"), "{cause}");
}
