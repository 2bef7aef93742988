//! `--netns`, `--pid` and `--cgroup` of the commands that look at a host, with a real control group of version 2.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::lab::netns::{Namespace, NsChild};
use rxpath_host::read::netlink::UdpSocket;
use serde_json::Value;

use crate::alone::probes::{flood_to, number, probe, reader, rows};
use crate::bed::{Bed, RX_IP, random_id, send, tried, until};
use crate::program::rxpath;

/// Where control groups of version 2 are mounted: by the machine, or by this test in its own mount namespace.
fn mount_point() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap();
    let found = mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[2] == "cgroup2").then(|| PathBuf::from(words[1]))
    });
    found.unwrap_or_else(|| {
        let place = Path::new("/run/cgroup2");
        std::fs::create_dir_all(place).unwrap();
        let none = None::<&str>;
        mount(none, place, Some("cgroup2"), MsFlags::empty(), none).unwrap();
        place.to_owned()
    })
}

/// Two control groups of this test, taken away at its end.
struct Groups(PathBuf);

impl Groups {
    fn new() -> Self {
        let top = mount_point().join(format!("rxp-{}", random_id()));
        for group in ["", "reader", "other"] {
            std::fs::create_dir(top.join(group)).unwrap();
        }
        Self(top)
    }

    fn path(&self, group: &str) -> String {
        self.0.join(group).to_str().unwrap().into()
    }

    /// A receiver in the group `reader`. A socket belongs to the group in which it is made: the server starts once its
    /// process is in there.
    fn server(&self, rx: &Namespace, port: u16) -> NsChild {
        let mut command = Command::new("sh");
        let stopped = "kill -STOP $$; exec \"$@\"";
        command.args(["-c", stopped, "sh", env!("CARGO_BIN_EXE_rxpath"), "serve", "udp"]);
        command.args([&format!("{RX_IP}:{port}"), "-d", "10m"]);
        let server = rx.spawn(quiet(command)).unwrap();
        let pid = server.id.pid;
        until("the shell stands still", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|stat| stat.contains(") T "))
        });
        std::fs::write(self.0.join("reader/cgroup.procs"), pid.to_string()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
        listens(rx, port);
        server
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let procs = self.0.join("reader/cgroup.procs");
        // No panic in a drop: a test that failed has its own.
        let is_empty = || std::fs::read_to_string(&procs).is_ok_and(|pids| pids.is_empty());
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        for group in ["reader", "other", ""] {
            let _ = std::fs::remove_dir(self.0.join(group));
        }
    }
}

fn quiet(mut command: Command) -> Command {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn listens(rx: &Namespace, port: u16) {
    until("the server listens", || {
        rx.udp_sockets(Some(port)).unwrap().iter().any(|socket| socket.local.port() == port)
    });
}

/// Its answer as JSON.
fn asked(words: &[&str]) -> Value {
    rxpath(&[words, &["--json"]].concat()).ends(0).json()
}

/// What a rule recorded or found fine.
fn said(check: &Value, rule: &str) -> String {
    let notes = ["records", "fine", "silent", "cautions"].map(|kind| rows(&check["result"], kind));
    let note = notes.into_iter().flatten().find(|note| note["id"] == rule);
    note.unwrap_or_else(|| panic!("{rule} in {check}"))["text"].as_str().unwrap().into()
}

#[test]
fn check_judges_the_namespace_and_the_processes_that_are_named() {
    let Some(bed) = Bed::new() else { return };
    let groups = Groups::new();
    let (_tx, rx) = bed.pair(1);
    let server = groups.server(&rx, 4720);
    let mut other = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    other.args(["serve", "udp", &format!("{RX_IP}:4721"), "-d", "10m"]);
    let _other = rx.spawn(quiet(other)).unwrap();
    listens(&rx, 4721);
    rx.set_sysctl("net.ipv4.tcp_sack", "0").unwrap();
    let found = |check: &Value| {
        let findings = rows(&check["result"], "findings").clone();
        findings.iter().any(|finding| finding["id"] == "tcp-sack")
    };
    let ports = |check: &Value| said(check, "reuseport-incoming-cpu");

    let here = asked(&["check", "--window", "0s"]);
    assert!(!found(&here), "{here}");
    let whole = asked(&["check", "--window", "0s", "--netns", rx.name()]);
    assert!(found(&whole), "{whole}");
    assert_eq!(ports(&whole), "0 of 2 ports");
    assert_eq!(whole["settings"]["netns"], rx.name());
    let devices: Vec<&Value> = rows(&whole["settings"], "devices").iter().collect();
    assert_eq!(devices, ["lo", "veth"]);

    let pid = server.id.pid.to_string();
    let group = groups.path("reader");
    for words in [["--pid", &pid], ["--cgroup", &group]] {
        let one = asked(&[&["check", "--window", "0s"], &words[..]].concat());
        assert!(found(&one), "the namespace is that of the process: {one}");
        assert_eq!(ports(&one), "0 of 1 ports", "{words:?}");
        let warned = rows(&one, "warnings").iter().any(|it| it["code"] == "all-processes");
        assert!(warned, "{one}");
    }
    rxpath(&["check", "--cgroup", &groups.path("other")]).ends(2);
    drop(server);
}

#[test]
fn diagnose_and_watch_see_the_sockets_of_a_control_group_alone() {
    let Some(bed) = Bed::new() else { return };
    let groups = Groups::new();
    let (_tx, rx) = bed.pair(1);
    let server = groups.server(&rx, 4730);
    let mut other = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    other.args(["serve", "udp", &format!("{RX_IP}:4731"), "-d", "10m"]);
    let _other = rx.spawn(quiet(other)).unwrap();
    listens(&rx, 4731);

    let group = groups.path("");
    let answer = asked(&["watch", "--once", "--no-bpf", "--cgroup", &group]);
    let sockets = rows(&answer["result"], "sockets").iter();
    let local: Vec<&str> = sockets.map(|socket| socket["local"].as_str().unwrap()).collect();
    assert_eq!(local, [format!("{RX_IP}:4730")], "{answer}");
    let answer = asked(&["diagnose", "-d", "200ms", "--no-bpf", "--cgroup", &group]);
    let text = answer["result"]["evidence_read"].to_string();
    let warned = rows(&answer, "warnings").iter().map(|it| it["code"].as_str().unwrap());
    let warned: Vec<&str> = warned.collect();
    assert!(warned.contains(&"all-processes") && !warned.contains(&"no-socket"), "{text}");
    drop(server);
}

#[test]
fn a_control_group_and_those_below_it_are_told_from_their_sibling() {
    let Some(bed) = Bed::with_bpf() else { return };
    let groups = Groups::new();
    let (tx, rx) = bed.pair(1);
    let server = groups.server(&rx, 4700);
    let seen = |group: &str| {
        // By turns, the packets of other tests could be in all of them.
        let group = groups.path(group);
        let trace = probe(&["trace", "-d", "10m", "--every-packet", "--cgroup", &group]);
        send(&tx, 4700, 500);
        let result = trace.end();
        rows(&result, "stages").iter().map(|stage| number(stage, "latencies_count")).sum::<f64>()
    };
    assert!(seen("reader") > 0.0);
    assert!(seen("") > 0.0, "a group has those below it");
    assert!(seen("other").abs() < 0.5);
    drop(server);
}

#[test]
fn steal_has_the_rows_of_the_named_processes() {
    let Some(bed) = Bed::with_bpf() else { return };
    let groups = Groups::new();
    let (tx, rx) = bed.pair(1);
    let server = groups.server(&rx, 4710);
    let pid = server.id.pid.to_string();
    let tasks = |scope: &[&str]| {
        let words = [&["steal", "-d", "10m", "--irq-entry", "1"], scope].concat();
        let steal = probe(&words);
        send(&tx, 4710, 2000);
        // On a busy machine the server runs a while later.
        until("the server has read them", || {
            let waiting = |socket: &UdpSocket| socket.memory.is_some_and(|memory| memory.rmem > 0);
            !rx.udp_sockets(Some(4710)).unwrap().iter().any(waiting)
        });
        rows(&steal.end(), "tasks").clone()
    };
    let group = groups.path("reader");
    for scope in [["--pid", &pid], ["--cgroup", &group]] {
        let rows = tasks(&scope);
        assert!(!rows.is_empty(), "the server ran");
        let is_server = |row: &Value| row["tgid"].as_i64() == pid.parse().ok();
        assert!(rows.iter().all(is_server), "{scope:?}: {rows:?}");
    }
    assert!(tasks(&["--cgroup", &groups.path("other")]).is_empty());
    drop(server);
}

/// The victim pays for what the receiver's namespace is sent: rows and flows of that namespace alone.
#[test]
fn steal_has_the_flows_of_the_named_namespace() {
    let Some((_bed, tx, rx, [from, to])) = Bed::steered() else { return };
    let told = |ns: &Namespace| {
        let cpu = to.to_string();
        let words = ["steal", "--probe", "--cpu", &cpu, "-d", "3s", "--irq-entry", "1", "--netns"];
        let steal = probe(&[&words[..], &[ns.name()]].concat());
        let socket = reader(&rx);
        steal.while_it_spins(|| {
            flood_to(&socket, &tx, from, 20_000);
        })
    };
    // The victim may have no CPU while packets are steered to it.
    let has_flows = |result: &Value| {
        let lists = [&result["victim"]["taken_by"], &result["victim"]["taken_for"]];
        lists.iter().any(|list| list.as_array().is_some_and(|all| !all.is_empty()))
    };
    let result = tried(|| told(&rx), has_flows);
    let inode = rx.run(|_| std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino()).unwrap();
    let of = |row: &Value| -> Vec<u64> {
        let both = [&row["taken_by"], &row["taken_for"]].map(|it| it.as_array().cloned());
        both.into_iter().flatten().flatten().map(|it| it["netns"].as_u64().unwrap()).collect()
    };
    let tasks = rows(&result, "tasks");
    assert!(tasks.iter().any(|row| row["comm"] == "rxpath-victim"), "{tasks:?}");
    for row in tasks.iter().chain([&result["victim"]]) {
        let netns = of(row);
        assert!(!netns.is_empty() && netns.iter().all(|it| *it == inode), "{row}");
    }
    let result = told(&tx);
    assert!(rows(&result, "tasks").is_empty(), "the sender is sent nothing: {result}");
}

/// What is mounted below `/sys` is in its place in a thread that lives in a namespace.
#[test]
fn a_namespace_keeps_what_is_mounted_below_sys() {
    let Some(bed) = Bed::new() else { return };
    let groups = Groups::new();
    let (_tx, rx) = bed.pair(1);
    let place = groups.0.join("reader/cgroup.procs");
    assert!(rx.run(move |_| place.exists()).unwrap());
    assert!(rx.run(|_| Path::new("/sys/class/net/veth").exists()).unwrap());
}
