//! A day of `watch` in short ticks, on a machine where processes, sockets and ports come and go: its memory stays flat.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::goal;
use crate::state::Part;

/// Frames of one step: a quarter of a day.
const STEP: u64 = 21_600;

/// Goes on until FRAMES frames were shown: as many as a day has seconds.
pub fn go_on(part: &mut Part<'_>) {
    let row = "frames; peak: memory in kB";
    while part.done(row) < goal("FRAMES", 86_400) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| churn(&over));
            part.attempt(row, STEP, || {
                let flat = watch();
                over.store(true, Ordering::Relaxed);
                Some(flat)
            });
            over.store(true, Ordering::Relaxed);
        });
    }
}

/// Processes that live shortly, sockets on ever other ports, datagrams to ports that nobody has.
fn churn(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        Command::new("true").status().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = socket.local_addr().unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..20 {
            other.send_to(&[0; 64], own).unwrap();
        }
        // Whoever has the port now, it is on this machine; nobody is what is wanted.
        drop(socket);
        let _ = other.send_to(&[0; 64], own);
    }
}

/// Reads a step's frames; the memory must not grow after the first quarter. Gives the peak in kB.
fn watch() -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["watch", "--json", "--interval", "20ms", "-d", "1h"]).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut kib = Vec::new();
    for (count, line) in lines.enumerate() {
        line.unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        kib.push(rss.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
        if count as u64 >= STEP {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(kib.len() as u64 >= STEP, "watch ended after {} frames", kib.len());
    let early = kib[..kib.len() / 4].iter().copied().max().unwrap();
    let late = kib.into_iter().max().unwrap();
    assert!(late <= early + early / 10 + 1_024, "{early} kB in the first quarter, {late} kB later");
    late
}
