//! What tracepoints show of a window, for the diagnosis: whose CPU time it was, and who waited for a socket's lock.
//!
//! It never stands in the way: what this host or build cannot watch becomes a gap of the evidence.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_bpf::account::row::Charge;
use rxpath_bpf::account::{Account, Reading};
use rxpath_bpf::locks::{Locks, Waits};
use rxpath_bpf::probe::{Probe, lost};
use rxpath_core::IntoMap;
use rxpath_core::number::grouped;
use rxpath_host::read::clock::monotonic_ns;
use rxpath_host::read::procfs::task;
use rxpath_host::{HostError, Root};
use rxpath_record::evidence::{ContendedLock, LockWaiter, Probed, ProbedCpu, ProbedTask};

use crate::observe::is_receive_path;

/// Tasks that ran or waited for less than this share of the window tell nothing.
const NOTEWORTHY_RATIO: f64 = 0.05;

/// Whose traffic it is.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    /// Processes that send or receive it.
    pub workloads: &'a [i32],
    /// Of them those that receive.
    pub readers: &'a [i32],
}

/// The running probes.
#[derive(Debug)]
pub struct Witness {
    account: Result<Account, String>,
    pub(crate) locks: Result<Locks, String>,
    begun: Option<Reading>,
    begun_ns: u64,
    waited: Option<Vec<Waits>>,
}

impl Witness {
    /// Attaches what this host takes.
    pub fn start() -> Self {
        Self::start_while(&|| Ok(()))
    }

    /// The same, each part only if it is allowed when its turn comes.
    pub fn start_while(allowed: &dyn Fn() -> Result<(), String>) -> Self {
        let account = allowed().and_then(|()| Account::start().map_err(told));
        let locks = allowed().and_then(|()| Locks::start().map_err(told));
        Self { account, locks, begun: None, begun_ns: monotonic_ns(), waited: None }
    }

    /// Of locks alone.
    pub(crate) fn of_locks(locks: Result<Locks, String>) -> Self {
        let account = Err("only the waits for locks are watched".to_owned());
        Self { account, locks, begun: None, begun_ns: monotonic_ns(), waited: None }
    }

    /// Those that run.
    pub(crate) fn parts(&self) -> Vec<&dyn Probe> {
        let account = self.account.as_ref().ok().map(|account| account as &dyn Probe);
        let locks = self.locks.as_ref().ok().map(|locks| locks as &dyn Probe);
        account.into_iter().chain(locks).collect()
    }

    /// The window begins.
    pub fn begin(&mut self) {
        self.begun = self.account.as_ref().ok().and_then(|account| account.read().ok());
        self.waited = self.locks.as_ref().ok().and_then(|locks| locks.read().ok());
        self.begun_ns = monotonic_ns();
    }

    /// The window ends.
    pub fn end(&self) -> Witnessed {
        let window_ns = monotonic_ns().saturating_sub(self.begun_ns).max(1) as f64;
        // Waits are divided by this length. To read the account takes longer; it has windows of its own.
        let (waits, account) = (self.waits(), self.accounted());
        // Since the start.
        let lost = match lost(&self.parts()) {
            Ok(0) => None,
            Ok(lost) => {
                let lost = grouped(lost);
                Some(format!("{lost} slices, polls or waits found no room in their maps"))
            }
            Err(why) => {
                Some(format!("how many slices, polls or waits found no room is unknown: {why}"))
            }
        };
        Witnessed { window_ns, account, waits, lost }
    }

    fn accounted(&self) -> Result<Reading, String> {
        let account = self.account.as_ref().map_err(Clone::clone)?;
        let begun = self.begun.as_ref().ok_or("its first reading failed")?;
        Ok(account.read().map_err(told)?.since(begun))
    }

    fn waits(&self) -> Result<Vec<Waits>, String> {
        let now = self.locks.as_ref().map_err(Clone::clone)?.read().map_err(told)?;
        waits_since(self.waited.as_deref(), now)
    }
}

/// What was seen in a window; whose traffic it was may be found out after it.
#[derive(Debug)]
pub struct Witnessed {
    window_ns: f64,
    account: Result<Reading, String>,
    waits: Result<Vec<Waits>, String>,
    lost: Option<String>,
}

impl Witnessed {
    /// For the diagnosis.
    pub fn of(self, traffic: &Traffic<'_>) -> Probed {
        let mut probed = Probed::default();
        match self.account {
            Ok(window) => (probed.cpus, probed.tasks) = by_cpu(&window, traffic),
            Err(why) => probed.gaps.push(format!("CPU time by task: {why}")),
        }
        match self.waits {
            Ok(waits) => {
                let readers = threads_of(traffic.readers);
                probed.locks = Some(contended(&waits, &readers, self.window_ns));
            }
            Err(why) => probed.gaps.push(format!("waits for locks: {why}")),
        }
        probed.gaps.extend(self.lost);
        probed
    }
}

/// Without the first reading all since the probe's start would pass for the window's.
fn waits_since(begun: Option<&[Waits]>, now: Vec<Waits>) -> Result<Vec<Waits>, String> {
    let begun = begun.ok_or("their first reading failed")?;
    let key = |wait: &Waits| (wait.socket, wait.lock, wait.tid);
    let before: BTreeMap<_, &Waits> = begun.iter().map(|wait| (key(wait), wait)).into_map();
    let since = |wait: Waits| {
        let (waits, ns) = before.get(&key(&wait)).map_or((0, 0), |old| (old.waits, old.ns));
        Waits { waits: wait.waits.saturating_sub(waits), ns: wait.ns.saturating_sub(ns), ..wait }
    };
    Ok(now.into_iter().map(since).filter(|wait| wait.waits > 0).collect())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn told(error: HostError) -> String {
    error.to_string()
}

/// Every thread of these processes.
fn threads_of(pids: &[i32]) -> BTreeSet<i32> {
    let root = Root::host();
    pids.iter().flat_map(|pid| task::threads(&root, *pid).unwrap_or_default()).collect()
}

fn net_ns(charge: &Charge) -> u64 {
    charge.net_rx_ns + charge.net_tx_ns + charge.own_net_ns + charge.mixed_ns
}

/// Shares of each CPU's own window, and the tasks that are worth a row.
fn by_cpu(window: &Reading, traffic: &Traffic<'_>) -> (Vec<ProbedCpu>, Vec<ProbedTask>) {
    let (mut cpus, mut tasks) = (Vec::new(), Vec::new());
    for cpu in &window.cpus {
        let ns = cpu.end_ns.saturating_sub(cpu.start_ns).max(1) as f64;
        let ratio = |part: u64| part as f64 / ns;
        let rows = || window.tasks.iter().filter(|row| row.key.cpu == cpu.cpu);
        let sum = |of: &dyn Fn(&Charge) -> u64| rows().map(|row| of(&row.charge)).sum::<u64>();
        cpus.push(ProbedCpu {
            cpu: cpu.cpu,
            net_softirq_ratio: ratio(sum(&net_ns)),
            other_softirq_ratio: ratio(sum(&|c| c.other_softirq_ns + c.own_other_ns)),
            irq_ratio: ratio(sum(&|c| c.hardirq_ns)),
            interrupts_per_s: sum(&|c| c.interrupts) as f64 * 1e9 / ns,
        });
        tasks.extend(rows().filter(|row| row.key.pid != 0).map(|row| ProbedTask {
            tid: row.key.pid as i32,
            name: row.comm.clone(),
            cpu: cpu.cpu,
            part_of_path: is_receive_path(&row.comm)
                || traffic.workloads.contains(&(row.tgid as i32)),
            on_cpu_ratio: ratio(row.charge.on_cpu_ns),
            taken_ratio: ratio(row.charge.net_rx_ns + row.charge.net_tx_ns),
            waiting_ratio: ratio(row.charge.run_delay_ns),
        }));
    }
    tasks.retain(|task| task.on_cpu_ratio + task.waiting_ratio >= NOTEWORTHY_RATIO);
    tasks.sort_by_key(|task| (task.cpu, task.tid));
    (cpus, tasks)
}

fn contended(waits: &[Waits], readers: &BTreeSet<i32>, window_ns: f64) -> Vec<ContendedLock> {
    let mut locks: BTreeMap<(u64, &str), ContendedLock> = BTreeMap::new();
    for wait in waits {
        let lock = locks.entry((wait.socket, wait.lock)).or_insert_with(|| ContendedLock {
            lock: wait.lock.to_owned(),
            port: wait.port,
            ..ContendedLock::default()
        });
        let (tid, waited_ratio) = (wait.tid as i32, wait.ns as f64 / window_ns);
        lock.waits_count += wait.waits;
        lock.waited_ratio += waited_ratio;
        if readers.contains(&tid) {
            lock.readers.push(LockWaiter { tid, waited_ratio });
        }
    }
    // Sockets that others read are no part of this path.
    let mut ours: Vec<ContendedLock> =
        locks.into_values().filter(|lock| !lock.readers.is_empty()).collect();
    ours.sort_by(|a, b| {
        b.waited_ratio.total_cmp(&a.waited_ratio).then_with(|| a.lock.cmp(&b.lock))
    });
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(socket: u64, lock: &'static str, tid: u32, ns: u64) -> Waits {
        Waits { socket, lock, port: 4321, netns: 1, tid, waits: 2, ns }
    }

    #[test]
    fn waits_are_summed_by_lock_and_only_sockets_of_the_readers_count() {
        let waits = [
            wait(1, "reader_queue.lock", 10, 100),
            wait(1, "reader_queue.lock", 11, 300),
            wait(1, "sk_receive_queue.lock", 99, 50),
            wait(2, "reader_queue.lock", 99, 900),
        ];
        let locks = contended(&waits, &BTreeSet::from([10, 11]), 1000.0);
        let [lock] = locks.as_slice() else { panic!("{locks:?}") };
        assert_eq!((lock.lock.as_str(), lock.waits_count), ("reader_queue.lock", 4));
        assert!((lock.waited_ratio - 0.4).abs() < 1e-9);
        assert_eq!(lock.readers.len(), 2);
    }

    #[test]
    fn without_their_first_reading_a_window_has_no_waits() {
        let now = || vec![wait(1, "reader_queue.lock", 10, 100)];
        assert_eq!(waits_since(None, now()).unwrap_err(), "their first reading failed");
        assert_eq!(waits_since(Some(&[]), now()).unwrap(), now());
        assert!(waits_since(Some(&now()), now()).unwrap().is_empty());
    }

    #[test]
    fn without_probes_the_window_has_gaps_and_no_zeros() {
        let witness = Witness {
            account: Err("no BPF".into()),
            locks: Err("no BPF".into()),
            begun: None,
            begun_ns: 0,
            waited: None,
        };
        let probed = witness.end().of(&Traffic { workloads: &[], readers: &[] });
        assert!(probed.cpus.is_empty() && probed.tasks.is_empty() && probed.locks.is_none());
        assert_eq!(probed.gaps.len(), 2);
    }
}
