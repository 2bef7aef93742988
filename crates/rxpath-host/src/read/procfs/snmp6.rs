//! `/proc/net/snmp6`: one name and value on each line.
//!
//! **Source** net/ipv6/proc.c, `snmp6_seq_show`. Absent when the kernel was started with `ipv6.disable=1`.

use crate::parse::{ParseError, number};
use crate::read::procfs::snmp::SnmpCounter;

/// Path of the file.
pub const PATH: &str = "/proc/net/snmp6";

/// Reads the file's text; `Udp6RcvbufErrors` becomes group `Udp6`, name `RcvbufErrors`.
///
/// **Errors** a line that is not a name and one number.
pub fn parse(text: &str) -> Result<Vec<SnmpCounter<'_>>, ParseError> {
    let mut entries = Vec::with_capacity(128);
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let mut words = line.split_ascii_whitespace();
        let Some(full) = words.next() else { continue };
        let value = number::<u64>(at, "the value", words.next())?;
        if words.next().is_some() {
            return Err(ParseError::new(at, "more than a name and a value"));
        }
        // The group ends with the first 6: Ip6, Icmp6, Udp6, UdpLite6. A name without one keeps its own group.
        let (group, name) = match full.find('6') {
            Some(six) if six + 1 < full.len() => full.split_at(six + 1),
            _ => ("Snmp6", full),
        };
        entries.push(SnmpCounter { group, name, value: i128::from(value) });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_split_from_the_name() {
        let text = "Ip6InReceives   \t5\nUdpLite6InErrors\t1\nIcmp6OutType135\t4\n";
        let entries = parse(text).unwrap();
        let names: Vec<_> = entries.iter().map(|e| (e.group, e.name, e.value)).collect();
        assert_eq!(
            names,
            [("Ip6", "InReceives", 5), ("UdpLite6", "InErrors", 1), ("Icmp6", "OutType135", 4)]
        );
    }

    #[test]
    fn a_broken_line_is_refused() {
        assert_eq!(parse("Ip6InReceives 1\nUdp6NoPorts\n").unwrap_err().line, 2);
        assert!(parse("Ip6InReceives 1 2\n").is_err());
    }
}
