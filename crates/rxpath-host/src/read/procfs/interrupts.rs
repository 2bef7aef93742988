//! `/proc/interrupts`: how often each interrupt was taken on each CPU, and whose it is.
//!
//! **Source** kernel/irq/proc.c, `show_interrupts`, and arch/*/kernel/irq.c for the rows with names (`LOC`,
//! `RES`); one column for each *online* CPU, 32-bit counters.

use crate::parse::{ParseError, cpu_heads};

/// Path of the file.
pub const PATH: &str = "/proc/interrupts";

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptRow {
    /// `24`, or a name such as `LOC`.
    pub label: String,
    /// Counts, one for each CPU of the table; a row that is not per CPU (`ERR`, `MIS`) has fewer.
    pub counts: Vec<u64>,
    /// Controller, trigger and device names: `PCI-MSIX-0000:00:04.0 1-edge virtio3-rx`.
    pub about: String,
}

impl InterruptRow {
    /// The interrupt's number, when it is one.
    pub fn number(&self) -> Option<u32> {
        self.label.parse().ok()
    }
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// CPUs of the columns.
    pub cpus: Vec<u32>,
    /// The rows, in order.
    pub rows: Vec<InterruptRow>,
}

/// Reads the file's text.
///
/// **Errors** a head that is not `CPU0 CPU1 ...`, a row without a label, a numbered row with fewer counts than CPUs.
pub fn parse(text: &str) -> Result<Interrupts, ParseError> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let (_, head) = lines.next().ok_or_else(|| ParseError::new(0, "empty"))?;
    let cpus = cpu_heads(1, head)?;
    let mut rows = Vec::new();
    for (at, line) in lines {
        if line.trim().is_empty() {
            continue;
        }
        let (label, rest) =
            line.split_once(':').ok_or_else(|| ParseError::new(at, "expected `irq: counts`"))?;
        let label = label.trim().to_owned();
        let mut words = rest.split_ascii_whitespace().peekable();
        let mut counts = Vec::with_capacity(cpus.len().min(rest.len()));
        while counts.len() < cpus.len() {
            let Some(count) = words.peek().and_then(|word| word.parse().ok()) else { break };
            counts.push(count);
            words.next();
        }
        let about = words.collect::<Vec<_>>().join(" ");
        let row = InterruptRow { label, counts, about };
        if row.number().is_some() && row.counts.len() != cpus.len() {
            let why = format!("{} counts for {} CPUs", row.counts.len(), cpus.len());
            return Err(ParseError::new(at, why));
        }
        rows.push(row);
    }
    Ok(Interrupts { cpus, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_owner() {
        let text = "      CPU0 CPU1\n 41:  991   0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx\nLOC: 5 6   Local timer interrupts\nERR:    3\n";
        let table = parse(text).unwrap();
        assert_eq!(table.rows[0].number(), Some(41));
        assert_eq!(table.rows[0].about, "PCI-MSIX-0000:00:04.0 1-edge virtio3-rx");
        assert_eq!((table.rows[1].counts.as_slice(), table.rows[1].number()), (&[5, 6][..], None));
        assert_eq!(table.rows[2].counts, [3]);
    }

    #[test]
    fn broken_rows_are_refused() {
        assert!(parse("").is_err());
        assert_eq!(parse("CPU0 CPU1\n 4: 1 x\n").unwrap_err().line, 2);
        assert!(parse("CPU0\nno label\n").is_err());
    }
}
