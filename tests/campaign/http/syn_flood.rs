//! A flood of SYN from addresses that never answer: the listener's queue of open handshakes is full all the time.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use rand::RngExt;
use rxpath_host::Root;
use rxpath_host::read::snapshot;

use super::{Server, again, answers, serves_others};
use crate::bed::{Bed, RX_IP, until};
use crate::wire::frames::{Packet, SYN, segment};

/// The port to which segments made by hand go.
const PORT: u16 = 7000;
/// The protocol number of TCP.
const TCP: u8 = 6;
/// Sources: a network for benchmarks (RFC 2544), which the receiver reaches through the sender and nobody has.
const SOURCES: &str = "198.18.0.0/15";
/// Segments between two looks at the clock.
const BURST: usize = 64;

/// Peak memory of a server in a namespace whose sender floods it.
pub fn flooded(engine: &str) -> u64 {
    let bed = Bed::new().expect("root");
    let (tx, rx) = bed.pair(1);
    let route = ["-n", rx.name(), "route", "add", SOURCES, "via", "10.77.0.1"];
    assert!(Command::new("ip").args(route).status().unwrap().success());
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", rx.name(), env!("CARGO_BIN_EXE_rxpath")]);
    let address = SocketAddr::from((RX_IP, PORT));
    let server = Server::of(inside, engine, address);
    let others = || tx.run(move |_| answers(address)).unwrap();
    until("the server answers", others);
    // A thread of the namespace: its own one serves the others.
    let flooded = || tx.run(|_| std::thread::spawn(flood)).unwrap().join().unwrap();
    serves_others(&flooded, &others);
    let counters = rx.run(|_| snapshot::read(&Root::thread_netns("/sys"))).unwrap();
    let cookies = counters.values.get("TcpExt.SyncookiesSent").copied().unwrap_or(0);
    assert!(cookies > 1_000, "the queue of open handshakes was hardly full: {cookies} cookies");
    server.within_bounds()
}

fn flood() {
    let raw = SockProtocol::Raw;
    let socket = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), raw).unwrap();
    let to = SockaddrIn::from(std::net::SocketAddrV4::new(RX_IP, 0));
    again(|| {
        let mut dice = rand::rng();
        for _ in 0..BURST {
            let host: u32 = dice.random_range(1..1 << 17);
            let from = Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + host);
            let [port, number] = [dice.random_range(1024..u16::MAX).into(), dice.random::<u32>()];
            let segment = segment((from, RX_IP), port as u16, [number, 0], SYN, &[]);
            let packet = Packet::new(from, RX_IP).with(TCP, &segment);
            let _ = sendto(socket.as_raw_fd(), &packet, &to, MsgFlags::empty());
        }
    });
}
