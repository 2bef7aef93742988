//! `rxpath check --summarize` as text.

use rxpath_core::number::grouped;
use rxpath_tune::fleet::{CommonFinding, Driver, HostGroup, OddHost, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::color::bold;

/// Most entries of each list; the rest is only counted.
const FINDINGS: usize = 10;
const GROUPS: usize = 8;
const ODD: usize = 3;
const DIFFERENCES: usize = 4;

/// The result of `check --summarize`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summarized {
    /// The summary of the reports.
    #[serde(flatten)]
    pub summary: Summary,
    /// Bytes that were read.
    pub total_bytes: u64,
    /// Time for reading and counting, in s.
    pub elapsed_s: f64,
}

/// The whole summary.
pub fn render(result: &Summarized, all: bool) -> String {
    let summary = &result.summary;
    let mut out = head(result);
    out += &findings(summary, if all { usize::MAX } else { FINDINGS });
    let shown = if all { usize::MAX } else { GROUPS };
    out.extend(summary.groups.iter().take(shown).map(|one| group(one, all)));
    let hidden = summary.groups.len().saturating_sub(shown);
    if hidden > 0 {
        out += &format!("{} smaller groups: --all\n\n", grouped(hidden as u64));
    }
    out.extend(summary.drivers.iter().map(versions));
    if all {
        let bad = summary.bad_files.iter();
        out.extend(bad.map(|bad| format!("not used: {}: {}\n", bad.file, bad.why)));
    }
    out
}

fn head(result: &Summarized) -> String {
    let summary = &result.summary;
    let seconds = result.elapsed_s.max(1e-6);
    let rate = (summary.hosts_count as f64 / seconds) as u64;
    let bad = summary.bad_files.len() as u64;
    let bad = if bad > 0 { format!(", {} files not used", grouped(bad)) } else { String::new() };
    format!(
        "{} reports{bad}: {} findings, {} hosts without one; {:.1} MB read in {:.2} s, {} reports/s\n\n",
        grouped(summary.hosts_count),
        grouped(summary.findings_count),
        grouped(summary.clean_hosts_count),
        result.total_bytes as f64 / 1e6,
        seconds,
        grouped(rate)
    )
}

fn findings(summary: &Summary, shown: usize) -> String {
    let Some(widest) = summary.findings.iter().take(shown).map(|one| one.id.len()).max() else {
        return String::new();
    };
    let title = bold("Findings by hosts");
    let mut out = format!("{title}\n");
    let line = |one: &CommonFinding| {
        let share = one.hosts_count as f64 / summary.hosts_count.max(1) as f64 * 100.0;
        let [hosts, findings] = [one.hosts_count, one.findings_count].map(grouped);
        let (id, severity) = (&one.id, one.severity.as_str());
        format!(
            "  {id:<widest$}  {severity}  {hosts:>9} hosts {share:>5.1} %  {findings:>10} findings\n"
        )
    };
    out.extend(summary.findings.iter().take(shown).map(line));
    let hidden = summary.findings.len().saturating_sub(shown);
    if hidden > 0 {
        out += &format!("  {} more: --all\n", grouped(hidden as u64));
    }
    out + "\n"
}

/// A version, or that it was not reported.
fn told(version: &str) -> &str {
    if version.is_empty() { "not reported" } else { version }
}

fn group(group: &HostGroup, all: bool) -> String {
    let name = if group.driver.is_empty() {
        format!("no NIC, kernel {}", told(&group.kernel))
    } else {
        let firmware = told(&group.firmware);
        format!("{}, firmware {firmware}, kernel {}", group.driver, told(&group.kernel))
    };
    let odd = match group.hosts_count {
        1 => "1 host".to_owned(),
        2 => "2 hosts, too few to say which one differs".to_owned(),
        hosts => {
            let [hosts, odd] = [hosts, group.odd_hosts_count].map(grouped);
            format!("{hosts} hosts, {odd} differ from the others")
        }
    };
    let mut out = format!("{}: {odd}\n", bold(&name));
    let shown = if all { usize::MAX } else { ODD };
    let odd = group.odd_hosts.iter().take(shown);
    out.extend(odd.map(|odd| odd_host(odd, group.hosts_count, all)));
    out + "\n"
}

fn odd_host(odd: &OddHost, total: u64, all: bool) -> String {
    let shown = if all { usize::MAX } else { DIFFERENCES };
    let words: Vec<String> = odd
        .differences
        .iter()
        .take(shown)
        .map(|one| {
            let has = if one.has_it { "has" } else { "lacks" };
            format!("{has} {} ({} of {})", one.id, grouped(one.hosts_count), grouped(total))
        })
        .collect();
    let more = if odd.differences.len() > words.len() { ", ..." } else { "" };
    format!("  {}: {}{more}\n", odd.host, words.join(", "))
}

/// Differences among the hosts of a driver; nothing if all are the same.
fn versions(driver: &Driver) -> String {
    let mut out = String::new();
    for (what, list) in [("firmware", &driver.firmwares), ("kernel", &driver.kernels)] {
        if list.len() < 2 || driver.driver.is_empty() {
            continue;
        }
        let words: Vec<String> = list
            .iter()
            .map(|one| {
                let named = (!one.hosts.is_empty()).then(|| format!(" ({})", one.hosts.join(", ")));
                let (version, hosts) = (told(&one.version), grouped(one.hosts_count));
                format!("{version} on {hosts}{}", named.unwrap_or_default())
            })
            .collect();
        out += &format!("{} hosts differ in {what}: {}\n", driver.driver, words.join("; "));
    }
    out
}
