//! `/proc/net/stat/nf_conntrack`: what connection tracking did on each CPU.
//!
//! **Source** net/netfilter/nf_conntrack_standalone.c, `ct_cpu_seq_show`, with `CONFIG_NF_CONNTRACK_PROCFS`. A line of
//! names, then one line for each *possible* CPU, all fields `%08x` of a 32-bit value. On each line `entries` is the number of
//! the whole table. Two columns got another name and meaning: `searched` became `clashres` (5.10), `delete_list` became
//! `chainlength` (5.15). Every user may read the file.

use crate::parse::{ParseError, hex};
use crate::read::netlink::netfilter::Conntrack;
use crate::{HostError, Root};

/// Path of the file.
pub const PATH: &str = "/proc/net/stat/nf_conntrack";
/// Path of the most entries that there may be; each network namespace has it once connection tracking is loaded.
pub const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// Reads the file's text: the counters of all CPUs together, without the maximum.
///
/// **Errors** no column `entries`, no line of a CPU, another number of values than names, a value that is no 32-bit
/// hexadecimal number. Columns that are not known are left alone.
pub fn parse(text: &str) -> Result<Conntrack, ParseError> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let head = lines.next().map_or("", |(_, line)| line);
    let names: Vec<&str> = head.split_ascii_whitespace().collect();
    if !names.contains(&"entries") {
        return Err(ParseError::new(1, "no column `entries`"));
    }
    if text.lines().nth(1).is_none() {
        return Err(ParseError::new(0, "no line of a CPU"));
    }
    let mut sum = Conntrack::default();
    for (at, line) in lines {
        let mut values = line.split_ascii_whitespace();
        for name in &names {
            let value = u64::from(hex(at, name, values.next())?);
            if *name == "entries" {
                sum.entries_count = value;
            }
            for (.., total) in sum.counters().into_iter().filter(|(_, column, _)| column == name) {
                *total += value;
            }
        }
        if values.next().is_some() {
            return Err(ParseError::new(at, "more values than names"));
        }
    }
    Ok(sum)
}

/// Reads the file and the maximum.
///
/// **Errors** as [`parse`] and [`Root::text`]; a maximum that cannot be read is none.
pub fn read(root: &Root) -> Result<Conntrack, HostError> {
    let counted = root.parsed(PATH, parse)?;
    Ok(Conntrack { entries_max: root.number(MAX).ok(), ..counted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OLD: &str = "entries  searched found new invalid ignore delete delete_list insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n";
    const NEW: &str = "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n";
    /// A line of a CPU: each column has its number, from 1.
    const CPU: &str = "00000001  00000002 00000003 00000004 00000005 00000006 00000007 00000008 00000009 0000000a 0000000b 0000000c 0000000d  0000000e 0000000f 00000010 00000011\n";

    #[test]
    fn columns_go_by_their_names_and_counters_of_all_cpus_are_summed() {
        let new = Conntrack {
            entries_count: 1,
            entries_max: None,
            found_total: 2 * 3,
            invalid_total: 2 * 5,
            insert_total: 2 * 9,
            insert_failed_total: 2 * 10,
            drop_total: 2 * 11,
            early_drop_total: 2 * 12,
            error_total: 2 * 13,
            search_restart_total: 2 * 17,
            clash_resolve_total: 2 * 2,
            chain_too_long_total: 2 * 8,
        };
        assert_eq!(parse(&format!("{NEW}{CPU}{CPU}")).unwrap(), new);
        let old = Conntrack { clash_resolve_total: 0, chain_too_long_total: 0, ..new };
        assert_eq!(parse(&format!("{OLD}{CPU}{CPU}")).unwrap(), old);
        let few = parse("drop later entries\nffffffff 1 2\nffffffff 1 2\n").unwrap();
        assert_eq!((few.drop_total, few.entries_count), (2 * 0xffff_ffff, 2));
    }

    #[test]
    fn what_is_cut_or_broken_is_refused_with_its_line() {
        for (text, line, why) in [
            ("", 1, "no column `entries`"),
            ("drop found\n1 2\n", 1, "no column `entries`"),
            ("entries drop\n", 0, "no line of a CPU"),
            ("entries drop\n1 2\n1\n", 3, "drop is missing"),
            ("entries drop\n1 2 3\n", 2, "more values than names"),
            ("entries drop\n1 x\n", 2, "drop is `x`, not hex"),
            ("entries drop\n1 1ffffffff\n", 2, "drop is `1ffffffff`"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.why.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_maximum_may_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(PATH, "entries drop\na 1\n");
        let root = Root::tree(dir.path()).unwrap();
        let found = read(&root).unwrap();
        assert_eq!((found.entries_count, found.entries_max, found.drop_total), (10, None, 1));
        put(MAX, "262144\n");
        assert_eq!(read(&root).unwrap().entries_max, Some(262_144));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(entries drop found\n)?[0-9a-fg \n]{0,200}") {
            let _ = parse(&text);
        }
    }
}
