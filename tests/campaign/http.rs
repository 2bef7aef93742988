//! `serve http` under clients that are slow, broken or hostile: bounded memory, and the others are still served.

mod syn_flood;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::Linger};
use rand::RngExt;

use crate::bed::until;
use crate::goal;
use crate::state::Part;

/// How long each attack lasts.
const LASTS: Duration = Duration::from_secs(20);
/// What the server may take: 16 KiB for each of 10,000 connections, and 64 MiB.
const MOST_KIB: u64 = 64 * 1024 + 16 * 10_000;

/// Lasts as long as the server is attacked.
type Attack = fn(SocketAddr);

const ATTACKS: [(&str, Attack); 5] = [
    ("slow heads", slow),
    ("garbage", garbage),
    ("oversized heads", oversized),
    ("half-closed", half_closed),
    ("connect and reset", resets),
];

pub fn go_on(part: &mut Part<'_>) {
    for engine in ["epoll", "uring"] {
        for (name, attack) in ATTACKS {
            let row = format!("{engine}: {name}; peak: memory in kB");
            if part.done(&row) == 0 {
                part.attempt(&row, 1, || Some(attacked(engine, attack)));
            }
        }
        let row = format!("{engine}: flood of SYN; peak: memory in kB");
        if part.done(&row) == 0 {
            part.attempt(&row, 1, || Some(syn_flood::flooded(engine)));
        }
    }
}

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(engine: &str) -> Self {
        let port = rand::rng().random_range(20_000..30_000);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let server = Self::of(Command::new(env!("CARGO_BIN_EXE_rxpath")), engine, address);
        until("the server listens", || TcpStream::connect(address).is_ok());
        server
    }

    /// As this command, which runs the program.
    fn of(mut command: Command, engine: &str, address: SocketAddr) -> Self {
        command.args(["serve", "http", &address.to_string(), "--engine", engine]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, address }
    }

    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Its peak memory, which is bounded.
    fn within_bounds(&self) -> u64 {
        let peak = self.peak_kib();
        assert!(peak <= MOST_KIB, "{peak} kB");
        peak
    }
}

/// Peak memory of the server, whose other clients are served during the attack.
fn attacked(engine: &str, attack: Attack) -> u64 {
    let server = Server::start(engine);
    let address = server.address;
    serves_others(&|| attack(address), &|| answers(address));
    server.within_bounds()
}

/// Others are served during the attack and after it.
fn serves_others(attack: &(dyn Fn() + Sync), answers: &dyn Fn() -> bool) {
    std::thread::scope(|scope| {
        let attacker = scope.spawn(attack);
        let mut answered = 0;
        while !attacker.is_finished() {
            answered += u32::from(answers());
        }
        attacker.join().unwrap();
        assert!(answered > 20, "only {answered} others were served in {LASTS:?}");
    });
    assert!(answers(), "it serves nobody after the attack");
}

/// Whether a client that behaves gets its answer within 5 s.
fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) else {
        return false;
    };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut head = [0; 12];
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").is_ok()
        && stream.read_exact(&mut head).is_ok()
        && head == *b"HTTP/1.1 200"
}

/// Repeats until the attack is over; what fails belongs to it.
fn again(mut one: impl FnMut()) {
    let end = Instant::now() + LASTS;
    while Instant::now() < end {
        one();
    }
}

/// CONNECTIONS at once, each of which sends a byte of a head now and then.
fn slow(address: SocketAddr) {
    let most = goal("CONNECTIONS", 10_000) as usize;
    let mut open: Vec<TcpStream> = Vec::new();
    let mut at = 0;
    again(|| {
        if open.len() < most {
            open.extend(TcpStream::connect(address));
        }
        at = (at + 1) % open.len().max(1);
        if let Some(stream) = open.get_mut(at) {
            let _ = stream.write(b"G");
        }
    });
}

fn garbage(address: SocketAddr) {
    again(|| {
        let Ok(mut stream) = TcpStream::connect(address) else { return };
        let mut bytes = [0_u8; 4_096];
        rand::rng().fill(&mut bytes);
        let _ = stream.write_all(&bytes);
    });
}

fn oversized(address: SocketAddr) {
    again(|| {
        let Ok(mut stream) = TcpStream::connect(address) else { return };
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n");
        for _ in 0..64 {
            if stream.write_all(format!("X: {}\r\n", "y".repeat(16_000)).as_bytes()).is_err() {
                break;
            }
        }
    });
}

/// Asks, closes its sending side, and reads nothing.
fn half_closed(address: SocketAddr) {
    let mut open = std::collections::VecDeque::new();
    again(|| {
        let Ok(mut stream) = TcpStream::connect(address) else { return };
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        open.push_back(stream);
        if open.len() > 5_000 {
            open.pop_front();
        }
    });
}

fn resets(address: SocketAddr) {
    let reset = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    again(|| {
        let Ok(stream) = TcpStream::connect(address) else { return };
        let _ = setsockopt(&stream, Linger, &reset);
    });
}
