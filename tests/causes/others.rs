//! CPU time of programs outside the suite: if they used much of a window, its answer is about them as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

/// Ticks of `/proc` a second (USER_HZ).
const TICKS: f64 = 100.0;

/// One moment.
pub struct Moment {
    at: Instant,
    all_ticks: u64,
    own_ticks: u64,
}

impl Moment {
    pub fn now() -> Self {
        let all_ticks = busy(&fs::read_to_string("/proc/stat").unwrap_or_default());
        Self { at: Instant::now(), all_ticks, own_ticks: own(std::process::id()) }
    }

    /// CPUs that others had since then.
    pub fn others_since(&self) -> f64 {
        let now = Self::now();
        let all = now.all_ticks.saturating_sub(self.all_ticks);
        let own = now.own_ticks.saturating_sub(self.own_ticks);
        all.saturating_sub(own) as f64 / TICKS / (now.at - self.at).as_secs_f64()
    }
}

/// User, nice and system time of all CPUs: what interrupts take belongs to nobody.
fn busy(stat: &str) -> u64 {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or("");
    all.split_whitespace().take(3).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Parent and CPU time, its dead children's included, of `/proc/PID/stat`.
fn of_process(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let times = fields.get(11..15)?.iter().filter_map(|ticks| ticks.parse::<u64>().ok());
    Some((fields.get(1)?.parse().ok()?, times.sum()))
}

/// CPU time of a process and of all that descend from it.
fn own(first: u32) -> u64 {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let (Some(pid), Some(found)) = (pid, of_process(&stat)) {
            all.insert(pid, found);
        }
    }
    let mut tree = BTreeSet::from([first]);
    loop {
        let more: Vec<u32> = (all.iter())
            .filter(|(pid, (parent, _))| tree.contains(parent) && !tree.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            break;
        }
        tree.extend(more);
    }
    tree.iter().filter_map(|pid| all.get(pid)).map(|(_, ticks)| ticks).sum()
}
