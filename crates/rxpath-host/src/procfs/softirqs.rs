//! `/proc/softirqs`: how often each softirq ran on each CPU.
//!
//! **Source** fs/proc/softirqs.c, `show_softirqs`; one column for each *possible* CPU, 32-bit counters.

use std::collections::BTreeMap;

use crate::parse::{ParseError, cpu_heads, number};

/// Path of the file.
pub const PATH: &str = "/proc/softirqs";

/// Counts by softirq name (`NET_RX`, `TIMER`, ...), in the order of `cpus`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Softirqs {
    /// CPUs of the columns.
    pub cpus: Vec<u32>,
    /// Counts of each softirq, one for each CPU.
    pub counts: BTreeMap<String, Vec<u64>>,
}

impl Softirqs {
    /// How often softirq `name` ran on `cpu`.
    pub fn count(&self, name: &str, cpu: u32) -> Option<u64> {
        let column = self.cpus.iter().position(|c| *c == cpu)?;
        self.counts.get(name)?.get(column).copied()
    }
}

/// Reads the file's text.
///
/// **Errors** a head that is not `CPU0 CPU1 ...`, a row with another number of columns.
pub fn parse(text: &str) -> Result<Softirqs, ParseError> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let (_, head) = lines.next().ok_or_else(|| ParseError::new(0, "empty"))?;
    let cpus = cpu_heads(1, head)?;
    let mut counts = BTreeMap::new();
    for (at, line) in lines {
        if line.trim().is_empty() {
            continue;
        }
        let (name, rest) =
            line.split_once(':').ok_or_else(|| ParseError::new(at, "expected `NAME: counts`"))?;
        let row: Vec<u64> = rest
            .split_ascii_whitespace()
            .map(|word| number(at, "a count", Some(word)))
            .collect::<Result<_, _>>()?;
        if row.len() != cpus.len() {
            let why = format!("{} counts for {} CPUs", row.len(), cpus.len());
            return Err(ParseError::new(at, why));
        }
        counts.insert(name.trim().to_owned(), row);
    }
    Ok(Softirqs { cpus, counts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_cpus() {
        let softirqs = parse("      CPU0   CPU2\n  NET_RX:  5  7\n").unwrap();
        assert_eq!(softirqs.count("NET_RX", 2), Some(7));
        assert_eq!(softirqs.count("NET_RX", 1), None);
        assert_eq!(softirqs.count("NET_TX", 0), None);
    }

    #[test]
    fn broken_rows_are_refused() {
        assert!(parse("").is_err());
        assert!(parse("CPU0 X1\n").is_err());
        assert_eq!(parse("CPU0 CPU1\nHI: 1\n").unwrap_err().why, "1 counts for 2 CPUs");
    }
}
