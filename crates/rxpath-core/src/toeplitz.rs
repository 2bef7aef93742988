//! The hash by which a NIC chooses the queue of a packet, and the scaling by which the kernel chooses among CPUs and sockets.
//!
//! **Source** Microsoft, "Verifying the RSS Hash Calculation" (its vectors are the tests below); Linux
//! `reciprocal_scale` (include/linux/math.h).

/// Toeplitz hash of `data`: for each bit that is set, the 32 bits of the key that begin at that bit, xored.
///
/// `None` when the key is shorter than `data` and 4 bytes more.
pub fn hash(key: &[u8], data: &[u8]) -> Option<u32> {
    if key.len() < data.len() + 4 {
        return None;
    }
    let mut window = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
    let mut result = 0;
    for (byte, next) in data.iter().zip(&key[4..]) {
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                result ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    Some(result)
}

/// `(hash * n) >> 32`: a number below `n`.
pub fn reciprocal_scale(hash: u32, n: u64) -> u64 {
    (u64::from(hash) * n) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    /// Source, destination, hash of the addresses, hash of addresses and ports: all eight published vectors.
    const VECTORS: [(&str, &str, u32, u32); 8] = [
        ("66.9.149.187:2794", "161.142.100.80:1766", 0x323e_8fc2, 0x51cc_c178),
        ("199.92.111.2:14230", "65.69.140.83:4739", 0xd718_262a, 0xc626_b0ea),
        ("24.19.198.95:12898", "12.22.207.184:38024", 0xd2d0_a5de, 0x5c2b_394a),
        ("38.27.205.30:48228", "209.142.163.6:2217", 0x8298_9176, 0xafc7_327f),
        ("153.39.163.191:44251", "202.188.127.2:1303", 0x5d18_09c5, 0x10e8_28a2),
        ("[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x2cc1_8cd5, 0x4020_7d3d),
        ("[3ffe:501:8::260:97ff:fe40:efab]:14230", "[ff02::1]:4739", 0x0f0c_461c, 0xdde5_1bbf),
        (
            "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
            "[fe80::200:f8ff:fe21:67cf]:38024",
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    fn octets(address: SocketAddr) -> Vec<u8> {
        match address {
            SocketAddr::V4(v4) => v4.ip().octets().to_vec(),
            SocketAddr::V6(v6) => v6.ip().octets().to_vec(),
        }
    }

    #[test]
    fn the_published_vectors_hold() {
        for (from, to, addresses, ports) in VECTORS {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let mut data = [octets(from), octets(to)].concat();
            assert_eq!(hash(&KEY, &data), Some(addresses), "{from} {to}");
            data.extend(from.port().to_be_bytes());
            data.extend(to.port().to_be_bytes());
            assert_eq!(hash(&KEY, &data), Some(ports), "{from} {to} with ports");
        }
    }

    #[test]
    fn a_short_key_gives_no_hash() {
        assert_eq!(hash(&KEY[..4], &[1]), None);
        assert_eq!(hash(&[], &[]), None);
        assert_eq!(hash(&KEY[..4], &[]), Some(0));
    }

    #[test]
    fn scaling_stays_below_and_keeps_order() {
        assert_eq!(reciprocal_scale(u32::MAX, 3), 2);
        assert_eq!(reciprocal_scale(0, 3), 0);
        assert_eq!(reciprocal_scale(1 << 31, 2), 1);
    }
}
