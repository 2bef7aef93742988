//! Ethernet frames of one flow, for senders that hand them to a device: AF_XDP and XDP programs.
//!
//! All frames of a flow have the same headers and the same payload but for its first 16 bytes, so that the checksum of
//! the rest is summed once.

use rxpath_host::write::netlink::next_hop::NextHop;

use crate::engine::packet::{Ends, add_words, fold};
use crate::udp::header::{HEADER_BYTES, MAGIC};

/// The shortest frame without its checksum (IEEE 802.3); drivers need not pad what goes around the stack.
const SHORTEST: usize = 60;
const ETHERNET: usize = 14;
const VLAN_TAG: usize = 4;
/// The longest headers: Ethernet, VLAN, IPv6, UDP.
pub const LONGEST_HEAD: usize = ETHERNET + VLAN_TAG + 40 + 8;
/// From the checksum of UDP to the payload.
const CHECKSUM_TO_PAYLOAD: usize = 2;

/// What all frames of one flow have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTemplate {
    /// The whole frame, without a header in its payload; its checksum is zero.
    pub frame: Vec<u8>,
    /// Bytes in front of the payload.
    pub head_bytes: usize,
    /// Sum of the 16-bit words that the checksum covers, the first 16 bytes of the payload left out, in the byte order
    /// of this machine.
    pub sum: u32,
    has_header: bool,
}

impl FrameTemplate {
    /// Frames with payloads of `size` bytes.
    pub fn new(hop: &NextHop, ends: Ends, size: usize) -> Self {
        let mut frame = Vec::with_capacity(SHORTEST.max(LONGEST_HEAD + size));
        frame.extend(hop.mac);
        frame.extend(&hop.device.mac);
        if let Some(tag) = hop.vlan_id {
            frame.extend((libc::ETH_P_8021Q as u16).to_be_bytes());
            frame.extend(tag.to_be_bytes());
        }
        let ip = if ends.to.is_ipv4() { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
        frame.extend((ip as u16).to_be_bytes());
        let link_bytes = frame.len();
        let head_bytes = link_bytes + ends.header_bytes();
        frame.resize(head_bytes + size, 0);
        if size >= HEADER_BYTES + MAGIC.len() {
            frame[head_bytes + HEADER_BYTES..][..MAGIC.len()].copy_from_slice(&MAGIC);
        }
        ends.write(&mut frame[link_bytes..]);
        let field = head_bytes - CHECKSUM_TO_PAYLOAD;
        let checksum = u16::from_be_bytes([frame[field], frame[field + 1]]);
        let has_header = size >= HEADER_BYTES;
        if has_header {
            frame[field..head_bytes].fill(0);
        }
        frame.resize(frame.len().max(SHORTEST), 0);
        // What is summed here in network order is summed in this machine's order later: the sum of swapped words is
        // the swapped sum (RFC 1071, section 2).
        let sum = u32::from((!checksum).to_be());
        Self { frame, head_bytes, sum, has_header }
    }

    /// Writes the headers in front of a payload that begins with its header, and the checksum of both.
    ///
    /// The rest of the payload must be that of `frame`.
    #[inline]
    pub fn write_head(&self, frame: &mut [u8]) {
        let (head, payload) = frame.split_at_mut(self.head_bytes);
        head.copy_from_slice(&self.frame[..self.head_bytes]);
        if !self.has_header {
            return;
        }
        // A sum in network order is the swapped sum in this machine's order.
        let sum = fold(
            u32::from(self.sum as u16)
                + u32::from(fold(add_words(&payload[..HEADER_BYTES])).to_be()),
        );
        let checksum = if sum == u16::MAX { u16::MAX } else { !sum };
        head[self.head_bytes - CHECKSUM_TO_PAYLOAD..].copy_from_slice(&checksum.to_ne_bytes());
    }
}

/// The payload of a UDP datagram in an Ethernet frame, with or without a tag; nothing where it is something else.
#[inline]
pub fn payload(frame: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let (mut at, mut kind) = (ETHERNET, i32::from(word(ETHERNET - 2)?));
    if matches!(kind, libc::ETH_P_8021Q | libc::ETH_P_8021AD) {
        kind = i32::from(word(at + 2)?);
        at += VLAN_TAG;
    }
    at += match kind {
        libc::ETH_P_IP if *frame.get(at)? == 0x45 => 20,
        libc::ETH_P_IPV6 => 40,
        _ => return None,
    };
    // What is behind the datagram is padding.
    let udp_bytes = usize::from(word(at + 4)?);
    frame.get(at + 8..at + udp_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hop(vlan_id: Option<u16>) -> NextHop {
        let device = rxpath_host::read::netlink::NetworkLink {
            mac: vec![2, 0, 0, 0, 0, 1],
            ..Default::default()
        };
        NextHop { device, vlan_id, mtu: 1500, mac: [2, 0, 0, 0, 0, 2] }
    }

    fn ends(v6: bool) -> Ends {
        let (from, to) = if v6 { ("[::1]:5", "[fe80::1]:6") } else { ("10.0.0.1:5", "10.0.0.2:6") };
        Ends { from: from.parse().unwrap(), to: to.parse().unwrap() }
    }

    proptest! {
        #[test]
        fn every_frame_is_the_one_that_is_written_whole(
            header: [u8; 16], size in 0usize..200, v6: bool, tag in proptest::option::of(0u16..4095),
        ) {
            let (hop, ends) = (hop(tag), ends(v6));
            let flow = FrameTemplate::new(&hop, ends, size);
            let mut frame = flow.frame.clone();
            prop_assert!(frame.len() >= SHORTEST);
            if size >= HEADER_BYTES {
                frame[flow.head_bytes..][..HEADER_BYTES].copy_from_slice(&header);
            }
            flow.write_head(&mut frame);
            let mut whole = frame.clone();
            let packet = &mut whole[flow.head_bytes - ends.header_bytes()..flow.head_bytes + size];
            ends.write(packet);
            prop_assert_eq!(&frame, &whole);
            let sent = &frame[flow.head_bytes..flow.head_bytes + size];
            prop_assert_eq!(payload(&frame), Some(sent));
        }
    }

    proptest! {
        #[test]
        fn no_frame_panics(frame in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = payload(&frame);
        }
    }

    #[test]
    fn a_tag_stands_behind_the_addresses() {
        let flow = FrameTemplate::new(&hop(Some(0x123)), ends(false), 32);
        assert_eq!(flow.frame[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        assert_eq!(flow.frame[12..18], [0x81, 0, 1, 0x23, 8, 0]);
        assert_eq!(flow.head_bytes, 46);
        assert_eq!(FrameTemplate::new(&hop(None), ends(true), 32).head_bytes, 62);
    }
}
