//! Which processes hold the sockets: asking costs a link for each descriptor of the machine, so it is asked for sockets
//! that are shown and new, and so seldom that it takes a two-hundredth of a CPU at most.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rxpath_bpf::cost::own_cpu;
use rxpath_core::number::grouped;
use rxpath_host::Root;
use rxpath_host::read::procfs::{socket_owner, task};

use super::sockets::SocketSamples;
use crate::live::OWNERS;

/// Sockets whose owners were not found are asked about again after so many windows.
const AGAIN: u32 = 10;
/// A search is followed by a pause of this many times its CPU time.
const PAUSE: u32 = 200;
/// Threads of owners that are measured in each window, at most: each costs some 25 us.
const THREADS: u32 = 400;

#[derive(Debug, Default)]
pub struct Owners {
    pub by_inode: BTreeMap<u32, BTreeSet<i32>>,
    /// Sockets whose owners are known by reads alone.
    by_reads: BTreeSet<u32>,
    processes: BTreeMap<i32, Process>,
    /// Processes whose threads are measured, in order.
    measured: Vec<i32>,
    windows: u32,
    /// When the next search may begin.
    next: Option<Instant>,
    /// Processes that did not show their descriptors at the last search.
    hidden_processes: usize,
}

/// A process that holds a socket, as it was when that was found.
#[derive(Clone, Debug)]
struct Process {
    name: String,
    threads: u32,
}

impl Owners {
    /// Whether a search may begin.
    fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// A search ended at this moment.
    fn took(&mut self, now: Instant, cpu: Duration) {
        self.next = Some(now + cpu * PAUSE);
    }

    /// Asks for the owners of sockets that are new, and forgets those that are gone. `readers`: ports of UDP, each with a process
    /// that was seen to read there.
    pub fn learn(&mut self, root: &Root, looks: &SocketSamples, readers: &BTreeSet<(u16, i32)>) {
        self.by_inode.retain(|inode, _| looks.has(*inode));
        self.by_reads.retain(|inode| looks.has(*inode));
        self.windows += 1;
        let again = self.windows.is_multiple_of(AGAIN);
        if again {
            self.forget_ended(root);
        }
        let unknown = |inode: &u32| match self.by_inode.get(inode) {
            None => true,
            Some(owners) => again && owners.is_empty(),
        };
        let new: BTreeSet<u32> = looks.shown().filter(unknown).collect();
        if !new.is_empty() && self.is_due(Instant::now()) {
            let before = own_cpu();
            self.ask(root, new);
            self.took(Instant::now(), own_cpu().saturating_sub(before));
        }
        self.add_readers(root, looks, readers);
        self.choose(looks);
    }

    /// Of sockets that no process shows those are the owners that read at their port: each that was seen to, as a window
    /// samples but a few reads, and several processes may share a port.
    fn add_readers(&mut self, root: &Root, looks: &SocketSamples, readers: &BTreeSet<(u16, i32)>) {
        for (inode, port) in looks.shown_of_udp() {
            let Some(owners) = self.by_inode.get_mut(&inode) else { continue };
            if !owners.is_empty() && !self.by_reads.contains(&inode) {
                continue;
            }
            for (_, pid) in readers.range((port, 0)..=(port, i32::MAX)) {
                if owners.contains(pid) {
                    continue;
                }
                // It may have ended since.
                let Ok(task) = task::read(root, *pid, None) else { continue };
                self.processes.insert(*pid, Process { name: task.comm, threads: task.threads });
                owners.insert(*pid);
                self.by_reads.insert(inode);
            }
        }
    }

    /// Processes that have ended read nothing more at a socket that others have open still.
    fn forget_ended(&mut self, root: &Root) {
        for inode in &self.by_reads {
            if let Some(owners) = self.by_inode.get_mut(inode) {
                owners.retain(|pid| task::read(root, *pid, None).is_ok());
            }
        }
    }

    fn ask(&mut self, root: &Root, new: BTreeSet<u32>) {
        let mut found = socket_owner::seen(root, &new);
        self.hidden_processes = found.hidden_processes;
        for inode in new {
            let owners = found.by_inode.remove(&inode).unwrap_or_default();
            for pid in &owners {
                self.processes.entry(*pid).or_insert_with(|| {
                    task::read(root, *pid, None).map_or_else(
                        |_| Process { name: "?".into(), threads: 1 },
                        |it| Process { name: it.comm, threads: it.threads },
                    )
                });
            }
            self.by_reads.remove(&inode);
            self.by_inode.insert(inode, owners);
        }
        let held: BTreeSet<i32> = self.by_inode.values().flatten().copied().collect();
        self.processes.retain(|pid, _| held.contains(pid));
    }

    /// Whose threads are measured next: holders of sockets that drop, then of those in which something waits.
    fn choose(&mut self, looks: &SocketSamples) {
        let holders = looks.shown().filter_map(|inode| self.by_inode.get(&inode)).flatten();
        let (mut chosen, mut threads) = (BTreeSet::new(), 0);
        for pid in holders {
            let more = self.processes.get(pid).map_or(1, |process| process.threads);
            let has_room = chosen.len() < OWNERS && threads + more <= THREADS;
            if has_room && chosen.insert(*pid) {
                threads += more;
            }
        }
        self.measured = chosen.into_iter().collect();
    }

    /// As `name (pid)`.
    pub fn named(&self, inode: u32) -> Vec<String> {
        let pids = self.by_inode.get(&inode).into_iter().flatten();
        let name = |pid: &i32| self.processes.get(pid).map_or("?", |process| process.name.as_str());
        pids.map(|pid| format!("{} ({pid})", name(pid))).collect()
    }

    /// Why nobody is named; empty when it was asked.
    pub fn gap(&self, inode: u32) -> String {
        if inode == 0 || self.by_inode.contains_key(&inode) {
            return String::new();
        }
        "not looked up yet: the search through all descriptors may take 0.5 % of a CPU".into()
    }

    /// Processes whose threads are measured.
    pub fn pids(&self) -> Vec<i32> {
        self.measured.clone()
    }

    /// That some processes do not show what they hold, and what would show it.
    pub fn hidden(&self) -> Option<String> {
        let count = self.hidden_processes;
        (count > 0).then(|| {
            let count = grouped(count as u64);
            format!("{count} processes do not show theirs: needs {}", socket_owner::NEEDED)
        })
    }

    /// What is not measured, when there are too many.
    pub fn capped(&self) -> Option<String> {
        let all = self.processes.len();
        let left = all.checked_sub(self.measured.len()).filter(|left| *left > 0)?;
        Some(format!(
            "{} of {} programs with sockets are not measured: at most {OWNERS} programs with {THREADS} threads \
             together, those first whose sockets drop or are fullest",
            grouped(left as u64),
            grouped(all as u64)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dear_search_is_repeated_seldom() {
        let (mut owners, now) = (Owners::default(), Instant::now());
        assert!(owners.is_due(now));
        owners.took(now, Duration::from_millis(36));
        assert!(!owners.is_due(now + Duration::from_secs(7)));
        assert!(owners.is_due(now + Duration::from_secs(8)));
    }

    #[test]
    fn those_whose_sockets_drop_are_measured_before_those_with_low_numbers() {
        let mut owners = Owners::default();
        let sockets: Vec<(u32, u32)> =
            (1..=100).map(|inode| (inode, u32::from(inode == 90))).collect();
        for (inode, _) in &sockets {
            // Two sockets of one process are one process.
            let pid = *inode as i32 / 2 * 2;
            owners.by_inode.insert(*inode, [pid].into());
            owners.processes.insert(pid, Process { name: "a".into(), threads: 10 });
        }
        owners.choose(&SocketSamples::of_drops(&sockets));
        assert!(owners.pids().contains(&90), "{:?}", owners.pids());
        assert_eq!(owners.pids().len(), 40, "400 threads");
        assert!(owners.capped().unwrap().starts_with("11 of 51 programs"), "{:?}", owners.capped());
        let crowd = Process { name: "crowd".into(), threads: 3000 };
        owners.processes.insert(90, crowd);
        owners.choose(&SocketSamples::of_drops(&sockets));
        assert!(!owners.pids().contains(&90), "it alone costs more than all others");
    }

    #[test]
    fn a_socket_that_was_not_asked_about_says_so() {
        let mut owners = Owners::default();
        assert!(owners.gap(7).contains("not looked up yet"));
        owners.by_inode.insert(7, BTreeSet::new());
        assert_eq!(owners.gap(7), "");
    }

    #[test]
    fn only_shown_sockets_are_asked_about_and_those_that_are_gone_forgotten() {
        let mut owners = Owners::default();
        owners.by_inode.insert(5, [1].into());
        owners.learn(&Root::host(), &SocketSamples::of_drops(&[(u32::MAX, 1)]), &BTreeSet::new());
        assert_eq!(owners.by_inode, [(u32::MAX, BTreeSet::new())].into());
    }

    /// As of an exporter without capabilities, to which `/proc` shows nothing of other users.
    #[test]
    fn who_reads_at_a_port_owns_its_sockets_if_no_process_shows_them() {
        let own = std::process::id() as i32;
        let looks = SocketSamples::of_drops(&[(u32::MAX, 1), (u32::MAX - 1, 1)]);
        let mut owners = Owners::default();
        owners.by_inode.insert(u32::MAX - 1, [1].into());
        // The sockets of this test have port 0, and no process has the last number.
        let readers = [(0, own), (0, i32::MAX), (9, 1)].into();
        owners.learn(&Root::host(), &looks, &readers);
        assert_eq!(owners.by_inode[&u32::MAX], [own].into());
        assert_eq!(owners.by_inode[&(u32::MAX - 1)], [1].into(), "it is known");
        assert!(owners.pids().contains(&own));
        // Another process reads there in a later window.
        owners.learn(&Root::host(), &looks, &[(0, 1)].into());
        assert_eq!(owners.by_inode[&u32::MAX], [1, own].into());
        owners.learn(&Root::host(), &looks, &[(0, own)].into());
        assert_eq!(owners.by_inode[&(u32::MAX - 1)], [1].into(), "it is known");
        // A process has ended.
        owners.by_inode.insert(u32::MAX, [own, i32::MAX].into());
        owners.windows = AGAIN - 1;
        owners.learn(&Root::host(), &looks, &BTreeSet::new());
        assert_eq!(owners.by_inode[&u32::MAX], [own].into());
        // The inode may be another socket's later.
        owners.learn(&Root::host(), &SocketSamples::of_drops(&[]), &BTreeSet::new());
        assert!(owners.by_reads.is_empty());
    }
}
