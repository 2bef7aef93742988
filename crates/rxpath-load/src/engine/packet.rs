//! Whole IP packets with a UDP datagram, for senders that go around the kernel's UDP: raw sockets, AF_XDP, XDP programs.
//!
//! Nobody fills a checksum in for them, and the receiving kernel verifies what stands there (`udp4_csum_init`,
//! `udp_lib_checksum_complete`). A plain socket cannot send a wrong one: the kernel fills it in, or leaves it to a
//! device, and on virtual links nobody verifies it then.

use std::net::{IpAddr, SocketAddr};

use super::hops;

/// Hop limit of the packets, unless the experiment has one.
const TTL: u8 = 64;
const UDP_HEADER: usize = 8;

/// From where to where.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Source; of the same family.
    pub from: SocketAddr,
    /// Destination.
    pub to: SocketAddr,
}

impl Ends {
    /// Bytes before the payload.
    pub fn header_bytes(&self) -> usize {
        self.ip_bytes() + UDP_HEADER
    }

    /// Bytes of the IP header.
    pub(super) fn ip_bytes(&self) -> usize {
        if self.to.is_ipv4() { 20 } else { 40 }
    }

    /// Writes the headers in front of the payload that `packet` already holds, with the right checksum.
    pub fn write(&self, packet: &mut [u8]) {
        let right = self.write_without_checksum(packet);
        packet[self.ip_bytes()..][6..8].copy_from_slice(&right.to_be_bytes());
    }

    /// The same with a zero instead of the UDP checksum, which is returned.
    fn write_without_checksum(&self, packet: &mut [u8]) -> u16 {
        let udp_len = packet.len() - self.ip_bytes();
        let (ip, udp) = packet.split_at_mut(self.ip_bytes());
        self.write_ip(ip, udp_len);
        udp[..2].copy_from_slice(&self.from.port().to_be_bytes());
        udp[2..4].copy_from_slice(&self.to.port().to_be_bytes());
        udp[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
        udp[6..8].fill(0);
        self.checksum(udp)
    }

    /// Writes the headers with a checksum that is wrong.
    pub fn write_with_wrong_checksum(&self, packet: &mut [u8]) {
        let right = self.write_without_checksum(packet);
        let udp = &mut packet[self.ip_bytes()..];
        // Zero would mean "no checksum" (RFC 768).
        let wrong = if right == 0x5555 { 0x1234 } else { right ^ 0x5555 };
        udp[6..8].copy_from_slice(&wrong.to_be_bytes());
    }

    fn write_ip(&self, ip: &mut [u8], udp_len: usize) {
        ip.fill(0);
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                ip[0] = 0x45;
                ip[2..4].copy_from_slice(&((20 + udp_len) as u16).to_be_bytes());
                ip[8] = hops::limit().unwrap_or(TTL);
                ip[9] = libc::IPPROTO_UDP as u8;
                ip[12..16].copy_from_slice(&from.octets());
                ip[16..20].copy_from_slice(&to.octets());
                let sum = !fold(add_words(ip));
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                ip[0] = 0x60;
                ip[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
                ip[6] = libc::IPPROTO_UDP as u8;
                ip[7] = hops::limit().unwrap_or(TTL);
                ip[8..24].copy_from_slice(&from.octets());
                ip[24..40].copy_from_slice(&to.octets());
            }
            // Sockets have one family; mixed ends cannot be built by the opener.
            _ => {}
        }
    }

    /// The right checksum of a UDP datagram whose checksum field is zero (RFC 768, RFC 8200 section 8.1).
    fn checksum(&self, udp: &[u8]) -> u16 {
        let mut sum = udp.len() as u32 + libc::IPPROTO_UDP as u32;
        for addr in [self.from.ip(), self.to.ip()] {
            sum += match addr {
                IpAddr::V4(addr) => add_words(&addr.octets()),
                IpAddr::V6(addr) => add_words(&addr.octets()),
            };
        }
        sum += add_words(udp);
        match !fold(sum) {
            0 => 0xffff,
            sum => sum,
        }
    }
}

/// A sum of 16-bit words with its carries added in (RFC 1071).
pub(super) fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of 16-bit words in network order, padded by zero; at most 64 KiB, so that 32 bits hold it.
pub(super) fn add_words(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u32 = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    sum + rest.first().map_or(0, |last| u32::from(*last) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(v6: bool) -> Ends {
        let (from, to) = if v6 { ("[::1]:5", "[fe80::1]:6") } else { ("10.0.0.1:5", "10.0.0.2:6") };
        Ends { from: from.parse().unwrap(), to: to.parse().unwrap() }
    }

    /// The sum over the datagram with its checksum, as a receiver computes it: right when 0xffff.
    fn verify(ends: Ends, udp: &[u8]) -> bool {
        let mut zeroed = udp.to_vec();
        zeroed[6..8].fill(0);
        ends.checksum(&zeroed).to_be_bytes() == udp[6..8]
    }

    proptest! {
        #[test]
        fn the_checksum_is_never_right_and_never_absent(
            payload in proptest::collection::vec(any::<u8>(), 0..200), v6 in any::<bool>(),
        ) {
            let ends = ends(v6);
            let mut packet = vec![0; ends.header_bytes()];
            packet.extend(payload);
            ends.write_with_wrong_checksum(&mut packet);
            let udp = &packet[ends.ip_bytes()..];
            prop_assert!(!verify(ends, udp));
            prop_assert!(udp[6..8] != [0, 0]);
        }

        #[test]
        fn a_whole_packet_has_right_checksums(
            payload in proptest::collection::vec(any::<u8>(), 0..200), v6 in any::<bool>(),
        ) {
            let ends = ends(v6);
            let mut packet = vec![0; ends.header_bytes()];
            packet.extend(payload);
            ends.write(&mut packet);
            prop_assert!(verify(ends, &packet[ends.ip_bytes()..]));
            if !v6 {
                prop_assert_eq!(fold(add_words(&packet[..20])), 0xffff);
                prop_assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
            }
        }
    }

    #[test]
    fn the_right_checksum_is_that_of_the_rfc() {
        // 10.0.0.1:5 -> 10.0.0.2:6, payload "ab", summed by hand.
        let udp = [0, 5, 0, 6, 0, 10, 0, 0, b'a', b'b'];
        let sum: u32 = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 10 + 5 + 6 + 10 + 0x6162;
        assert_eq!(ends(false).checksum(&udp), !(sum as u16));
    }
}
