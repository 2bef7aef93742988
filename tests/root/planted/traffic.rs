//! What the sender sends, well or badly, until it is stopped.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::libc;
use nix::net::if_::if_nametoindex;

use super::frames::{ACK, Packet, SYN, ethernet, segment, udp};

/// Set when the traffic should end.
pub type Stop = AtomicBool;

const TX: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const RX: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Ten times a millisecond or less often: thousands a second, and time for others.
fn again(stop: &Stop, mut job: impl FnMut()) {
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..10 {
            job();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A socket that sends whole frames by the device `veth`.
struct Raw(OwnedFd, libc::sockaddr_ll);

impl Raw {
    fn new() -> Self {
        // SAFETY: no pointer is handed over.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the structure is plain numbers, for which zeros are values.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = if_nametoindex("veth").unwrap() as i32;
        // SAFETY: the kernel just made this descriptor for us.
        Self(unsafe { OwnedFd::from_raw_fd(fd) }, to)
    }

    fn send(&self, frame: &[u8]) {
        let to = std::ptr::from_ref(&self.1).cast();
        let length = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: frame and address outlive the call and have the lengths that are told.
        unsafe {
            libc::sendto(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, to, length)
        };
    }
}

fn frames(stop: &Stop, mut next: impl FnMut(u16) -> Vec<u8>) {
    let raw = Raw::new();
    let mut number = 0_u16;
    again(stop, || {
        number = number.wrapping_add(1);
        raw.send(&next(number));
    });
}

fn packet() -> Packet {
    Packet::new(TX, RX)
}

/// Datagrams to a port, from a socket as programs have it.
fn datagrams(stop: &Stop, from: Ipv4Addr, to: (Ipv4Addr, u16), bytes: usize) {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    let text = vec![7; bytes];
    // An ICMP answer to one datagram is the error of the next.
    again(stop, || drop(socket.send_to(&text, to)));
}

pub fn to_port_9999(stop: &Stop) {
    datagrams(stop, TX, (RX, 9999), 64);
}

/// From the receiver to the sender, larger than an Ethernet frame.
pub fn large_replies(stop: &Stop) {
    datagrams(stop, RX, (TX, 9999), 4000);
}

/// From the receiver to the sender.
pub fn replies(stop: &Stop) {
    datagrams(stop, RX, (TX, 9999), 600);
}

/// From the receiver into its tun device, which nobody reads.
pub fn into_tun(stop: &Stop) {
    datagrams(stop, Ipv4Addr::new(10, 78, 0, 1), (Ipv4Addr::new(10, 78, 0, 2), 9), 64);
}

/// Well-formed, to a port that may be closed.
pub fn plain_frames(stop: &Stop) {
    frames(stop, |n| ethernet(0x0800, &packet().id(n).with(17, &udp(9999, true))));
}

pub fn wrong_udp_checksums(stop: &Stop) {
    frames(stop, |n| ethernet(0x0800, &packet().id(n).with(17, &udp(9999, false))));
}

pub fn wrong_tcp_checksums(stop: &Stop) {
    frames(stop, |n| {
        let mut wrong = segment((TX, RX), 5000, [1, 1], ACK, &[]);
        wrong[16] ^= 0xff;
        ethernet(0x0800, &packet().id(n).with(6, &wrong))
    });
}

pub fn wrong_header_checksums(stop: &Stop) {
    frames(stop, |n| {
        let mut whole = packet().id(n).with(17, &udp(9999, true));
        whole[10] ^= 0xff;
        ethernet(0x0800, &whole)
    });
}

pub fn cut_packets(stop: &Stop) {
    frames(stop, |n| {
        let whole = packet().id(n).with(17, &[7; 200]);
        ethernet(0x0800, &whole[..120])
    });
}

pub fn unknown_protocol(stop: &Stop) {
    frames(stop, |n| ethernet(0x0800, &packet().id(n).with(253, &[7; 40])));
}

/// 10.99.0.1 is behind the receiver, if it forwards.
const BEHIND: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

pub fn for_others(stop: &Stop) {
    frames(stop, |n| ethernet(0x0800, &packet().to(BEHIND).id(n).with(17, &udp(9, true))));
}

pub fn last_hop(stop: &Stop) {
    frames(stop, |n| ethernet(0x0800, &packet().to(BEHIND).ttl(1).id(n).with(17, &udp(9, true))));
}

const DONT_FRAGMENT: u16 = 0x4000;

pub fn not_to_be_fragmented(stop: &Stop) {
    frames(stop, |n| {
        let whole = packet().to(BEHIND).fragment(DONT_FRAGMENT).id(n).with(17, &[7; 1000]);
        ethernet(0x0800, &whole)
    });
}

pub fn from_elsewhere(stop: &Stop) {
    let strange = Ipv4Addr::new(203, 0, 113, 5);
    frames(stop, |n| ethernet(0x0800, &Packet::new(strange, RX).id(n).with(17, &udp(9999, true))));
}

const MORE_FRAGMENTS: u16 = 0x2000;

/// First fragments, of which the rest never comes.
pub fn lone_fragments(stop: &Stop) {
    frames(stop, |n| {
        let whole = packet().fragment(MORE_FRAGMENTS).id(n).with(17, &[7; 64]);
        ethernet(0x0800, &whole)
    });
}

/// Pairs of fragments that overlap.
pub fn overlapping_fragments(stop: &Stop) {
    frames(stop, |n| {
        let part = packet().id(n / 2);
        let part = if n % 2 == 0 { part.fragment(MORE_FRAGMENTS) } else { part.fragment(2) };
        ethernet(0x0800, &part.with(17, &[7; 64]))
    });
}

/// Frames of a protocol for experiments, which no kernel takes.
pub fn unknown_frames(stop: &Stop) {
    frames(stop, |_| ethernet(0x88b5, &[7; 60]));
}

/// Connections that are opened and kept.
pub fn connections(stop: &Stop) {
    let mut kept = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let to = (RX, 7000).into();
        kept.extend(TcpStream::connect_timeout(&to, Duration::from_millis(20)));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connections that are asked for and never finished.
pub fn half_connections(stop: &Stop) {
    frames(stop, |n| {
        let from = Ipv4Addr::new(10, 77, 0, 3 + (n % 200) as u8);
        let ask = segment((from, RX), 1024 + n % 60_000, [u32::from(n), 0], SYN, &[]);
        ethernet(0x0800, &Packet::new(from, RX).id(n).with(6, &ask))
    });
}

/// `TCP_RECV_QUEUE` and `TCP_SEND_QUEUE`, linux/tcp.h.
const RECEIVE: i32 = 1;
const SEND: i32 = 2;

/// The numbers that a connection sends and expects next, which the kernel tells in repair mode (tcp(7)).
fn next_numbers(stream: &TcpStream) -> [u32; 2] {
    let set = |option: i32, value: i32| {
        let (value, length) = (std::ptr::from_ref(&value).cast(), size_of::<i32>() as u32);
        // SAFETY: the value outlives the call and has the length that is told.
        let done = unsafe {
            libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, option, value, length)
        };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    };
    let next = |queue: i32| {
        set(libc::TCP_REPAIR_QUEUE, queue);
        let (mut number, mut length) = (0_u32, size_of::<u32>() as u32);
        let place = std::ptr::from_mut(&mut number).cast();
        // SAFETY: the kernel writes a number of the length that is told, into one that outlives the call.
        let done = unsafe {
            let fd = stream.as_raw_fd();
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, place, &raw mut length)
        };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        number
    };
    set(libc::TCP_REPAIR, 1);
    let numbers = [next(SEND), next(RECEIVE)];
    set(libc::TCP_REPAIR, 0);
    numbers
}

/// Single bytes of a connection, of which each second one is missing: none can be read, and each takes a packet's memory.
pub fn gaps(stop: &Stop) {
    let stream = TcpStream::connect((RX, 7000)).unwrap();
    let [first, expected] = next_numbers(&stream);
    let port = stream.local_addr().unwrap().port();
    frames(stop, |n| {
        let number = first.wrapping_add(1 + 2 * u32::from(n % 8000));
        let single = segment((TX, RX), port, [number, expected], ACK, &[7]);
        ethernet(0x0800, &packet().id(n).with(6, &single))
    });
}

/// Bulk from the receiver to the sender, over some connections.
pub fn bulk_to_sender(stop: &Stop) {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let Ok(mut stream) = TcpStream::connect((TX, 7001)) else { return };
                stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
                let text = [7; 1400];
                while !stop.load(Ordering::Relaxed) {
                    let _ = stream.write(&text);
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
        }
    });
}

/// A listener that reads and throws away what comes over each connection, in the background.
pub fn reader(port: u16) -> TcpListener {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
    let own = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = own.accept() {
            std::thread::spawn(move || {
                let mut text = [0; 16_384];
                while stream.read(&mut text).is_ok_and(|count| count > 0) {}
            });
        }
    });
    listener
}

/// Ends the thread of [`reader`], which waits in accept.
pub fn end(listener: &TcpListener) {
    // SAFETY: shutdown takes a descriptor that is open, and a number.
    unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
}
