//! `/proc/net/udp` and `/proc/net/udp6`: every UDP socket of the namespace with its port and drops.
//!
//! **Source** net/ipv4/udp.c, `udp4_format_sock`; net/ipv6/udp.c, `udp6_seq_show`.
//! **Cost** the kernel walks the whole hash table; `sock_diag` is cheaper and has the buffer's size too.

use crate::parse::{ParseError, number, shorten};

/// Path of the IPv4 file.
pub const UDP: &str = "/proc/net/udp";
/// Path of the IPv6 file.
pub const UDP6: &str = "/proc/net/udp6";

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcfsUdpSocket {
    /// Bound port.
    pub port: u16,
    /// Inode of the socket, as in `/proc/PID/fd`.
    pub inode: u32,
    /// Datagrams dropped at this socket (`sk_drops`); absent on kernels before 2.6.27.
    pub drops: Option<u64>,
}

/// Reads the text of either file.
///
/// **Errors** a row with one of these fields missing or malformed.
pub fn parse(text: &str) -> Result<Vec<ProcfsUdpSocket>, ParseError> {
    let mut sockets = Vec::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)).skip(1) {
        let mut words = line.split_ascii_whitespace();
        let Some(_slot) = words.next() else { continue };
        let port = port(at, words.next())?;
        // rem_address, st, tx_queue:rx_queue, tr:tm->when, retrnsmt, uid and timeout stand between.
        let inode = number(at, "inode", words.nth(7))?;
        // ref and pointer stand between.
        let drops = words.nth(2).map(|word| number(at, "drops", Some(word))).transpose()?;
        sockets.push(ProcfsUdpSocket { port, inode, drops });
    }
    Ok(sockets)
}

fn port(line: usize, word: Option<&str>) -> Result<u16, ParseError> {
    let port = word.and_then(|word| word.split_once(':'));
    port.and_then(|(_, port)| u16::from_str_radix(port, 16).ok()).ok_or_else(|| {
        let shown = word.map_or_else(|| "nothing".to_owned(), shorten);
        ParseError::new(line, format!("`{shown}` is not HEXADDRESS:PORT"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";

    #[test]
    fn a_row_is_read() {
        let text = format!(
            "{HEAD}  346: 0100007F:1F90 00000000:0000 07 00000000:00000300 00:00000000 00000000  1000        0 28471 2 00000000a1b2 5\n"
        );
        let socket = &parse(&text).unwrap()[0];
        assert_eq!((socket.port, socket.inode, socket.drops), (8080, 28471, Some(5)));
        let v6 = format!(
            "{HEAD}  1: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 7 2 0 0\n"
        );
        assert_eq!(parse(&v6).unwrap()[0].port, 53);
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
