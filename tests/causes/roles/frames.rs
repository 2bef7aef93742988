//! Frames as they stand, good or damaged, by a packet socket: one rate, one kind.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

use nix::libc;
use nix::net::if_::if_nametoindex;

use super::counts::Counts;
use super::words::Words;

/// The Internet checksum of bytes, on top of a sum.
fn checksum(bytes: &[u8], begin: u32) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum = bytes.chunks(2).map(word).fold(begin, |sum, word| sum + word);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn mac(text: &str) -> Vec<u8> {
    text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// What every frame of a kind has in common, and what counts up in it.
struct Kind<'a>(&'a Words);

impl Kind<'_> {
    /// UDP's header and payload; `csum=bad|none|good`, `udplen=N` (what the header claims).
    fn udp(&self, pseudo: u32) -> Vec<u8> {
        let words = self.0;
        let size: usize = words.get("size", 100);
        let length = (8 + size) as u16;
        let claimed: u16 = words.get("udplen", length);
        let mut udp = Vec::with_capacity(8 + size);
        udp.extend(words.get("sport", 5_000u16).to_be_bytes());
        udp.extend(words.get("dport", 9_700u16).to_be_bytes());
        udp.extend(claimed.to_be_bytes());
        udp.extend([0, 0]);
        udp.resize(8 + size, 7);
        let good = checksum(&udp, pseudo + u32::from(length) + 17);
        let sum = match words.text("csum") {
            Some("bad") => good ^ 0x0101,
            Some("none") => 0,
            _ => good,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        udp
    }

    /// IPv4's header: `ipcsum=bad`, `ttl`, `proto`, `frag` (the field as it stands), `iplen`, `version`, `ihl`.
    fn v4(&self, id: u16) -> Vec<u8> {
        let words = self.0;
        let (from, to) = self.addresses();
        let of = |address: Ipv4Addr| {
            address
                .octets()
                .chunks(2)
                .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]))
                .sum::<u32>()
        };
        let payload = match words.text("udp") {
            Some("no") => vec![7; words.get("size", 100)],
            _ => self.udp(of(from) + of(to)),
        };
        let length = (20 + payload.len()) as u16;
        let mut ip = vec![words.get("version", 0x45), 0];
        ip.extend(words.get("iplen", length).to_be_bytes());
        ip.extend(id.to_be_bytes());
        ip.extend(words.get("frag", 0u16).to_be_bytes());
        ip.extend([words.get("ttl", 64), words.get("proto", 17), 0, 0]);
        ip.extend(from.octets());
        ip.extend(to.octets());
        let sum = checksum(&ip, 0) ^ if words.text("ipcsum") == Some("bad") { 0x0101 } else { 0 };
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend(payload);
        ip
    }

    fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        let words = self.0;
        (
            words.get("src", Ipv4Addr::new(10, 88, 0, 1)),
            words.get("dst", Ipv4Addr::new(10, 88, 0, 2)),
        )
    }

    /// IPv6's header, between the addresses of the wire.
    fn v6(&self) -> Vec<u8> {
        let words = self.0;
        let address = |last: u8| {
            let mut address = [0; 16];
            address[..4].copy_from_slice(&[0xfd, 0, 0, 0x88]);
            address[15] = last;
            address
        };
        let (from, to) = (address(1), address(2));
        let sum = |of: &[u8]| {
            of.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum::<u32>()
        };
        let udp = self.udp(sum(&from) + sum(&to));
        let mut ip = vec![0x60, 0, 0, 0];
        ip.extend((udp.len() as u16).to_be_bytes());
        ip.extend([17, words.get("ttl", 64)]);
        ip.extend(from);
        ip.extend(to);
        ip.extend(udp);
        ip
    }

    fn frame(&self, id: u16) -> Vec<u8> {
        let words = self.0;
        let mut frame = mac(words.text("mac").unwrap_or(crate::host::RX_MAC));
        frame.extend(mac(crate::host::TX_MAC));
        let v6 = words.has("v6");
        let ethertype = words.get("ethertype", if v6 { 0x86ddu16 } else { 0x0800 });
        frame.extend(ethertype.to_be_bytes());
        frame.extend(if v6 { self.v6() } else { self.v4(id) });
        let cut: usize = words.get("cut", 0);
        frame.truncate(frame.len() - cut);
        frame
    }
}

/// A packet socket on a device, as a file.
fn wire(device: &str) -> std::fs::File {
    // SAFETY: a new descriptor or an error.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(fd >= 0, "a packet socket: {}", std::io::Error::last_os_error());
    // SAFETY: nobody else has it.
    let file = unsafe { std::fs::File::from_raw_fd(fd) };
    // SAFETY: all zeros is an address without anything in it.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = if_nametoindex(device).unwrap() as i32;
    let length = size_of_val(&address) as u32;
    // SAFETY: the address and its length belong together.
    let bound =
        unsafe { libc::bind(file.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
    assert_eq!(bound, 0, "bind to {device}");
    file
}

/// `dev=IF`, `rate=N`, and what [`Kind`] takes. The identification counts up.
pub fn play(words: &Words) {
    words.pin(0);
    let counts = Counts::open();
    let mut wire = wire(words.text("dev").unwrap_or("w1"));
    let rate: f64 = words.get("rate", 10_000.0);
    let burst = ((rate / 2_000.0) as u64).max(1);
    let pause = Duration::from_secs_f64(burst as f64 / rate);
    let (mut next, mut id) = (Instant::now(), 0u16);
    counts.ready();
    loop {
        for _ in 0..burst {
            id = id.wrapping_add(1);
            if wire.write_all(&Kind(words).frame(id)).is_ok() {
                counts.add(0, 1);
            }
        }
        next += pause;
        let now = Instant::now();
        if now > next + Duration::from_millis(250) {
            next = now;
        }
        std::thread::sleep(next.saturating_duration_since(now));
    }
}
