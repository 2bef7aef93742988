//! `rxpath steal` and `rxpath trace` as a person sees them: tables as wide as the terminal, the status of a command.

use std::process::Command;

use crate::bed::Bed;
use crate::program::{Said, said};

fn rxpath(words: &[&str], columns: Option<&str>) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(words).env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns);
    }
    said(&mut command)
}

#[test]
fn the_status_of_a_victim_is_passed_on() {
    let Some(_bed) = Bed::with_bpf() else { return };
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143)] {
        rxpath(&["steal", "--irq-entry", "500ns", "--", "sh", "-c", script], None).ends(code);
    }
}

#[test]
fn tables_fit_80_columns_and_are_whole_in_a_pipe() {
    let Some(_bed) = Bed::with_bpf() else { return };
    for words in [
        &["steal", "--irq-entry", "1", "--top", "3", "-d", "300ms"][..],
        &["trace", "-d", "300ms", "--top", "3"],
    ] {
        let text = |columns| rxpath(words, columns).out;
        let narrow = text(Some("80"));
        // A line of a table: columns with two spaces between them, and no sentence.
        let is_row = |line: &&str| line.contains("  ") && !line.contains(": ");
        let rows: Vec<&str> = narrow.lines().filter(is_row).collect();
        assert!(rows.len() > 3, "{narrow}");
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{narrow}");
        let wide = text(None);
        assert!(!wide.contains('─') && !wide.contains('═') && !narrow.contains('─'), "{wide}");
        let widest = wide.lines().filter(is_row).map(|row| row.chars().count()).max();
        // The CPUs of a trace have more columns than that on any host.
        assert!(widest > Some(80) || words[0] == "steal", "nothing had to be fitted: {wide}");
    }
}
