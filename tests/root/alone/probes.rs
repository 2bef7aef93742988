//! `rxpath steal` and `rxpath trace` on real traffic: whose work it was, nothing counted twice, and the rows' sums.
//!
//! Nothing here is a time or a rate: those parts are in `make bench`.

mod drops;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::read::thread;
use rxpath_host::write::sched;
use serde_json::Value;

use crate::alone::arrived::until_arrived;
use crate::bed::{Bed, RX_IP, TX_IP, send, tried, until};
use crate::stolen::own_softirq_most_s;

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

    /// The same, which must be as the schema `name` says.
    #[track_caller]
    fn end_as(self, name: &str) -> Value {
        crate::schema::result(name, &self.end_text())
    }

    /// The result with everything around it.
    pub fn end_whole(self) -> Value {
        serde_json::from_str(&self.end_text()).unwrap()
    }

    fn end_text(mut self) -> String {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{text}");
        text
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

    /// Ids of those that are at their hooks now, in order.
    pub fn attached(&self) -> Vec<u32> {
        let is_link = |about: &str| about.lines().any(|line| line.starts_with("link_type:"));
        let mut ids = self.of_descriptors("prog_id:", is_link);
        ids.sort_unstable();
        ids
    }

    /// Instructions of each program that the verifier looked at, in all paths through it.
    pub fn verified(&self) -> Vec<u32> {
        self.of_descriptors("verified_insns:", |_| true)
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
        sched::pin(cpu).unwrap();
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
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let steal = probe(&["steal", "-d", "10m", "--irq-entry", "1"]);
    let tid = flood(&tx, &rx, thread::allowed_cpus().unwrap().0[0], 20_000);
    let result = steal.end_as("steal");
    assert_sums(&result);
    let sender = task(&result, tid);
    // The receive path of every datagram ran inside its own send: that is more than what others had run in its time.
    assert!(number(&sender, "own_softirq_s") > number(&sender, "net_rx_s"), "{sender}");
    assert!(number(&sender, "contradicted_s").abs() < 1e-9, "{sender}");
    assert_eq!(result["tasks"].as_array().unwrap().iter().filter(|t| t["pid"] == tid).count(), 1);
}

#[test]
fn what_rps_sends_to_another_cpu_is_taken_from_the_task_there() {
    let Some((_bed, tx, rx, [from, to])) = Bed::steered() else { return };
    let victim = to.to_string();
    let words = ["steal", "--probe", "--cpu", &victim, "-d", "2s", "--irq-entry", "1"];
    let attempt = || {
        let result = probe(&words).while_it_spins(|| {
            flood(&tx, &rx, from, 20_000);
        });
        assert_sums(&result);
        result
    };
    // Other traffic of this machine may take more. Flows are looked at by turns, of which none may meet this one.
    let is_ours = |of: &Value| of["transport"] == "udp" && of["to"] == RX_IP.to_string();
    let has_ours = |result: &Value| rows(&result["victim"], "taken_for").iter().any(is_ours);
    let result = tried(attempt, has_ours);
    let victim = &result["victim"];
    let time = &victim["time"];
    assert!(number(time, "net_rx_s") > 0.0, "{victim}");
    assert!(number(time, "own_softirq_s") < own_softirq_most_s(), "{victim}");
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
    assert!(has_ours(&result), "{victim}");
}

/// What is left out has no program in the kernel, and says that it was not looked at; the polls are there.
#[test]
fn what_is_left_out_is_not_looked_at_and_told() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4502)).unwrap()).unwrap();
    let trace = probe(&["trace", "-d", "10m", "--without", "stages,drops", "--without", "sockets"]);
    send(&tx, 4502, 5000);
    until_arrived(&rx, 5000);
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
