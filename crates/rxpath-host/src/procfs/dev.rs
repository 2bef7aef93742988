//! `/proc/net/dev`: packets and errors of each device.
//!
//! **Source** net/core/net-procfs.c, `dev_seq_printf_stats`, from `dev_get_stats` (`rtnl_link_stats64`).
//! **Caveat** some columns are sums: `rx errs` is `rx_errors`, `rx drop` is `rx_dropped + rx_missed_errors`,
//! `frame` adds length, over, CRC and frame errors. Netlink has each of them apart: prefer it.

use crate::parse::{ParseError, number};

/// Path of the file.
pub const PATH: &str = "/proc/net/dev";

/// One device's line. **Unit** packets, except for `*_bytes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the columns' own names
pub struct Device {
    pub name: String,
    pub rx_bytes: u64,
    pub rx_packets: u64,
    pub rx_errors: u64,
    pub rx_dropped: u64,
    pub rx_fifo: u64,
    pub rx_frame: u64,
    pub rx_compressed: u64,
    pub rx_multicast: u64,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    pub tx_dropped: u64,
    pub tx_fifo: u64,
    pub tx_collisions: u64,
    pub tx_carrier: u64,
    pub tx_compressed: u64,
}

/// Reads the file's text.
///
/// **Errors** a line without a name or with other than 16 numbers.
pub fn parse(text: &str) -> Result<Vec<Device>, ParseError> {
    let mut devices = Vec::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if at <= 2 || line.trim().is_empty() {
            // Two lines of heads, with `|` in them.
            if at <= 2 && !line.contains('|') {
                return Err(ParseError::new(at, "expected the table's head"));
            }
            continue;
        }
        // Old kernels write `eth0:123` without a space; a name itself may hold a colon (aliases).
        let (name, numbers) = line
            .rsplit_once(':')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or_else(|| ParseError::new(at, "expected `name: numbers`"))?;
        let mut n = [0u64; 16];
        let mut words = numbers.split_ascii_whitespace();
        for (column, slot) in n.iter_mut().enumerate() {
            *slot = number(at, &format!("column {}", column + 1), words.next())?;
        }
        if words.next().is_some() {
            return Err(ParseError::new(at, "more than 16 columns"));
        }
        devices.push(device(name.trim(), &n));
    }
    Ok(devices)
}

fn device(name: &str, n: &[u64; 16]) -> Device {
    Device {
        name: name.to_owned(),
        rx_bytes: n[0],
        rx_packets: n[1],
        rx_errors: n[2],
        rx_dropped: n[3],
        rx_fifo: n[4],
        rx_frame: n[5],
        rx_compressed: n[6],
        rx_multicast: n[7],
        tx_bytes: n[8],
        tx_packets: n[9],
        tx_errors: n[10],
        tx_dropped: n[11],
        tx_fifo: n[12],
        tx_collisions: n[13],
        tx_carrier: n[14],
        tx_compressed: n[15],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes\n";

    #[test]
    fn both_spellings_of_a_line_are_read() {
        let text = format!(
            "{HEAD}  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n lo:  1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        let devices = parse(&text).unwrap();
        assert_eq!(
            (devices[0].name.as_str(), devices[0].rx_dropped, devices[0].tx_compressed),
            ("eth0", 4, 16)
        );
        assert_eq!(devices[1].name, "lo");
    }

    #[test]
    fn other_tables_are_refused() {
        assert_eq!(parse("a\nb\n").unwrap_err().line, 1);
        assert_eq!(parse(&format!("{HEAD}eth0: 1 2 3\n")).unwrap_err().why, "column 4 is missing");
        assert!(parse(&format!("{HEAD}no colon\n")).is_err());
    }
}
