//! Frames made by hand: a sender that keeps to no rule.

use std::net::Ipv4Addr;

use super::place::{RX_MAC, TX_MAC};

/// An Ethernet frame from the sender to the receiver.
pub fn ethernet(protocol: u16, payload: &[u8]) -> Vec<u8> {
    [&RX_MAC[..], &TX_MAC, &protocol.to_be_bytes(), payload].concat()
}

/// The header of an IPv4 packet.
#[derive(Clone, Copy)]
pub struct Packet {
    from: Ipv4Addr,
    to: Ipv4Addr,
    ttl: u8,
    id: u16,
    fragment: u16,
}

impl Packet {
    pub fn new(from: Ipv4Addr, to: Ipv4Addr) -> Self {
        Self { from, to, ttl: 64, id: 1, fragment: 0 }
    }

    pub fn to(self, to: Ipv4Addr) -> Self {
        Self { to, ..self }
    }

    pub fn ttl(self, ttl: u8) -> Self {
        Self { ttl, ..self }
    }

    pub fn id(self, id: u16) -> Self {
        Self { id, ..self }
    }

    /// Flags, and the place of this part in units of 8 bytes.
    pub fn fragment(self, fragment: u16) -> Self {
        Self { fragment, ..self }
    }

    /// The whole packet, with its header's checksum.
    pub fn with(self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut whole = vec![0x45, 0];
        whole.extend((20 + payload.len() as u16).to_be_bytes());
        whole.extend(self.id.to_be_bytes());
        whole.extend(self.fragment.to_be_bytes());
        whole.extend([self.ttl, protocol, 0, 0]);
        whole.extend(self.from.octets());
        whole.extend(self.to.octets());
        let sum = checksum(&whole);
        whole[10..12].copy_from_slice(&sum.to_be_bytes());
        whole.extend(payload);
        whole
    }
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A datagram of 40 bytes, without a checksum or with a wrong one.
pub fn udp(port: u16, is_right: bool) -> Vec<u8> {
    let sum = if is_right { [0, 0] } else { [0x12, 0x34] };
    [&5000_u16.to_be_bytes()[..], &port.to_be_bytes(), &48_u16.to_be_bytes(), &sum, &[7; 40]]
        .concat()
}

/// A segment to port 7000, from a port and with numbers of its own and of what it acknowledges.
pub fn segment(
    (from, to): (Ipv4Addr, Ipv4Addr),
    port: u16,
    numbers: [u32; 2],
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut whole = [port.to_be_bytes(), 7000_u16.to_be_bytes()].concat();
    whole.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    whole.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    whole.extend(payload);
    let length = (whole.len() as u16).to_be_bytes();
    let pseudo = [&from.octets()[..], &to.octets(), &[0, 6], &length, &whole].concat();
    let sum = checksum(&pseudo);
    whole[16..18].copy_from_slice(&sum.to_be_bytes());
    whole
}

pub const SYN: u8 = 2;
pub const ACK: u8 = 0x10;
