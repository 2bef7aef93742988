//! Deep looks of `rxpath export` at real losses.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rxpath_host::Root;
use rxpath_host::lab::netns::{Inside, Namespace};

use crate::bed::{Bed, RX_IP, TX_IP, send, tried, until};
use crate::exporter::Running;

/// A port without a socket: its verdict needs no owner of a socket, which an exporter without capabilities does not see.
const CLOSED: u16 = 4812;
const READ: u16 = 4811;
const SHED: &str = "rxpath_agent_shed{what=\"deep look\"}";
/// In the evidence of the verdict of a deep look.
const FOUND: &str = "found by a deep look of 3 s";

/// An exporter of this namespace with a budget; without probes, whose windows cost more.
fn exporter(rx: &Namespace, budget: &str) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--no-bpf", "--netns", rx.name(), "--budget", budget]);
    Running::of(command)
}

/// Deep looks with this result.
fn looks(running: &Running, result: &str) -> Option<f64> {
    let series = format!("rxpath_agent_deep_looks_total{{result=\"{result}\"}}");
    running.value(&series)
}

fn status(running: &Running) -> String {
    let mut stream = TcpStream::connect(running.target()).unwrap();
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_loss_gets_one_deep_look_whose_verdict_stands_while_it_lasts() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let running = exporter(&rx, "100%");
    until("windows without a loss", || running.value("rxpath_window_seconds_total") > Some(0.5));
    assert_eq!(["made", "budget", "failed"].map(|result| looks(&running, result)), [Some(0.0); 3]);
    until("a deep look was made", || {
        send(&tx, CLOSED, 1_000);
        looks(&running, "made") > Some(0.0)
    });
    until("the verdict of the deep look stands", || {
        send(&tx, CLOSED, 1_000);
        status(&running).contains(FOUND)
    });
    let counted = || running.value("rxpath_window_seconds_total").unwrap();
    let begun = counted();
    until("the loss lasts for seconds more", || {
        send(&tx, CLOSED, 1_000);
        counted() > begun + 4.0
    });
    assert_eq!(looks(&running, "made"), Some(1.0), "{}", running.page());
    assert_eq!(running.value(SHED), Some(0.0), "{}", running.page());
}

#[test]
fn while_the_budget_is_spent_a_loss_waits_for_its_deep_look_and_gets_none() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    // Windows of 0.2 s cost more. Of the 0.3 s of five minutes less is left then than the 0.1 s of a first deep look.
    let running = exporter(&rx, "0.1%");
    let spent_s = || {
        let [cost, window_s] = ["rxpath_agent_cost_ratio", "rxpath_window_seconds_total"];
        Some(running.value(cost)? * running.value(window_s)?)
    };
    until("the budget is spent in windows without a loss", || spent_s() > Some(0.22));
    until("a loss waits", || {
        send(&tx, CLOSED, 1_000);
        let is_named = running.page().contains("rxpath_not_read{what=\"deep look\"} 1");
        is_named && running.value(SHED) == Some(1.0)
    });
    until("a loss that was over got none", || {
        looks(&running, "budget") > Some(0.0) && running.value(SHED) == Some(0.0)
    });
    assert_eq!(looks(&running, "made"), Some(0.0), "{}", running.page());
}

/// An exporter with probes whose deep look at losses of the reader is over, and its status then. The one that it has after 20 s
/// where there was none: a list of sockets may have cost too much, or a window have had a surer verdict.
fn looked_deep(rx: &Namespace, send_burst: impl Fn()) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", rx.name(), "--budget", "100%", "--irq-entry", "5us"]);
    let running = Running::of(command);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        send_burst();
        let status = status(&running);
        if status.contains(FOUND) || Instant::now() > deadline {
            return (running, status);
        }
        // why: the pace of bursts, which leaves the reader its CPU; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process with so many sockets at one port. It has capabilities, and hides its descriptors and what its threads wait for from
/// the exporter, which has none. Windows do not know who reads.
fn serving(rx: &Namespace, sockets: usize, words: &[&str]) -> Child {
    let mut reader = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    reader.args(["serve", "udp", &format!("{RX_IP}:{READ}"), "--batch", "1", "-d", "300s"]);
    reader.args(words).stdout(Stdio::null()).stderr(Stdio::null());
    let reader = rx.run(move |_| reader.spawn().unwrap()).unwrap();
    // A loss at a port without a reader would get the only deep look of five minutes.
    let listed = |_: &mut Inside| std::fs::read_to_string("/proc/thread-self/net/udp").unwrap();
    let port = format!(":{READ:04X} ");
    until("the reader has its port", || rx.run(listed).unwrap().matches(&port).count() >= sockets);
    reader
}

#[test]
fn a_deep_look_finds_the_reader_of_a_socket_whose_owner_is_hidden() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    // A reader that takes 5 ms for each datagram: it reads some 60 times in the time in which readers are found.
    let mut reader = serving(&rx, 1, &["--work", "5ms"]);
    // In the only look of an exporter the reader may have no CPU.
    let is_found = |(_, status): &(Running, String)| {
        status.contains(FOUND) && !status.contains("\"stage\": \"unknown\"")
    };
    let looked = tried(|| looked_deep(&rx, || send(&tx, READ, 1_000)), is_found);
    assert!(is_found(&looked), "{}", looked.1);
    let (running, _) = looked;
    reader.kill().unwrap();
    reader.wait().unwrap();
    let maps = running.value("rxpath_agent_memory_bytes{kind=\"bpf_maps\"}").unwrap();
    let cpus = Root::host().cpus("/sys/devices/system/cpu/possible").unwrap().0.len();
    // The maps of windows grow with the CPUs.
    let most = 16e6 * cpus.max(2) as f64 / 2.0;
    assert!(maps > 0.0 && maps < most, "{maps} of {most} bytes");
}

#[test]
fn a_deep_look_finds_a_group_uneven_whose_idle_readers_are_hidden() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let mut readers = serving(&rx, 3, &["-t", "3", "--sockets", "reuseport", "--work", "5ms"]);
    // One flow: one of the three sockets gets it all.
    let sender = tx.run(|_| UdpSocket::bind((TX_IP, 0)).unwrap()).unwrap();
    let send_burst = || {
        for _ in 0..1_000 {
            sender.send_to(&[7; 32], (RX_IP, READ)).unwrap();
        }
    };
    // In the only look of an exporter the reader may be kept from its CPU, and that limits it then.
    let is_found = |(_, status): &(Running, String)| {
        status.contains(FOUND) && status.contains("\"stage\": \"reuseport-imbalance\"")
    };
    let looked = tried(|| looked_deep(&rx, send_burst), is_found);
    readers.kill().unwrap();
    readers.wait().unwrap();
    assert!(is_found(&looked), "{}", looked.1);
    assert!(looked.1.contains("2 other sockets, whose readers are not known"), "{}", looked.1);
}
