//! `rxpath export` as a service: its unit files, and a socket that systemd passes on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const UNITS: [&str; 2] = ["rxpath-export.service", "rxpath-export.socket"];

fn unit(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn systemd_accepts_the_units() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        return crate::skip::skip("systemd", "no systemd-analyze on this machine");
    };
    assert!(version.status.success());
    let dir = tempfile::tempdir().unwrap();
    let files = UNITS.map(|name| {
        let file = dir.path().join(name);
        // It looks for the program, which a package installs.
        let text = unit(name).replace("/usr/bin/rxpath", env!("CARGO_BIN_EXE_rxpath"));
        fs::write(&file, text).unwrap();
        file
    });
    let output =
        Command::new("systemd-analyze").args(["--man=no", "verify"]).args(&files).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let of_these = told.lines().filter(|line| line.contains("rxpath"));
    assert_eq!(of_these.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(output.status.success(), "{told}");
}

/// The command of the unit is one that this program takes.
#[test]
fn the_command_of_the_unit_is_accepted() {
    let text = unit(UNITS[0]);
    let line =
        text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/rxpath ")).unwrap();
    // With the option that the socket unit names; no socket is passed on here, and that is all that is wrong.
    let output = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(line.replace("$OPTIONS", "--listen fd:1000").split_whitespace())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("fd:1000") && told.contains(".socket unit"), "{told}");
}

fn page(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_passed_socket_is_served_with_the_metrics_and_the_status() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let script = "exec \"$0\" export --no-bpf --interval 100ms --check-every 0s --listen fd:3 3<&0 0</dev/null";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_rxpath")])
        .stdin(std::os::fd::OwnedFd::from(listener))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(&format!("http://{address}/metrics")), "{line}");
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        let text = page(address, "/status");
        if let Some(body) =
            text.strip_prefix("HTTP/1.1 200 OK").and_then(|t| t.split_once("\r\n\r\n"))
        {
            break body.1.to_owned();
        }
        assert!(text.starts_with("HTTP/1.1 503") && Instant::now() < deadline, "{text}");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(10));
    };
    let metrics = page(address, "/metrics");
    child.kill().unwrap();
    child.wait().unwrap();
    let status = crate::schema::result("export-status", &status);
    assert_eq!(status["not_measured"]["BPF probes"], "BPF was not asked for");
    assert!(metrics.contains("rxpath_agent_budget_ratio 0.01\n"), "{metrics}");
}
