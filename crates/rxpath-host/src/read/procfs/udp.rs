//! `/proc/net/udp` and `/proc/net/udp6`: every UDP socket of the namespace with its queue and drops.
//!
//! **Source** net/ipv4/udp.c, `udp4_format_sock`; net/ipv6/udp.c, `udp6_seq_show`.
//! **Cost** the kernel walks the whole hash table; `sock_diag` is cheaper and has the buffer's size too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::parse::{ParseError, hex, number, shorten};

/// Path of the IPv4 file.
pub const UDP: &str = "/proc/net/udp";
/// Path of the IPv6 file.
pub const UDP6: &str = "/proc/net/udp6";

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcfsUdpSocket {
    /// Bound address.
    pub local: SocketAddr,
    /// Connected address; unspecified when not connected.
    pub remote: SocketAddr,
    /// Bytes in the send queue (`sk_wmem_alloc`).
    pub tx_queue_bytes: u32,
    /// Bytes in the receive queue (`udp_rqueue_get`): truesize, less what the reader has not released.
    pub rx_queue_bytes: u32,
    /// Owner.
    pub uid: u32,
    /// Inode of the socket, as in `/proc/PID/fd`.
    pub inode: u64,
    /// Datagrams dropped at this socket (`sk_drops`); absent on kernels before 2.6.27.
    pub drops: Option<u64>,
}

/// Reads the text of either file.
///
/// **Errors** a row with a field missing or malformed. **Caveat** addresses are printed in the byte order
/// of the machine; a capture of a big-endian host is misread on a little-endian one.
pub fn parse(text: &str) -> Result<Vec<ProcfsUdpSocket>, ParseError> {
    let mut sockets = Vec::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)).skip(1) {
        let mut words = line.split_ascii_whitespace();
        let Some(_slot) = words.next() else { continue };
        let local = address(at, words.next())?;
        let remote = address(at, words.next())?;
        let _state = hex(at, "st", words.next())?;
        let (tx, rx) = words
            .next()
            .and_then(|queues| queues.split_once(':'))
            .ok_or_else(|| ParseError::new(at, "expected tx_queue:rx_queue"))?;
        let tx_queue_bytes = hex(at, "tx_queue", Some(tx))?;
        let rx_queue_bytes = hex(at, "rx_queue", Some(rx))?;
        // tr:tm->when and retrnsmt stand between.
        let uid = number(at, "uid", words.nth(2))?;
        let inode = number(at, "inode", words.nth(1))?;
        // ref and pointer stand between.
        let drops = words.nth(2).map(|word| number(at, "drops", Some(word))).transpose()?;
        sockets.push(ProcfsUdpSocket {
            local,
            remote,
            tx_queue_bytes,
            rx_queue_bytes,
            uid,
            inode,
            drops,
        });
    }
    Ok(sockets)
}

fn address(line: usize, word: Option<&str>) -> Result<SocketAddr, ParseError> {
    let bad = || {
        let shown = word.map_or_else(|| "nothing".to_owned(), shorten);
        ParseError::new(line, format!("`{shown}` is not HEXADDRESS:PORT"))
    };
    let (address, port) = word.and_then(|w| w.split_once(':')).ok_or_else(bad)?;
    let port = u16::from_str_radix(port, 16).map_err(|_| bad())?;
    let word_at = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word_at(0).ok_or_else(bad)?)),
        32 => {
            let mut bytes = [0u8; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word_at(at).ok_or_else(bad)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return Err(bad()),
    };
    Ok(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn a_row_is_read() {
        let text = format!(
            "{HEAD}  346: 0100007F:1F90 00000000:0000 07 00000000:00000300 00:00000000 00000000  1000        0 28471 2 00000000a1b2 5\n"
        );
        let socket = &parse(&text).unwrap()[0];
        assert_eq!(socket.local, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(
            (socket.rx_queue_bytes, socket.uid, socket.inode, socket.drops),
            (0x300, 1000, 28471, Some(5))
        );
        let v6 = format!(
            "{HEAD}  1: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 7 2 0 0\n"
        );
        assert_eq!(parse(&v6).unwrap()[0].local, "[::1]:53".parse().unwrap());
    }

    #[test]
    fn broken_rows_are_refused() {
        for row in ["1: 0100007F", "1: 0100007F:1 éé00007F:1 07 0:0", "1: 0:0 0:0 7 1"] {
            assert_eq!(parse(&format!("{HEAD}{row}\n")).unwrap_err().line, 2, "{row}");
        }
    }

    proptest! {
        #[test]
        fn no_row_panics(row in "\\PC{0,120}") {
            let _ = parse(&format!("{HEAD}{row}\n"));
        }
    }
}
