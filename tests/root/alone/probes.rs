//! `rxpath steal` and `rxpath trace` on real traffic: whose work it was, nothing counted twice, the rows' sums, the
//! exact number of drops with their reason, and nothing left in the kernel.
//!
//! Nothing here is a time or a rate: those parts are in `make bench`.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use nix::unistd::Pid;
use rxpath_bpf::drops::Drops;
use rxpath_bpf::filter::Filter;
use rxpath_host::{Namespace, thread};
use serde_json::Value;

use crate::bed::{Bed, RX_IP, TX_IP, send, until};
use crate::skip::skip;

/// A running probe.
pub struct Probe {
    pub child: Child,
    stdout: ChildStdout,
}

/// Starts it, and waits until its programs are attached.
pub fn probe(words: &[&str]) -> Probe {
    started(command(words))
}

/// The same in a namespace.
pub fn probe_in(ns: &Namespace, words: &[&str]) -> Probe {
    let command = command(words);
    ns.run(move |_| started(command)).unwrap()
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(words).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn started(mut command: Command) -> Probe {
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert!(told.read_line(&mut line).unwrap() > 0, "ended before it was ready: {said}");
        said += &line;
        if line.starts_with("counting") || line.starts_with("tracing") {
            break;
        }
    }
    // Nobody must wait for a full pipe.
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let stdout = child.stdout.take().unwrap();
    Probe { child, stdout }
}

impl Probe {
    /// Its result, after a signal to end.
    pub fn end(self) -> Value {
        self.end_whole()["result"].take()
    }

    /// The same with everything around it.
    pub fn end_whole(mut self) -> Value {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Its result at its own end; `job` is done while its built-in victim spins.
    pub fn while_it_spins(mut self, job: impl FnOnce()) -> Value {
        until("the victim spins", || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
            let comm = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm"));
            let mut comms = tasks.flatten().filter_map(|task| comm(task.path()).ok());
            comms.any(|comm| comm.starts_with("rxpath-victim"))
        });
        job();
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success(), "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["result"].take()
    }

    /// Times that the thread which looks at sockets went to sleep: once after each look.
    pub fn looks(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |path: std::path::PathBuf| {
            let comm = std::fs::read_to_string(path.join("comm")).ok()?;
            let status = std::fs::read_to_string(path.join("status")).ok()?;
            let count = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?;
            (comm == "rxpath-queues\n").then(|| count.trim().parse().ok())?
        };
        // It has its name from its first turn on a CPU on.
        tasks.flatten().find_map(|task| of(task.path())).unwrap_or(0)
    }

    /// Ids of its programs, from its descriptors.
    fn programs(&self) -> Vec<u32> {
        self.ids(|_| true)
    }

    /// Ids of those that are at their hooks now, in order.
    pub fn attached(&self) -> Vec<u32> {
        let is_link = |about: &str| about.lines().any(|line| line.starts_with("link_type:"));
        let mut ids = self.ids(is_link);
        ids.sort_unstable();
        ids
    }

    /// Instructions of each program that the verifier looked at, in all paths through it.
    pub fn verified(&self) -> Vec<u32> {
        self.of_descriptors("verified_insns:", |_| true)
    }

    fn ids(&self, wanted: impl Fn(&str) -> bool) -> Vec<u32> {
        self.of_descriptors("prog_id:", wanted)
    }

    fn of_descriptors(&self, key: &str, wanted: impl Fn(&str) -> bool) -> Vec<u32> {
        let dir = format!("/proc/{}/fdinfo", self.child.id());
        let value = |text: String| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.filter(|_| wanted(&text))?.trim().parse().ok()
        };
        let entries = std::fs::read_dir(dir).unwrap();
        let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        texts.filter_map(value).collect()
    }
}

pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

pub fn rows<'v>(result: &'v Value, key: &str) -> &'v Vec<Value> {
    result[key].as_array().unwrap_or_else(|| panic!("{key} in {result}"))
}

const PARTS: [&str; 9] = [
    "own_s",
    "hardirq_s",
    "net_rx_s",
    "net_tx_s",
    "other_softirq_s",
    "mixed_softirq_s",
    "own_softirq_s",
    "irq_entry_estimated_s",
    "hypervisor_steal_s",
];

/// The parts of every row make its time, the rows of a CPU its window, and the tasks the CPUs.
fn assert_sums(result: &Value) {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let parts = |row: &Value| PARTS.iter().map(|part| number(row, part)).sum::<f64>();
    for row in rows(result, "tasks").iter().chain(rows(result, "cpus")) {
        assert!(near(parts(row), number(row, "on_cpu_s")), "{row}");
        assert!(number(row, "own_s") >= -1e-9, "{row}");
    }
    for cpu in rows(result, "cpus") {
        let window = number(cpu, "on_cpu_s") + number(cpu, "lost_s");
        assert!(near(window, number(cpu, "window_s")), "{cpu}");
    }
    let sum = |key| rows(result, key).iter().map(|row| number(row, "on_cpu_s")).sum::<f64>();
    assert!(near(sum("tasks"), sum("cpus")));
}

/// Sends to a socket that is read, from a thread in the namespace; gives the thread's id.
pub fn flood(tx: &Namespace, rx: &Namespace, cpu: u32, count: u32) -> i32 {
    flood_to(&reader(rx), tx, cpu, count)
}

/// The socket. As long as it is open, what another CPU delivers late is no reason to tell the sender.
pub fn reader(rx: &Namespace) -> UdpSocket {
    let socket = rx.run(|_| UdpSocket::bind((RX_IP, 4000)).unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

pub fn flood_to(socket: &UdpSocket, tx: &Namespace, cpu: u32, count: u32) -> i32 {
    let socket = socket.try_clone().unwrap();
    tx.run(move |_| {
        thread::pin(cpu).unwrap();
        let out = UdpSocket::bind((TX_IP, 0)).unwrap();
        let mut buffer = [0; 64];
        for _ in 0..count {
            out.send_to(&[7; 32], (RX_IP, 4000)).unwrap();
            while socket.recv(&mut buffer).is_ok() {}
        }
        thread::current_tid()
    })
    .unwrap()
}

fn task(result: &Value, pid: i32) -> Value {
    let found = rows(result, "tasks").iter().find(|task| task["pid"] == pid);
    found.unwrap_or_else(|| panic!("no row of {pid}")).clone()
}

#[test]
fn what_a_sender_makes_run_is_its_own_and_no_theft() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let steal = probe(&["steal", "-d", "10m", "--irq-entry", "1"]);
    let tid = flood(&tx, &rx, thread::allowed_cpus().unwrap().0[0], 20_000);
    let result = steal.end();
    assert_sums(&result);
    let sender = task(&result, tid);
    // The receive path of every datagram ran inside its own send: that is more than what others had run in its time.
    assert!(number(&sender, "own_softirq_s") > number(&sender, "net_rx_s"), "{sender}");
    assert!(number(&sender, "contradicted_s").abs() < 1e-9, "{sender}");
    assert_eq!(result["tasks"].as_array().unwrap().iter().filter(|t| t["pid"] == tid).count(), 1);
}

#[test]
fn what_rps_sends_to_another_cpu_is_taken_from_the_task_there() {
    let Some(bed) = Bed::with_bpf() else { return };
    let cpus = thread::allowed_cpus().unwrap().0;
    let [from, .., to] = cpus[..] else {
        skip("second_cpu", "one CPU: there is none to steer to");
        return;
    };
    let (tx, rx) = bed.pair(1);
    rx.set_queue_attr("veth", "rx-0/rps_cpus", &format!("{:x}", 1u64 << to)).unwrap();
    let victim = to.to_string();
    let words = ["steal", "--probe", "--cpu", &victim, "-d", "4s", "--irq-entry", "1"];
    let result = probe(&words).while_it_spins(|| {
        flood(&tx, &rx, from, 20_000);
    });
    assert_sums(&result);
    let victim = &result["victim"];
    let time = &victim["time"];
    assert!(number(time, "net_rx_s") > 0.0, "{victim}");
    // Its start and its end are calls, which may raise one; the loop raises none.
    assert!(number(time, "own_softirq_s") < 1e-3, "{victim}");
    assert!(
        number(time, "certain_s") <= number(time, "net_rx_s") + number(time, "net_tx_s") + 1e-9
    );
    // Counted once: what the victim's own loop did not miss was not taken from it. The thread does little else than loop.
    let spans = ["hardirq_s", "net_rx_s", "net_tx_s", "other_softirq_s", "mixed_softirq_s"];
    let taken: f64 = spans.iter().map(|part| number(time, part)).sum();
    assert!(taken <= number(victim, "gaps_s") + 5e-3, "{victim}");
    for idle in rows(&result, "tasks").iter().filter(|task| task["kind"] == "idle") {
        assert!(number(idle, "own_softirq_s").abs() < 1e-9, "it asks for nothing: {idle}");
    }
    let by_backlog = rows(victim, "taken_by").iter().any(|by| by["dev"] == "backlog");
    assert!(by_backlog, "RPS goes through the backlog: {victim}");
    let to = &rows(victim, "taken_for")[0];
    assert_eq!((&to["transport"], &to["to"]), (&"udp".into(), &RX_IP.to_string().into()), "{to}");
}

#[test]
fn drops_are_counted_exactly_with_reason_place_and_port() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let full = rx.run(|_| UdpSocket::bind((RX_IP, 4501)).unwrap()).unwrap();
    let trace = probe(&["trace", "-d", "10m"]);
    send(&tx, 4500, 500);
    send(&tx, 4501, 5000);
    let received = rx
        .run(move |_| {
            full.set_nonblocking(true).unwrap();
            let mut buffer = [0; 64];
            let count = std::iter::from_fn(|| full.recv(&mut buffer).ok()).count();
            (count as u64, full)
        })
        .unwrap();
    let result = trace.end();
    let dropped = |port: u64, reason: &str| {
        let drops = rows(&result, "drops").iter();
        let of: Vec<&Value> =
            drops.filter(|drop| drop["port"] == port && drop["dev"] == "veth").collect();
        assert!(of.iter().all(|drop| drop["reason"] == reason), "{of:?}");
        assert!(of.iter().all(|drop| drop["place"].as_str().unwrap().contains("udp")), "{of:?}");
        of.iter().map(|drop| drop["packets"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(dropped(4500, "NO_SOCKET"), 500);
    let lost = dropped(4501, "SOCKET_RCVBUFF");
    assert_eq!(lost + received.0, 5000);
    assert!(lost > 0, "the default buffer holds fewer than 5,000 datagrams");
    // Whose socket it is: this process', which has it open; of the other port there is none.
    let own = format!("({})", std::process::id());
    for drop in rows(&result, "drops").iter().filter(|drop| drop["dev"] == "veth") {
        let named = drop["processes"]
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name.as_str().unwrap().ends_with(&own)));
        assert_eq!(named, drop["port"] == 4501, "{drop}");
    }
    let stages = rows(&result, "stages");
    assert!(stages.iter().all(|stage| number(stage, "latencies_count") > 0.0), "{stages:?}");
}

/// More ports than the kernel's table has room for: the rest is told without its ports, and nothing is lost.
#[test]
fn drops_of_more_ports_than_there_is_room_for_keep_their_reason() {
    const PORTS: u16 = 10_000;
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let full = rx.run(|_| UdpSocket::bind((RX_IP, 4501)).unwrap()).unwrap();
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    tx.run(|_| {
        let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
        for port in 0..PORTS {
            socket.send_to(&[7; 32], (RX_IP, 20_000 + port)).unwrap();
        }
    })
    .unwrap();
    send(&tx, 4501, 5000);
    let result = trace.end();
    let of = |reason: &str, folded: bool| {
        let drops = rows(&result, "drops").iter().filter(|drop| drop["reason"] == reason);
        let drops = drops.filter(|drop| (drop["folded"] == true) == folded);
        drops.fold((0, 0), |(rows, packets), drop| {
            (rows + 1, packets + drop["packets"].as_u64().unwrap())
        })
    };
    let ((ports, single), (_, folded)) = (of("NO_SOCKET", false), of("NO_SOCKET", true));
    assert_eq!(single + folded, u64::from(PORTS));
    assert!(ports == single && folded > 0, "{ports} ports, {single} packets, {folded} folded");
    let (rows, lost) = of("SOCKET_RCVBUFF", true);
    assert!(rows > 0 && lost > 0, "the reason is there although the table was full");
    assert_eq!(number(&result["probe_cost"], "lost_count") as u64, 0);
    drop(full);
}

/// What is left out has no program in the kernel, and says that it was not looked at; the polls are there.
/// Who watches for long has room for what is dropped now.
#[test]
fn drops_of_long_ago_are_forgotten_and_later_ones_counted_anew() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4810)).unwrap()).unwrap();
    let drops = Drops::start(&Filter::default()).unwrap();
    let dropped = || {
        let rows = drops.read().unwrap();
        rows.iter().filter(|row| row.port == 4810).map(|row| row.packets).sum::<u64>()
    };
    send(&tx, 4810, 5_000);
    until("what found no room was counted", || dropped() > 1_000);
    let before = dropped();
    drops.forget(Duration::from_secs(3600)).unwrap();
    assert_eq!(dropped(), before, "it is not that long ago");
    drops.forget(Duration::ZERO).unwrap();
    assert_eq!(dropped(), 0);
    send(&tx, 4810, 100);
    until("the next ones were counted", || dropped() == 100);
}

#[test]
fn what_is_left_out_is_not_looked_at_and_told() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4502)).unwrap()).unwrap();
    let trace = probe(&["trace", "-d", "10m", "--without", "stages,drops", "--without", "sockets"]);
    send(&tx, 4502, 5000);
    let result = trace.end();
    assert_eq!(result["left_out"].to_string(), r#"["drops","stages","sockets"]"#);
    for list in ["drops", "stages", "sockets"] {
        assert_eq!(rows(&result, list).len(), 0, "{list}");
    }
    let names: Vec<&str> =
        rows(&result, "probes").iter().map(|probe| probe["program"].as_str().unwrap()).collect();
    assert!(!names.contains(&"netif_receive_skb") && !names.contains(&"kfree_skb"), "{names:?}");
    let polled: f64 = rows(&result, "napis").iter().map(|napi| number(napi, "packets")).sum();
    assert!(polled >= 5000.0, "{polled}");
}

#[test]
fn a_killed_probe_leaves_no_program_in_the_kernel() {
    let Some(_bed) = Bed::with_bpf() else { return };
    for words in [["steal", "-d", "10m", "--irq-entry=1"], ["trace", "-d", "10m", "--top=1"]] {
        let mut probe = probe(&words);
        let ids = probe.programs();
        assert!(ids.len() >= 8, "{words:?} has {} programs", ids.len());
        let in_kernel = |ids: &[u32]| {
            let now = rxpath_bpf::cost::programs_in_kernel();
            ids.iter().filter(|id| now.contains(id)).count()
        };
        assert_eq!(in_kernel(&ids), ids.len());
        probe.child.kill().unwrap();
        probe.child.wait().unwrap();
        // The kernel frees them in the background.
        until("its programs are gone", || in_kernel(&ids) == 0);
    }
}

/// Packets dropped on `port`, by what a trace with these words saw while `full` overflowed.
fn dropped_on(words: &[&str], tx: &Namespace, port: u16) -> u64 {
    let all: Vec<&str> = ["trace", "-d", "10m"].iter().chain(words).copied().collect();
    let trace = probe(&all);
    send(tx, port, 3000);
    let result = trace.end();
    let drops = rows(&result, "drops").iter().filter(|drop| drop["port"] == port);
    drops.map(|drop| drop["packets"].as_u64().unwrap()).sum()
}

#[test]
fn filters_leave_out_what_is_anothers() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    // Nobody reads it: it overflows, and is this process' own.
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4501)).unwrap()).unwrap();
    send(&tx, 4501, 3000);
    let me = std::process::id().to_string();
    assert_eq!(dropped_on(&["--pid", &me], &tx, 4501), 3000);
    assert_eq!(dropped_on(&["--pid", &me], &tx, 4502), 0, "nobody's socket is not this process'");
    assert_eq!(dropped_on(&["--pid", "1"], &tx, 4501), 0);
    assert_eq!(dropped_on(&["--netns", rx.name()], &tx, 4501), 3000);
    assert_eq!(dropped_on(&["--netns", tx.name()], &tx, 4501), 0);
    assert_eq!(dropped_on(&["--netns", &me], &tx, 4501), 0, "this process is in another namespace");
}

/// The checksum of a long datagram is looked at when it is read: it has no device any more then, and no socket is named.
#[test]
fn a_namespace_has_the_drops_of_its_readers() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let reader = rx.run(|_| UdpSocket::bind((RX_IP, 4503)).unwrap()).unwrap();
    reader.set_nonblocking(true).unwrap();
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    tx.run(|_| damaged(4503, 50)).unwrap();
    send(&tx, 4503, 1);
    rx.run(move |_| until("the good one is read", || reader.recv(&mut [0; 600]).is_ok())).unwrap();
    let result = trace.end();
    let drops = rows(&result, "drops").iter().filter(|drop| drop["port"] == 4503);
    let packets = drops.map(|drop| drop["packets"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(packets, 50, "{result}");
}

/// Sends long datagrams with a wrong checksum.
fn damaged(port: u16, count: usize) {
    let (raw, none) = (SockType::Raw, SockFlag::empty());
    let socket = socket(AddressFamily::Inet, raw, none, SockProtocol::Udp).unwrap();
    let mut packet = [0; 508];
    for (at, word) in [port, port, 508, 0x1234].into_iter().enumerate() {
        packet[2 * at..][..2].copy_from_slice(&word.to_be_bytes());
    }
    let to = SockaddrIn::from(std::net::SocketAddrV4::new(RX_IP, 0));
    for _ in 0..count {
        sendto(socket.as_raw_fd(), &packet, &to, MsgFlags::empty()).unwrap();
    }
}
