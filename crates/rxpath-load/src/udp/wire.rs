//! What datagrams take on an Ethernet.

use std::net::SocketAddr;

/// Preamble (8) and gap between frames (12), IEEE 802.3.
const LINE_EXTRA: u64 = 20;
/// Smallest frame with its checksum, IEEE 802.3.
const MIN_FRAME: u64 = 64;
/// Ethernet header and frame checksum.
const FRAME_EXTRA: u64 = 14 + 4;

/// Bytes of IP and UDP headers of a datagram to this address.
pub fn header_bytes(to: SocketAddr) -> u64 {
    if to.is_ipv4() { 20 + 8 } else { 40 + 8 }
}

/// Bytes of one datagram as an Ethernet frame: payload, UDP, IP and Ethernet header, frame checksum,
/// at least 64.
///
/// **Caveat** counted as one frame each, also where IP fragments it or a virtual link carries aggregates.
pub fn frame_bytes(payload: f64, to: SocketAddr) -> f64 {
    (payload + (header_bytes(to) + FRAME_EXTRA) as f64).max(MIN_FRAME as f64)
}

/// The same on the line: with preamble and gap.
pub fn line_bytes(payload: f64, to: SocketAddr) -> f64 {
    frame_bytes(payload, to) + LINE_EXTRA as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_two_bytes_of_payload() {
        let to = "10.0.0.1:1".parse().unwrap();
        assert!((frame_bytes(32.0, to) - 78.0).abs() < 1e-9);
        assert!((line_bytes(32.0, to) - 98.0).abs() < 1e-9);
        assert!((frame_bytes(1.0, to) - 64.0).abs() < 1e-9);
        assert!((line_bytes(1.0, to) - 84.0).abs() < 1e-9);
    }
}
