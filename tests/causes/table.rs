//! The page: a row a cause, and how many were right.

use std::fs;

use super::grade::Grade;
use super::row::Row;

/// The interval of Wilson for a share, 95 %.
///
/// **Source** E. B. Wilson, Probable Inference, JASA 22 (1927).
pub fn wilson(hits: usize, of: usize) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (of as f64, hits as f64 / of as f64);
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let below = 1.0 + Z * Z / n;
    (((middle - half) / below).max(0.0), ((middle + half) / below).min(1.0))
}

const GRADES: [Grade; 4] = [Grade::Right, Grade::Honest, Grade::Wrong, Grade::WrongStrong];

fn counts(grades: &[Grade]) -> [(Grade, usize); 4] {
    GRADES.map(|grade| (grade, grades.iter().filter(|it| **it == grade).count()))
}

fn shares(what: &str, grades: &[Grade]) -> String {
    let all = grades.len();
    let cells = counts(grades).map(|(_, count)| {
        let (low, high) = wilson(count, all);
        format!("{count} ({:.0} to {:.0} %)", 100.0 * low, 100.0 * high)
    });
    format!("| {what} | {all} | {} |\n", cells.join(" | "))
}

/// How many of which grade, with intervals: all causes, and those that others left alone.
pub fn summary(rows: &[Row]) -> String {
    let grades = |of: fn(&Row) -> Option<Grade>| rows.iter().filter_map(of).collect::<Vec<_>>();
    let alone = |row: &Row| row.grade().filter(|_| !row.is_disturbed());
    let alone_without = |row: &Row| row.without_bpf().filter(|_| !row.is_disturbed());
    format!(
        "| | of | right | honest | wrong | wrong strong |\n|---|---|---|---|---|---|\n{}{}{}{}",
        shares("all causes, BPF", &grades(Row::grade)),
        shares("all causes, counters alone", &grades(Row::without_bpf)),
        shares("not disturbed, BPF", &grades(alone)),
        shares("not disturbed, counters alone", &grades(alone_without)),
    )
}

/// Windows that said the same, together.
fn said(row: &Row, bpf: bool) -> String {
    let mut all: Vec<(String, usize)> = Vec::new();
    for window in row.counted(bpf) {
        let text = format!("{} ({})", window.stage, window.confidence);
        match all.iter_mut().find(|(same, _)| *same == text) {
            Some((_, count)) => *count += 1,
            None => all.push((text, 1)),
        }
    }
    let times = |(text, count): &(String, usize)| match count {
        1 => text.clone(),
        more => format!("{more} x {text}"),
    };
    all.iter().map(times).collect::<Vec<_>>().join(", ")
}

fn line(row: &Row) -> String {
    let word = |grade: Option<Grade>| grade.map_or("-", Grade::word);
    if let Some(why) = &row.missing {
        return format!("| {} | {} | not available: {why} | | | | |\n", row.name, row.truth);
    }
    let disturbed = if row.is_disturbed() { ", disturbed" } else { "" };
    format!(
        "| {} | {} | {} | {}{disturbed} | {} | {} | {} |\n",
        row.name,
        row.truth,
        said(row, true),
        word(row.grade()),
        said(row, false),
        word(row.without_bpf()),
        row.remedy.replace('|', "\\|"),
    )
}

fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpus = info.lines().filter(|line| line.starts_with("processor")).count();
    let date = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{date}, Linux {kernel}, {cpus} CPUs ({})", model.map_or("unknown", |(_, name)| name))
}

/// The page in Markdown.
pub fn page(rows: &[Row]) -> String {
    let lines: String = rows.iter().map(line).collect();
    format!(
        "# Causes that were not planted\n\n\
         What `rxpath diagnose` says of causes that `make causes` makes with programs of its own, none of them rxpath's: three\n\
         windows of 2 s with BPF and one without. Windows in which other programs of the machine had 0.3 CPUs or more are left\n\
         out where there are others; where there are none the row says *disturbed*. A row is of the last time that its cause\n\
         was asked: after a mend those that it touches are asked again. So the page has no date in its name. {}.\n\n\
         *right*: the verdict is one of those that are true. *honest*: unknown, weak, or it names what it could not see.\n\
         A cause has the grade of its middle window, but one wrong answer without doubt (*strong*) makes it wrong strong.\n\
         The remedy is tried afterwards; it helps where the loss that the programs count falls to half or less.\n\
         In brackets: the 95 % interval of Wilson.\n\n{}\n\
         | cause | what is true | said, BPF | | said, counters alone | | remedy |\n\
         |---|---|---|---|---|---|---|\n{lines}",
        machine(),
        summary(rows)
    )
}
