//! Reads the machine around a window: CPU time per CPU, per workload thread and of everybody else.
//!
//! Two marks, one at each end of the window, give the shares. A mark costs some microseconds per thread of the
//! machine; nothing in the workload waits for it.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_host::Root;
use rxpath_host::read::clock::monotonic_ns;
use rxpath_host::read::cputime::CpuTimes;
use rxpath_host::read::procfs::schedstat::{self, SchedStat};
use rxpath_host::read::procfs::task;
use rxpath_host::read::thread::ended::Processes;
use rxpath_host::read::thread::usage::{Sample, Usage};
use rxpath_record::evidence::{CpuUse, Halt};
use serde::{Deserialize, Serialize};

/// Who is part of what is measured: their CPU time is not foreign.
#[derive(Clone, Debug, Default)]
pub struct Ours {
    /// This process and the workloads.
    pub pids: Vec<i32>,
    /// Processes that a workload started, each with the workload's own pid.
    pub children: BTreeMap<i32, i32>,
}

impl Ours {
    /// This process and the workloads `leaders`, each with what it started: a foreign program may have forked its
    /// workers.
    pub fn with_children(own: i32, leaders: &[i32]) -> Self {
        let root = Root::host();
        let families = leaders
            .iter()
            .filter(|pid| **pid > 0)
            .map(|leader| (*leader, task::family(&root, *leader)));
        let children: BTreeMap<i32, i32> = families
            .flat_map(|(leader, pids)| pids.into_iter().map(move |pid| (pid, leader)))
            .into_map();
        let mut pids = vec![own];
        pids.extend(leaders.iter().filter(|leader| !children.contains_key(leader)));
        pids.extend(children.keys().copied());
        Self { pids, children }
    }

    fn leader(&self, pid: i32) -> i32 {
        self.children.get(&pid).copied().unwrap_or(pid)
    }
}

/// One reading of the CPU times of the machine: a mark at one end of a window.
#[derive(Clone, Debug)]
pub struct CpuSnapshot {
    /// `CLOCK_MONOTONIC` of the reading.
    pub t_ns: u64,
    cpus: Option<CpuTimes>,
    everybody: Option<Everybody>,
    threads: BTreeMap<i32, Seen>,
}

/// What the whole machine had used at a mark: by thread, and by process for those that end.
#[derive(Clone, Debug)]
struct Everybody {
    threads: Sample,
    processes: Processes,
}

impl Everybody {
    fn take(root: &Root) -> Option<Self> {
        Some(Self { threads: Sample::take(root).ok()?, processes: Processes::take(root).ok()? })
    }

    /// What ran since, and of that the share of the span by programs that are gone.
    fn until_now(&self, root: &Root, ours: &Ours) -> Option<(Usage, f64)> {
        let (usage, _) = self.threads.until_now(root).ok()?;
        let ended_ns = self.processes.ended_ns(&Processes::take(root).ok()?, &ours.pids);
        let share = ended_ns as f64 / usage.span_ns.max(1) as f64;
        Some((usage, share))
    }
}

/// One thread at a mark.
#[derive(Clone, Debug)]
struct Seen {
    name: String,
    cpu: u32,
    time: SchedStat,
    leader: i32,
    /// `R`, `S`, `T`, ...
    state: char,
}

impl CpuSnapshot {
    /// Reads the machine now. What cannot be read is missing from the difference, never zero in it.
    pub fn take(ours: &Ours) -> Self {
        Self { everybody: Everybody::take(&Root::host()), ..Self::of_ours(ours) }
    }

    /// Without the threads of everybody else, whose reading is most of the cost: for the end of a window, and for its begin where
    /// foreign load is not wanted.
    pub fn of_ours(ours: &Ours) -> Self {
        let root = Root::host();
        let t_ns = monotonic_ns();
        let cpus = CpuTimes::read(&root).ok();
        let mut threads = BTreeMap::new();
        for pid in &ours.pids {
            for tid in task::threads(&root, *pid).unwrap_or_default() {
                if let (Ok(stat), Ok(time)) =
                    (task::read(&root, *pid, Some(tid)), schedstat::read(&root, *pid, tid))
                {
                    let leader = ours.leader(*pid);
                    let (cpu, state) = (stat.processor, stat.state);
                    threads.insert(tid, Seen { name: stat.comm, cpu, time, leader, state });
                }
            }
        }
        Self { t_ns, cpus, everybody: None, threads }
    }
}

/// CPU time of one workload thread between two marks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// Thread name.
    pub name: String,
    /// CPU that it last ran on.
    pub last_cpu: u32,
    /// On a CPU, softirqs on top of it included, in ns.
    pub run_ns: u64,
    /// Runnable and waiting for a CPU, in ns.
    pub wait_ns: u64,
    /// Process id of the workload that it belongs to.
    pub leader: i32,
    /// What kept it from running at both ends.
    pub halted: Option<Halt>,
}

/// What happened between two marks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// The window.
    pub window_ns: [u64; 2],
    /// Every CPU.
    pub cpus: Vec<CpuUse>,
    /// Workload threads by thread id.
    pub threads: BTreeMap<i32, ThreadTime>,
    /// Foreign share of wall time per CPU and the name of the thread that took most; `None` = not readable.
    pub foreign: Option<BTreeMap<u32, (f64, String)>>,
    /// CPUs that work for the experiment's network card, by number; none where that is not looked at.
    #[serde(default)]
    pub device_cpus: Vec<u32>,
}

impl Between {
    /// The difference. What everybody has used since `from` is read now, so `to` must be fresh.
    pub fn marks(from: &CpuSnapshot, to: &CpuSnapshot, ours: &Ours) -> Self {
        let usage = from.everybody.as_ref().and_then(|all| all.until_now(&Root::host(), ours));
        let cpus = from.cpus.as_ref().zip(to.cpus.as_ref()).map(|(from, to)| to.since(from).cpus);
        // Without the CPUs nobody's share of them is known: that is no quiet machine.
        let usage = usage.filter(|_| cpus.is_some());
        let cpus = cpus.unwrap_or_default();
        let foreign: Option<BTreeMap<u32, (f64, String)>> = usage.map(|(usage, ended)| {
            let ended = spread(ended, &cpus, &usage);
            let on = |cpu: u32, ended| (cpu, with_ended(foreign(&usage, cpu, ours), ended));
            cpus.iter().zip(ended).map(|(cpu, ended)| on(cpu.cpu, ended)).collect()
        });
        let ratio = |cpu: u32| Some(foreign.as_ref()?.get(&cpu)?.0);
        let one = |cpu: CpuUse| CpuUse { foreign_ratio: ratio(cpu.cpu), ..cpu };
        let window_ns = to.t_ns.saturating_sub(from.t_ns);
        let threads = to
            .threads
            .iter()
            .filter_map(|(tid, now)| Some((*tid, since(from.threads.get(tid)?, now, window_ns))));
        let (cpus, threads) = (cpus.into_iter().map(one).collect(), threads.into_map());
        let device_cpus = Vec::new();
        Self { window_ns: [from.t_ns, to.t_ns], cpus, threads, foreign, device_cpus }
    }

    /// Length of the window.
    pub fn seconds(&self) -> f64 {
        self.window_ns[1].saturating_sub(self.window_ns[0]) as f64 / 1e9
    }
}

/// A wait counts when it ends (kernel/sched/stats.h `sched_info_arrive`). A thread that was runnable at both ends and whose
/// times hardly moved waited all the while: one that slept instead would have to wake up for both readings.
fn waited(from: &Seen, now: &Seen, window_ns: u64) -> u64 {
    let ran = now.time.run_ns.saturating_sub(from.time.run_ns);
    let waited = now.time.wait_ns.saturating_sub(from.time.wait_ns);
    let runnable = from.state == 'R' && now.state == 'R';
    if runnable && ran + waited < window_ns / 10 { window_ns - ran } else { waited }
}

fn since(from: &Seen, now: &Seen, window_ns: u64) -> ThreadTime {
    ThreadTime {
        name: now.name.clone(),
        last_cpu: now.cpu,
        run_ns: now.time.run_ns.saturating_sub(from.time.run_ns),
        wait_ns: waited(from, now, window_ns),
        leader: now.leader,
        halted: halt(from.state).filter(|halted| halt(now.state) == Some(*halted)),
    }
}

/// **Source** fs/proc/array.c `task_state_array`.
fn halt(state: char) -> Option<Halt> {
    match state {
        'T' => Some(Halt::Signal),
        't' => Some(Halt::Tracer),
        _ => None,
    }
}

/// Kernel threads that do the receive path's own work are part of what is measured, not foreign.
pub(crate) fn is_receive_path(name: &str) -> bool {
    name.starts_with("ksoftirqd/") || name.starts_with("napi/")
}

/// Share of the span that others took on `cpu`, and who took most.
fn foreign(usage: &Usage, cpu: u32, ours: &Ours) -> (f64, String) {
    let mut all_ns = 0;
    let mut most = (0, String::new());
    for thread in usage.foreign_on(cpu, &ours.pids).filter(|thread| !is_receive_path(&thread.comm))
    {
        all_ns += thread.run_ns;
        if thread.run_ns > most.0 {
            most = (thread.run_ns, thread.comm.clone());
        }
    }
    let share = if usage.span_ns == 0 { 0.0 } else { all_ns as f64 / usage.span_ns as f64 };
    (share, most.1)
}

/// Share of each CPU that ended programs took. The kernel does not record on which CPU they ran, so their time is spread
/// over the busy time that no living thread explains, and is never more than that.
///
/// **Caveat** a softirq on an idle CPU is busy time without a thread: such a CPU can be charged with what ran on another.
fn spread(ended: f64, cpus: &[CpuUse], usage: &Usage) -> Vec<f64> {
    let room = |cpu: &CpuUse| (cpu.busy_ratio() - usage.foreign_ratio(cpu.cpu, &[])).max(0.0);
    let room: Vec<f64> = cpus.iter().map(room).collect();
    let all: f64 = room.iter().sum();
    let part = if all > 0.0 { (ended / all).min(1.0) } else { 0.0 };
    room.into_iter().map(|room| room * part).collect()
}

/// Adds `ended`, and names it where it is more than what the others took together.
fn with_ended((share, most): (f64, String), ended: f64) -> (f64, String) {
    let most = if ended > share { "programs that ended meanwhile".to_owned() } else { most };
    (share + ended, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_host::read::thread::usage::ThreadCpuTime;

    #[test]
    fn what_a_workload_starts_is_ours_too() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let (leader, child): (i32, i32) = (shell.id() as i32, line.trim().parse().unwrap());
        let ours = Ours::with_children(std::process::id() as i32, &[leader]);
        let mark = CpuSnapshot::take(&ours);
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(child),
            nix::sys::signal::Signal::SIGKILL,
        )
        .unwrap();
        shell.wait().unwrap();
        assert_eq!(ours.children.get(&child), Some(&leader));
        assert_eq!(mark.threads[&child].leader, leader);
    }

    #[test]
    fn our_own_work_is_ours_and_not_foreign() {
        let ours = Ours::with_children(std::process::id() as i32, &[]);
        let from = CpuSnapshot::take(&ours);
        let until = monotonic_ns() + 50_000_000;
        while monotonic_ns() < until {
            std::hint::spin_loop();
        }
        let between = Between::marks(&from, &CpuSnapshot::of_ours(&ours), &ours);
        let me = nix::unistd::gettid().as_raw();
        assert!(between.threads.contains_key(&me));
        assert!(between.seconds() >= 0.05);
        let usage = from.everybody.as_ref().unwrap().until_now(&Root::host(), &ours).unwrap().0;
        assert!(usage.threads.iter().any(|thread| thread.tid == me));
        for cpu in &between.cpus {
            assert!(!usage.foreign_on(cpu.cpu, &ours.pids).any(|thread| thread.tid == me));
        }
    }

    #[test]
    fn programs_that_came_and_went_are_foreign() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "while :; do (i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done); done"])
            .spawn()
            .unwrap();
        let ours = Ours::with_children(std::process::id() as i32, &[]);
        let from = CpuSnapshot::take(&ours);
        let until = monotonic_ns() + 60_000_000_000;
        // Whatever else runs on this machine lives on.
        let found = loop {
            let between = Between::marks(&from, &CpuSnapshot::of_ours(&ours), &ours);
            let usage = from.everybody.as_ref().unwrap().until_now(&Root::host(), &ours);
            let usage = usage.unwrap().0;
            let living: f64 =
                between.cpus.iter().map(|cpu| foreign(&usage, cpu.cpu, &ours).0).sum();
            let is_long = between.seconds() > 0.3;
            let all: f64 = between.foreign.unwrap_or_default().values().map(|(it, _)| it).sum();
            let is_found = is_long && all > living + 0.05;
            if is_found || monotonic_ns() > until {
                break is_found;
            }
            std::thread::yield_now();
        };
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(found, "a storm of short programs was not seen");
    }

    #[test]
    fn what_ended_is_never_more_than_what_a_cpu_was_busy_with() {
        let cpu = |cpu, busy| CpuUse { cpu, idle_ratio: 1.0 - busy, ..CpuUse::default() };
        let thread = ThreadCpuTime { pid: 7, tid: 7, comm: "a".into(), last_cpu: 1, run_ns: 600 };
        let usage = Usage { span_ns: 1000, threads: vec![thread] };
        let cpus = [cpu(0, 0.3), cpu(1, 0.7), cpu(2, 0.0)];
        let near = |got: Vec<f64>, want: [f64; 3]| {
            assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{got:?}");
        };
        near(spread(0.2, &cpus, &usage), [0.15, 0.05, 0.0]);
        near(spread(5.0, &cpus, &usage), [0.3, 0.1, 0.0]);
        near(spread(0.0, &cpus, &usage), [0.0; 3]);
        assert_eq!(with_ended((0.1, "a".into()), 0.2).1, "programs that ended meanwhile");
        assert_eq!(with_ended((0.3, "a".into()), 0.2), (0.5, "a".to_owned()));
        near(spread(0.5, &[cpu(0, 0.0), cpu(1, 0.5), cpu(2, 0.0)], &usage), [0.0; 3]);
    }
}
