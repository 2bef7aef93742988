//! `rxpath trace` on how long datagrams wait for their reads, against the stamps of a reader that knows nothing of it.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt};
use rxpath_core::Log2;
use serde_json::Value;

use crate::alone::probes::{number, probe};
use crate::bed::{Bed, send, tried};
use crate::waits::{bound, stage};

/// Of the mean and each quantile.
const MOST: f64 = 0.15;

/// How a reader passes its time.
#[derive(Clone, Copy)]
enum Reader {
    /// It reads all the time but stalls so long in each period.
    Stalls(Duration, Duration),
    /// It works so long on each datagram.
    Works(Duration),
}

/// Reads until told to end and nothing is left. Gives from the kernel's stamp to the end of the read, in ns, sorted.
fn own_waits(socket: &UdpSocket, reader: Reader, end: &AtomicBool) -> Vec<u64> {
    let (mut waits, mut buffer) = (Vec::new(), [0; 64]);
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut stalled = Instant::now();
    loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let read = recvmsg::<SockaddrIn>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::empty(),
        );
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        match read {
            Ok(message) => waits.extend(message.cmsgs().unwrap().filter_map(|one| match one {
                ControlMessageOwned::ScmTimestampns(at) => {
                    Some(now.saturating_sub(Duration::from(at)).as_nanos() as u64)
                }
                _ => None,
            })),
            Err(_) if end.load(Ordering::Relaxed) => break,
            Err(_) => {}
        }
        match reader {
            Reader::Stalls(stall, period) if stalled.elapsed() >= period => {
                stalled = Instant::now();
                std::thread::sleep(stall);
            }
            Reader::Works(work) if read.is_ok() => {
                let begun = Instant::now();
                while begun.elapsed() < work {}
            }
            _ => {}
        }
    }
    waits.sort_unstable();
    waits
}

/// The quantile of sorted values.
fn quantile(waits: &[u64], q: f64) -> f64 {
    let rank = ((q * waits.len() as f64).ceil() as usize).clamp(1, waits.len());
    waits[rank - 1] as f64
}

/// The quantiles on both sides of a quantile, and of a histogram the middle of its bucket. One pause of the reader makes the waits
/// jump from one rank to the next: a few ranks more or less must not matter there.
fn quantiles(waits: &[u64], histogram: &Log2, q: f64) -> ([f64; 2], f64) {
    let ranks = (1.0 - q) / 4.0;
    let (low, high) = histogram.quantile(q).unwrap();
    ([q - ranks, q + ranks].map(|q| quantile(waits, q)), (low + high) as f64 / 2.0)
}

/// Bursts of datagrams: how many, of how many datagrams, and the pause between them.
type Bursts = (u32, u32, Duration);

/// Bursts of datagrams to such a reader: the mean and the quantiles that trace gives are those of the reader's own stamps.
fn agrees(port: u16, reader: Reader, bursts: Bursts, words: &[&str]) {
    // A hypervisor that stops one CPU between a datagram's stamp and what trace sees of it moves both apart.
    let why = tried(|| differs(port, reader, bursts, words), Option::is_none);
    assert_eq!(why, None);
}

/// In which way what trace gives differs from the reader's own stamps.
fn differs(
    port: u16,
    reader: Reader,
    (bursts, burst, pause): Bursts,
    words: &[&str],
) -> Option<String> {
    let bed = Bed::with_bpf()?;
    let (tx, rx) = bed.pair(1);
    let socket = bound(&rx, port);
    setsockopt(&socket, ReceiveTimestampns, &true).unwrap();
    setsockopt(&socket, RcvBufForce, &(64 << 20)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let port_text = port.to_string();
    let command = ["trace", "-d", "10m", "--netns", rx.name(), "--port", &port_text];
    let trace = probe(&[&command[..], words].concat());
    let end = AtomicBool::new(false);
    let waits = std::thread::scope(|scope| {
        let own = scope.spawn(|| own_waits(&socket, reader, &end));
        for _ in 0..bursts {
            send(&tx, port, burst);
            // why: the pace of bursts.
            std::thread::sleep(pause);
        }
        end.store(true, Ordering::Relaxed);
        own.join().unwrap()
    });
    let result = trace.end();
    let sent = bursts * burst;
    if waits.len() as u32 != sent {
        // A softirq thread without a CPU delivers late, and drops what a full backlog has no room for.
        return Some(format!("{} of {sent} are read", waits.len()));
    }
    difference(&waits, stage(&result, "socket-to-read"))
}

fn difference(waits: &[u64], stage: &Value) -> Option<String> {
    let counted = number(stage, "latencies_count") + number(stage, "unread_count");
    let of_all = counted / waits.len() as f64;
    if !(0.98..=1.02).contains(&of_all) {
        return Some(format!("{counted} of {}", waits.len()));
    }
    let histogram: Log2 = serde_json::from_value(stage["latency_ns"].clone()).unwrap();
    let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
    let means = ([mean; 2], number(stage, "mean_ns"));
    let of_q = |q: f64| quantiles(waits, &histogram, q);
    let all = [("mean", means), ("p90", of_q(0.9)), ("p99", of_q(0.99)), ("p99.9", of_q(0.999))];
    all.into_iter().find_map(|(name, ([least, most], told))| {
        let is_near = (1.0 - MOST) * least <= told && told <= (1.0 + MOST) * most;
        (!is_near).then(|| format!("{name}: {told} ns, by its own stamps {least} to {most}"))
    })
}

const MS: fn(u64) -> Duration = Duration::from_millis;

/// About 10,000 a second, a few at a time.
const STEADY: (u32, u32, Duration) = (600, 20, Duration::from_millis(2));

#[test]
fn a_stalling_reader_has_a_wait_for_each_datagram() {
    agrees(4801, Reader::Stalls(MS(50), MS(250)), STEADY, &[]);
}

#[test]
fn a_reader_of_bursts_has_a_wait_for_each_datagram() {
    agrees(4802, Reader::Works(Duration::from_micros(20)), (60, 200, MS(20)), &[]);
}

#[test]
fn a_busy_reader_has_a_wait_for_each_datagram() {
    agrees(4803, Reader::Works(Duration::from_micros(60)), STEADY, &["--every-packet"]);
}
