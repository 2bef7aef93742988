//! `/proc/net/softnet_stat`: what each CPU's receive softirq did.
//!
//! **Source** net/core/net-procfs.c, `softnet_seq_show`. One line for each *online* CPU, all fields `%08x` of a
//! 32-bit value. The columns grew:
//!
//! | columns | since | new |
//! |---|---|---|
//! | 9 | before 2.6.35 | processed, dropped, time squeeze; 4 to 8 always 0 since 2.6 (fast routing); CPU collision |
//! | 10 | 2.6.35, with RPS | `received_rps` |
//! | 11 | 3.11, 99bbc7074190 | `flow_limit_count` |
//! | 13 | 5.10, 7d58e6555870 | backlog length, CPU number |
//! | 15 | 6.4 | `input_qlen`, `process_qlen` (their sum is column 12) |
//!
//! **Caveat** the file is for the whole machine, also when it is read inside a network namespace.

use crate::parse::{ParseError, hex};
use crate::{HostError, Root};

/// Path of the file.
pub const PATH: &str = "/proc/net/softnet_stat";

/// One CPU's line. Counters are 32 bits wide and wrap ([`crate::read::counter::Width::U32`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLine {
    /// The CPU, where the kernel names it (5.10 and later).
    pub cpu: Option<u32>,
    /// Packets handled by `__netif_receive_skb_core` on this CPU.
    pub processed: u32,
    /// Packets that found the backlog full (`enqueue_to_backlog`).
    pub dropped: u32,
    /// Times that `net_rx_action` ended with work left: budget or time was used up.
    pub time_squeeze: u32,
    /// Inter-processor interrupts by which RPS woke this CPU: not packets.
    pub received_rps: Option<u32>,
    /// Packets dropped by the flow limit.
    pub flow_limit: Option<u32>,
    /// Packets in both backlog queues at this moment.
    pub backlog_len: Option<u32>,
}

/// Reads the file's text.
///
/// **Errors** a line with fewer than 9 fields or a field that is no 32-bit hexadecimal number. Columns
/// after the 13th are left alone.
pub fn parse(text: &str) -> Result<Vec<CpuLine>, ParseError> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let words = line.split_ascii_whitespace().take(13);
        let fields = words.map(|word| hex(at, "a column", Some(word)));
        let fields: Vec<u32> = fields.collect::<Result<_, _>>()?;
        if fields.is_empty() {
            continue;
        }
        if fields.len() < 9 {
            let why = format!("{} columns; every kernel has 9 or more", fields.len());
            return Err(ParseError::new(at, why));
        }
        let column = |number: usize| fields.get(number - 1).copied();
        lines.push(CpuLine {
            processed: fields[0],
            dropped: fields[1],
            time_squeeze: fields[2],
            received_rps: column(10),
            flow_limit: column(11),
            // 12 and 13 came together.
            backlog_len: column(13).and(column(12)),
            cpu: column(13),
        });
    }
    Ok(lines)
}

/// Gives each line its CPU; before 5.10 the lines stand in the order of the `online` CPUs and don't name them.
///
/// **Errors** when the two don't fit: a CPU went on- or offline in between.
pub fn numbered(lines: Vec<CpuLine>, online: &[u32]) -> Result<Vec<(u32, CpuLine)>, ParseError> {
    if lines.iter().all(|line| line.cpu.is_some()) {
        return Ok(lines.into_iter().filter_map(|line| Some((line.cpu?, line))).collect());
    }
    if online.len() != lines.len() {
        let why = format!("{} lines for {} online CPUs", lines.len(), online.len());
        return Err(ParseError::new(0, why));
    }
    Ok(online.iter().copied().zip(lines).collect())
}

/// Reads the file, each line with its CPU.
///
/// **Errors** as [`numbered`] and [`Root::text`].
pub fn read(root: &Root) -> Result<Vec<(u32, CpuLine)>, HostError> {
    let lines = root.parsed(PATH, parse)?;
    let online = if lines.iter().all(|line| line.cpu.is_some()) {
        Vec::new()
    } else {
        root.cpus("/sys/devices/system/cpu/online")?.0
    };
    numbered(lines, &online).map_err(|e| e.at(root.path(PATH)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn line(columns: u32) -> String {
        (1..=columns).fold(String::new(), |mut text, c| {
            write!(text, "{c:08x} ").unwrap();
            text
        })
    }

    #[test]
    fn each_kernels_columns_are_understood() {
        let of = |columns| parse(&line(columns)).unwrap()[0];
        assert_eq!((of(9).processed, of(9).dropped, of(9).time_squeeze), (1, 2, 3));
        assert_eq!((of(9).received_rps, of(9).cpu), (None, None));
        assert_eq!((of(10).received_rps, of(10).flow_limit), (Some(10), None));
        assert_eq!((of(11).flow_limit, of(11).cpu), (Some(11), None));
        assert_eq!((of(13).backlog_len, of(13).cpu), (Some(12), Some(13)));
        assert_eq!(of(15), of(13));
        assert_eq!(of(17), of(15));
    }

    #[test]
    fn what_is_no_softnet_line_is_refused() {
        assert!(parse(&line(8)).unwrap_err().why.contains("8 columns"));
        assert_eq!(parse(&format!("{}\n{} zz\n", line(15), line(9))).unwrap_err().line, 2);
        assert!(parse("1ffffffff 0 0 0 0 0 0 0 0").is_err(), "more than 32 bits");
    }

    #[test]
    fn lines_without_a_cpu_take_the_online_ones() {
        let lines = parse(&format!("{}\n{}\n", line(11), line(11))).unwrap();
        let cpus: Vec<u32> =
            numbered(lines.clone(), &[0, 4]).unwrap().iter().map(|l| l.0).collect();
        assert_eq!(cpus, [0, 4]);
        assert!(numbered(lines, &[0]).unwrap_err().why.contains("2 lines for 1 online"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-fg \n]{0,300}") {
            let _ = parse(&text);
        }
    }
}
