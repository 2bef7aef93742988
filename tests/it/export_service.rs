//! `rxpath export` as a service: its unit files, and a socket that systemd passes on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::export::{Running, asked};

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

/// The units with the most that their exposure may be, in tenths, as systemd-analyze adds it up.
const EXPOSED: [(&str, u32); 2] = [("rxpath-export.service", 18), ("rxpath-check.service", 29)];

#[test]
fn the_services_are_no_more_exposed_than_they_need() {
    // From 250 on it judges files.
    let help = Command::new("systemd-analyze").arg("--help").output();
    if !help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--offline")) {
        return crate::skip::skip("systemd", "no systemd-analyze here that judges files");
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, most) in EXPOSED {
        let file = dir.path().join(name);
        let judged = |text: &str| {
            fs::write(&file, text).unwrap();
            Command::new("systemd-analyze")
                .args(["security", "--no-pager", "--offline=true"])
                .arg(format!("--threshold={most}"))
                .arg(&file)
                .output()
                .unwrap()
        };
        let text = unit(name);
        let output = judged(&text);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: above {most} tenths: {told}");
        // A setting less is seen.
        let worse = judged(&text.replace("RestrictNamespaces=yes\n", ""));
        assert!(!worse.status.success(), "{name}: the threshold holds nothing");
    }
}

/// The exporter is not root, and only root can read the journals of `rxpath tune`.
#[test]
fn the_check_leaves_what_tune_verify_says_where_the_exporter_looks_for_it() {
    let text = unit("rxpath-check.service");
    // The folder is root's (no User=, no mode for others), and a boot empties it.
    for line in ["RuntimeDirectory=rxpath-check", "RuntimeDirectoryPreserve=yes"] {
        assert!(text.lines().any(|own| own == line), "{line}");
    }
    assert!(!text.contains("User=") && !text.contains("RuntimeDirectoryMode="), "{text}");
    let path = "/run/rxpath-check/tune-verify.json";
    assert!(source("crates/rxpath-tune/src/standings.rs").contains(path));
    assert!(source("packaging/scripts/postremove.sh").contains(" /run/rxpath-check "));
    let command = text.lines().find_map(|line| line.strip_prefix("ExecStartPost=/bin/sh -c '"));
    let command = command.unwrap().trim_end_matches('\'');
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", &command.replace("/usr/bin/rxpath", env!("CARGO_BIN_EXE_rxpath"))])
        .env("RUNTIME_DIRECTORY", dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let left = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["tune-verify.json"]);
    let answer = fs::read_to_string(dir.path().join("tune-verify.json")).unwrap();
    assert!(crate::schema::result("tune-verify", &answer).is_array(), "{answer}");
}

/// The filter of a service does not cover the socket that is passed on to it.
#[test]
fn the_port_is_closed_to_other_hosts_whoever_opens_it() {
    for name in UNITS {
        let text = unit(name);
        for line in ["IPAddressDeny=any", "IPAddressAllow=localhost"] {
            assert!(text.lines().any(|own| own == line), "{name}: {line}");
        }
    }
}

#[test]
fn a_service_manager_hears_that_the_page_can_be_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let before = format!("NOTIFY_SOCKET={} {SAID}", path.display());
    let (_child, line) = passed(listener, &before, "");
    let mut bytes = [0; 64];
    let length = manager.recv(&mut bytes).unwrap_or_else(|why| panic!("{why}: {line}"));
    assert_eq!(&bytes[..length], b"READY=1");
    assert!(asked(address, "/-/healthy").starts_with("HTTP/1.1 200"));
}

/// The text of a file of this source tree.
fn source(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

#[test]
fn the_unit_is_given_up_after_starts_that_an_installation_and_a_play_forget() {
    let text = unit(UNITS[0]);
    for line in ["StartLimitBurst=5", "StartLimitIntervalSec=10min"] {
        assert!(text.lines().any(|own| own == line), "{line}");
    }
    let page = source("docs/reference/export.md");
    assert!(page.contains("at most five times within ten minutes"));
    // A start that is refused ends a play. Handlers run after all tasks.
    let tasks = source("ansible/roles/export/tasks/main.yml");
    let place = |words: &str| tasks.find(words).unwrap_or_else(|| panic!("no {words}"));
    let forgotten = place("systemctl reset-failed rxpath-export.*");
    assert!(forgotten < place("- name: Start the exporter"), "{tasks}");
}

/// What `postinstall.sh` asks of a systemctl of which these units failed and this verb fails, and what it says.
fn asked_by_an_installation(failed: &str, refused: &str) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let systemctl = format!(
        "#!/bin/sh\necho \"$*\" >>{}\n[ \"$1\" != is-failed ] || case ' {failed} ' in *\" $3 \"*) ;; *) exit 1 ;; esac\n\
         [ \"$1\" != '{refused}' ]\n",
        log.display()
    );
    let script = source("packaging/scripts/postinstall.sh")
        .replace("/run/systemd/system", &dir.path().display().to_string());
    // A shell reads both: a file that was just written may still be open in a process that another test starts.
    let whole =
        format!("systemctl() {{ sh {0}/systemctl \"$@\"; }}\n{script}", dir.path().display());
    fs::write(dir.path().join("systemctl"), systemctl).unwrap();
    let output = Command::new("sh").args(["-c", &whole]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let asked = fs::read_to_string(log).unwrap();
    let asked = asked.lines().filter(|line| !line.starts_with("is-failed"));
    (asked.map(str::to_owned).collect(), told)
}

#[test]
fn an_installation_starts_what_was_given_up_and_no_more() {
    let always =
        ["daemon-reload", "reset-failed rxpath-export.*", "try-restart rxpath-export.service"];
    let asked = |failed: &str| {
        let (asked, told) = asked_by_an_installation(failed, "");
        assert_eq!(told, "");
        asked
    };
    assert_eq!(asked(""), always);
    let both = asked("rxpath-export.service rxpath-export.socket");
    assert_eq!(both[..3], always);
    assert_eq!(both[3..], ["--no-block start rxpath-export.socket rxpath-export.service"]);
    let one = asked("rxpath-export.service");
    assert_eq!(one[3..], ["--no-block start rxpath-export.service"]);
}

/// dpkg would leave the package half installed.
#[test]
fn an_exporter_that_does_not_start_again_fails_no_installation() {
    let (asked, told) = asked_by_an_installation("rxpath-export.socket", "try-restart");
    assert_eq!(
        asked[2..],
        ["try-restart rxpath-export.service", "--no-block start rxpath-export.socket"]
    );
    assert!(told.contains("systemctl status rxpath-export"), "{told}");
}

/// The kubelet kills what does not answer in time, also while it loads its programs.
#[test]
fn a_slow_start_has_as_long_in_kubernetes_as_under_systemd() {
    assert!(unit(UNITS[0]).contains("\nTimeoutStartSec=5min\n"));
    let manifest = source("deploy/kubernetes/rxpath.yaml");
    let probe = manifest.split("startupProbe:").nth(1).expect("no probe of the start");
    let number = |key: &str| -> u32 {
        let own = |line: &str| line.trim().strip_prefix(key)?.strip_prefix(": ")?.parse().ok();
        probe.lines().find_map(own).unwrap_or_else(|| panic!("no {key}: {probe}"))
    };
    assert_eq!(number("periodSeconds") * number("failureThreshold"), 5 * 60);
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

/// Starts an exporter to which this listener is passed on, by what a shell puts before its `exec` and by these options. Gives the
/// first line that it says, too.
fn passed(listener: TcpListener, before: &str, options: &str) -> (Running, String) {
    let words = format!("export --no-bpf --interval 100ms --check-every 0s {options}");
    let script = format!("{before} exec \"$0\" {words} 3<&0 0</dev/null");
    let child = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_rxpath")])
        .stdin(std::os::fd::OwnedFd::from(listener))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Running(child);
    let mut line = String::new();
    BufReader::new(child.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

/// What systemd says of a socket that it passes on to the process which the shell becomes.
const SAID: &str = "LISTEN_PID=$$ LISTEN_FDS=1";

#[test]
fn a_passed_socket_is_served_with_the_metrics_and_the_status() {
    for (before, options) in [("", "--listen fd:3"), (SAID, ""), (SAID, "--listen fd:3")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (_child, line) = passed(listener, before, options);
        assert!(line.contains(&format!("http://{address}/metrics")), "{before} {options}: {line}");
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            let text = asked(address, "/status");
            if let Some(body) =
                text.strip_prefix("HTTP/1.1 200 OK").and_then(|t| t.split_once("\r\n\r\n"))
            {
                break body.1.to_owned();
            }
            assert!(text.starts_with("HTTP/1.1 503") && Instant::now() < deadline, "{text}");
            // why: the pace of looking; the deadline above ends it.
            std::thread::sleep(Duration::from_millis(10));
        };
        let metrics = asked(address, "/metrics");
        let status = crate::schema::result("export-status", &status);
        assert_eq!(status["not_measured"]["BPF probes"], "BPF was not asked for");
        assert!(metrics.contains("rxpath_agent_budget_ratio 0.01\n"), "{metrics}");
    }
}

#[test]
fn more_sockets_than_one_are_refused_unless_one_is_named() {
    let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
    let two = "LISTEN_PID=$$ LISTEN_FDS=2";
    let (mut child, line) = passed(listener(), two, "");
    assert_eq!(child.0.wait().unwrap().code(), Some(2), "{line}");
    assert!(line.contains("systemd passed on 2 sockets"), "{line}");
    let (_child, line) = passed(listener(), two, "--listen fd:3");
    assert!(line.contains("metrics on http://"), "{line}");
}

/// An address that others reach is refused in the unit's own words too.
#[test]
fn a_passed_socket_that_others_reach_needs_allow_remote() {
    let (mut child, line) = passed(TcpListener::bind("0.0.0.0:0").unwrap(), SAID, "");
    assert_eq!(child.0.wait().unwrap().code(), Some(2), "{line}");
    assert!(line.contains("anyone who reaches it"), "{line}");
}
