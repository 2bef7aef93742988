//! `/proc/net/snmp` and `/proc/net/netstat`: pairs of lines, names above values.
//!
//! **Source** net/ipv4/proc.c, `snmp_seq_show` and `netstat_seq_show`; groups `Ip`, `Icmp`, `IcmpMsg`, `Tcp`,
//! `Udp`, `UdpLite` (until 6.19), and `TcpExt`, `IpExt`, `MPTcpExt` (net/mptcp/mib.c).

use crate::parse::{ParseError, number, shorten};
use crate::{HostError, Root};

/// Path of the first file.
pub const SNMP: &str = "/proc/net/snmp";
/// Path of the second file.
pub const NETSTAT: &str = "/proc/net/netstat";

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpCounter<'a> {
    /// `Udp`, `TcpExt`, ...
    pub group: &'a str,
    /// `RcvbufErrors`, ...
    pub name: &'a str,
    /// The value; `Tcp.MaxConn` is -1 for "no limit", counters are 64-bit and unsigned.
    pub value: i128,
}

/// Reads the text of either file.
///
/// **Errors** a line without its partner, another number of values than names, a value that is no number.
pub fn parse(text: &str) -> Result<Vec<SnmpCounter<'_>>, ParseError> {
    let mut entries = Vec::with_capacity(text.len() / 8);
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    while let Some((at, names)) = lines.next() {
        if names.trim().is_empty() {
            continue;
        }
        let (group, names) = split(at, names)?;
        let (below, values) = lines
            .next()
            .ok_or_else(|| ParseError::new(at, format!("no values below the names of {group}")))?;
        let (partner, values) = split(below, values)?;
        if partner != group {
            let why =
                format!("values of `{}` below names of `{}`", shorten(partner), shorten(group));
            return Err(ParseError::new(below, why));
        }
        let mut values = values.split_ascii_whitespace();
        for name in names.split_ascii_whitespace() {
            let value = number::<i128>(below, name, values.next())?;
            if !(i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value) {
                return Err(ParseError::new(below, format!("{name} does not fit in 64 bits")));
            }
            entries.push(SnmpCounter { group, name, value });
        }
        if values.next().is_some() {
            return Err(ParseError::new(below, format!("more values than names for {group}")));
        }
    }
    Ok(entries)
}

fn split(line: usize, text: &str) -> Result<(&str, &str), ParseError> {
    text.split_once(':')
        .filter(|(group, _)| !group.is_empty())
        .ok_or_else(|| ParseError::new(line, "expected `Group: ...`"))
}

/// One counter of `/proc/net/snmp` or `/proc/net/netstat` by its full name, `Udp.RcvbufErrors`.
///
/// **Errors** [`HostError::Missing`] with the name when this kernel does not have it.
pub fn read_one(root: &Root, path: &str, full_name: &str) -> Result<u64, HostError> {
    let text = root.text(path)?;
    let entries = parse(&text).map_err(|e| e.at(root.path(path)))?;
    entries
        .iter()
        .find(|e| full_name.split_once('.') == Some((e.group, e.name)))
        .and_then(|e| u64::try_from(e.value).ok())
        .ok_or_else(|| HostError::Missing { path: root.path(path).join(full_name) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_are_paired() {
        let text = "Tcp: MaxConn InSegs\nTcp: -1 18446744073709551615\nUdp: NoPorts\nUdp: 7\n";
        let entries = parse(text).unwrap();
        assert_eq!(entries[0], SnmpCounter { group: "Tcp", name: "MaxConn", value: -1 });
        assert_eq!(entries[1].value, i128::from(u64::MAX));
        assert_eq!(entries[2], SnmpCounter { group: "Udp", name: "NoPorts", value: 7 });
    }

    #[test]
    fn broken_pairs_are_refused_with_their_line() {
        for (text, line, why) in [
            ("Udp: A B\nUdp: 1\n", 2, "B is missing"),
            ("Udp: A\nUdp: 1 2\n", 2, "more values"),
            ("Udp: A\nTcp: 1\n", 2, "below names"),
            ("Udp: A\n", 1, "no values"),
            ("Udp: A\nUdp: x\n", 2, "A is `x`"),
            ("garbage\n", 1, "expected"),
            ("Udp: A\nUdp: 99999999999999999999\n", 2, "64 bits"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.why.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[A-Za-z0-9: \n-]{0,200}") {
            let _ = parse(&text);
        }
    }
}
