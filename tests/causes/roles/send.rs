//! A sender of UDP at a steady rate, or in bursts.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use super::counts::Counts;
use super::words::Words;

/// One socket for each flow.
fn flows(words: &Words, to: SocketAddr) -> Vec<UdpSocket> {
    let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let from = words.get("from", any.parse::<SocketAddr>().unwrap());
    let flow = |_| {
        let socket = UdpSocket::bind(from).unwrap();
        // What is sent is counted, so the sender's own buffer must not lose it unseen.
        setsockopt(&socket, sockopt::SndBufForce, &words.get("sndbuf", 16 << 20)).unwrap();
        if words.has("ttl") {
            socket.set_ttl(words.get("ttl", 64)).unwrap();
            socket.set_multicast_ttl_v4(words.get("ttl", 1)).unwrap();
        }
        if words.has("broadcast") {
            socket.set_broadcast(true).unwrap();
        }
        if words.has("by") {
            multicast_by(&socket, words.get("by", std::net::Ipv4Addr::UNSPECIFIED));
        }
        if words.has("pmtu") {
            path_mtu(&socket, words.get("pmtu", 0));
        }
        if words.has("gso") {
            setsockopt(&socket, sockopt::UdpGsoSegment, &words.get("size", 100)).unwrap();
        }
        if words.has("nocheck") {
            option(&socket, [nix::libc::SOL_SOCKET, nix::libc::SO_NO_CHECK], 1);
        }
        socket
    };
    (0..words.get("flows", 1)).map(flow).collect()
}

fn option(socket: &impl AsFd, [level, name]: [i32; 2], value: u32) {
    use std::os::fd::AsRawFd;
    let at = std::ptr::from_ref(&value).cast();
    // SAFETY: four bytes, as these options take them.
    let set = unsafe { nix::libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, at, 4) };
    assert_eq!(set, 0, "setsockopt {level} {name}");
}

/// The interface that multicast leaves by.
fn multicast_by(socket: &UdpSocket, by: std::net::Ipv4Addr) {
    let address = u32::from_ne_bytes(by.octets());
    option(socket, [nix::libc::IPPROTO_IP, nix::libc::IP_MULTICAST_IF], address);
}

/// IP_PMTUDISC_*: 0 never sets DF, 3 sets it and does not look at the path's MTU.
fn path_mtu(socket: &UdpSocket, how: u32) {
    option(socket, [nix::libc::IPPROTO_IP, nix::libc::IP_MTU_DISCOVER], how);
}

/// `to=IP:PORT,...`, `rate=N` datagrams a second, `burst=N` of them at once, `size=BYTES`, `flows=N`, `gso=N` segments a call.
pub fn play(words: &Words) {
    words.pin(0);
    let counts = Counts::open();
    let to = words.text("to").unwrap_or("10.88.0.2:9700");
    let to: Vec<SocketAddr> = to.split(',').map(|one| one.parse().unwrap()).collect();
    let flows = flows(words, to[0]);
    let segments: u64 = words.get("gso", 1);
    let bytes = vec![7; words.get("size", 100usize) * segments as usize];
    let rate: f64 = words.get("rate", 10_000.0);
    // A timer wakes a few times a millisecond at most.
    let burst: u64 = words.get("burst", ((rate / 2_000.0) as u64).max(1)).max(segments);
    let pause = Duration::from_secs_f64(burst as f64 / rate);
    let (mut next, mut turn) = (Instant::now(), 0);
    counts.ready();
    loop {
        for _ in 0..burst / segments {
            let (flow, to) = (&flows[turn % flows.len()], to[turn % to.len()]);
            turn += 1;
            if flow.send_to(&bytes, to).is_ok() {
                counts.add(0, segments);
            } else {
                counts.add(1, segments);
            }
        }
        next += pause;
        let now = Instant::now();
        // Late by a quarter of a second: the schedule begins anew, without a flood.
        if now > next + Duration::from_millis(250) {
            next = now;
        }
        std::thread::sleep(next.saturating_duration_since(now));
    }
}
