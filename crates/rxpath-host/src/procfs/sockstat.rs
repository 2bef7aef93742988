//! `/proc/net/sockstat` and `sockstat6`: sockets in use and memory by protocol.
//!
//! **Source** net/ipv4/proc.c, `sockstat_seq_show`. **Unit** `mem` is in pages and for the whole machine,
//! also inside a namespace; `FRAG memory` is in bytes.

use std::collections::BTreeMap;

use crate::parse::{ParseError, number};

/// Path of the file.
pub const PATH: &str = "/proc/net/sockstat";

/// Reads the file's text into `UDP.inuse`, `TCP.mem`, ...
///
/// **Errors** a line that is not `Group: name number ...`.
pub fn parse(text: &str) -> Result<BTreeMap<String, i64>, ParseError> {
    let mut values = BTreeMap::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if line.trim().is_empty() {
            continue;
        }
        let (group, rest) = line
            .split_once(':')
            .ok_or_else(|| ParseError::new(at, "expected `Group: name number`"))?;
        let mut words = rest.split_ascii_whitespace();
        while let Some(name) = words.next() {
            values.insert(format!("{}.{name}", group.trim()), number(at, name, words.next())?);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_their_group() {
        let values = parse("sockets: used 15\nUDP: inuse 2 mem 257\n").unwrap();
        assert_eq!((values["UDP.inuse"], values["UDP.mem"], values["sockets.used"]), (2, 257, 15));
    }

    #[test]
    fn a_name_without_a_number_is_refused() {
        assert_eq!(parse("UDP: inuse 2 mem\n").unwrap_err().why, "mem is missing");
        assert!(parse("garbage\n").is_err());
    }
}
