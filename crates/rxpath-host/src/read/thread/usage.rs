//! Which threads of the whole machine used CPU between two samples: the search for foreign load.
//!
//! **Source** `/proc/PID/task/TID/schedstat`, and `stat` for those that ran.

use std::collections::HashMap;
use std::time::Instant;

use crate::read::procfs::{schedstat, task};
use crate::{HostError, Root};

/// CPU time of every thread at one moment.
///
/// **Cost** about 20 µs for each thread of the machine (measured: 2.3 ms for 110 threads, with other work).
#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    run_ns: HashMap<(i32, i32), u64>,
    /// Processes with many threads: their CPU time, by which a later sample sees that none of them ran.
    crowds: HashMap<i32, Crowd>,
}

/// A process with more threads is read as a whole first, where that is enough.
const MANY: usize = 16;

/// A process with many threads.
#[derive(Clone, Debug)]
struct Crowd {
    start_time: u64,
    /// User and system time of all its threads, in `USER_HZ`.
    ticks: u64,
    tids: Vec<i32>,
}

impl Crowd {
    fn of(root: &Root, pid: i32, tids: &[i32]) -> Option<Self> {
        let stat = task::read(root, pid, None).ok()?;
        let (start_time, ticks) = (stat.start_time, stat.utime + stat.stime);
        Some(Self { start_time, ticks, tids: tids.to_vec() })
    }
}

/// CPU time of one thread between two samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCpuTime {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Name of the thread.
    pub comm: String,
    /// CPU it ran on last; it may have run on others too.
    pub last_cpu: u32,
    /// Time on a CPU, softirqs that ran on top of it included, in ns.
    pub run_ns: u64,
}

/// What ran between two samples.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Time between the samples, in ns.
    pub span_ns: u64,
    /// Threads that used CPU, the largest first.
    ///
    /// **Caveat** a thread that began and ended in between is not seen, and one that ended leaves no trace
    /// ([`Processes`](super::ended::Processes) has what ended processes used); a thread that is running at the sample is
    /// up to one tick behind.
    pub threads: Vec<ThreadCpuTime>,
}

impl Sample {
    /// Takes a sample.
    ///
    /// **Errors** when `/proc` can't be listed or the kernel has no scheduler statistics at all.
    pub fn take(root: &Root) -> Result<Self, HostError> {
        Self::taken(root, None)
    }

    /// A sample; threads of processes that did not run since the one `before` are taken over from it.
    fn taken(root: &Root, before: Option<&Self>) -> Result<Self, HostError> {
        let at = Instant::now();
        let mut sample = Self { at, run_ns: HashMap::new(), crowds: HashMap::new() };
        let mut last_error = None;
        for pid in task::processes(root)? {
            let old = before.and_then(|sample| Some((sample, sample.crowds.get(&pid)?)));
            if old.is_some_and(|(before, crowd)| sample.keep(root, pid, before, crowd)) {
                continue;
            }
            let Ok(tids) = task::threads(root, pid) else { continue };
            // Before its threads: what it uses while they are read counts as moved at the next sample.
            let crowd = (tids.len() > MANY).then(|| Crowd::of(root, pid, &tids)).flatten();
            sample.crowds.extend(crowd.map(|crowd| (pid, crowd)));
            for tid in &tids {
                match schedstat::read(root, pid, *tid) {
                    Ok(stat) => drop(sample.run_ns.insert((pid, *tid), stat.run_ns)),
                    // Gone in between, or hidden by `hidepid`.
                    Err(error) => last_error = Some(error),
                }
            }
        }
        match last_error {
            Some(error) if sample.run_ns.is_empty() => Err(error),
            _ => Ok(Self { at: Instant::now(), ..sample }),
        }
    }

    /// Takes over what a process had before; whether it was idle.
    fn keep(&mut self, root: &Root, pid: i32, before: &Self, crowd: &Crowd) -> bool {
        let rests = task::read(root, pid, None).is_ok_and(|now| {
            now.start_time == crowd.start_time && now.utime + now.stime == crowd.ticks
        });
        if rests {
            let known = |tid: &i32| Some(((pid, *tid), *before.run_ns.get(&(pid, *tid))?));
            self.run_ns.extend(crowd.tids.iter().filter_map(known));
            self.crowds.insert(pid, crowd.clone());
        }
        rests
    }

    /// What ran since this sample, and the new sample.
    ///
    /// **Errors** as [`Sample::take`].
    pub fn until_now(&self, root: &Root) -> Result<(Usage, Self), HostError> {
        Ok(self.used_until(Self::take(root)?, root))
    }

    /// As [`Sample::until_now`], without reading the threads of large processes that were idle.
    ///
    /// **Caveat** a process of more than 16 threads counts as idle until it has used a tick (10 ms): what it used
    /// before is counted when that is seen. **Cost** of such a process one file.
    ///
    /// **Errors** as [`Sample::take`].
    pub fn movers_until_now(&self, root: &Root) -> Result<(Usage, Self), HostError> {
        Ok(self.used_until(Self::taken(root, Some(self))?, root))
    }

    fn used_until(&self, now: Self, root: &Root) -> (Usage, Self) {
        let mut threads = Vec::new();
        for ((pid, tid), run_ns) in &now.run_ns {
            let before = self.run_ns.get(&(*pid, *tid)).copied().unwrap_or(0);
            // A smaller value is another thread that got the same id.
            let used = if *run_ns >= before { run_ns - before } else { *run_ns };
            if used == 0 {
                continue;
            }
            if let Ok(stat) = task::read(root, *pid, Some(*tid)) {
                threads.push(ThreadCpuTime {
                    pid: *pid,
                    tid: *tid,
                    comm: stat.comm,
                    last_cpu: stat.processor,
                    run_ns: used,
                });
            }
        }
        threads.sort_by(|a, b| b.run_ns.cmp(&a.run_ns).then(a.tid.cmp(&b.tid)));
        let span_ns = now.at.duration_since(self.at).as_nanos() as u64;
        (Usage { span_ns, threads }, now)
    }
}

impl Usage {
    /// Threads on `cpu` that belong to none of the processes `own`, the largest first.
    pub fn foreign_on<'a>(
        &'a self,
        cpu: u32,
        own: &'a [i32],
    ) -> impl Iterator<Item = &'a ThreadCpuTime> {
        self.threads.iter().filter(move |t| t.last_cpu == cpu && !own.contains(&t.pid))
    }

    /// The share of the span that foreign threads used on `cpu`.
    pub fn foreign_ratio(&self, cpu: u32, own: &[i32]) -> f64 {
        let used: u64 = self.foreign_on(cpu, own).map(|t| t.run_ns).sum();
        if self.span_ns == 0 { 0.0 } else { used as f64 / self.span_ns as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::thread;
    use crate::write::sched;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_busy_thread_is_found_with_its_cpu() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let root = Root::host();
        let cpu = *thread::allowed_cpus().unwrap().as_slice().last().unwrap();
        let (tell, told) = mpsc::channel();
        let spinner = std::thread::spawn(move || {
            sched::pin(cpu).unwrap();
            sched::set_name("rxp-spin").unwrap();
            tell.send(thread::current_tid()).unwrap();
            while !STOP.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let tid = told.recv().unwrap();
        let before = Sample::take(&root).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let me = std::process::id() as i32;
        loop {
            let (usage, _) = before.until_now(&root).unwrap();
            if let Some(found) =
                usage.threads.iter().find(|t| t.tid == tid && t.run_ns > 20_000_000)
            {
                assert_eq!((found.pid, found.last_cpu, found.comm.as_str()), (me, cpu, "rxp-spin"));
                assert!(usage.foreign_on(cpu, &[]).any(|t| t.tid == tid));
                assert!(usage.foreign_ratio(cpu, &[]) > 0.0);
                assert!(!usage.foreign_on(cpu, &[me]).any(|t| t.tid == tid));
                break;
            }
            assert!(Instant::now() < deadline, "the spinner was not found");
            std::thread::yield_now();
        }
        STOP.store(true, Ordering::Relaxed);
        spinner.join().unwrap();
    }

    /// A process of `threads` threads in a made-up tree, each having run for `run_ns`.
    fn write_process(tree: &std::path::Path, (pid, threads): (i32, i32), ticks: u64, run_ns: u64) {
        let line = |id: i32| {
            format!(
                "{id} (crowd) S 1 42 42 0 -1 4194304 96 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 161101 3133440 360 \
                 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 0\n"
            )
        };
        let process = tree.join(format!("proc/{pid}"));
        for tid in pid..pid + threads {
            let dir = process.join(format!("task/{tid}"));
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("schedstat"), format!("{run_ns} 0 1\n")).unwrap();
            std::fs::write(dir.join("stat"), line(tid)).unwrap();
        }
        std::fs::write(process.join("stat"), line(pid)).unwrap();
    }

    #[test]
    fn threads_of_a_large_process_are_read_once_it_moved() {
        let dir = tempfile::tempdir().unwrap();
        write_process(dir.path(), (100, 20), 5, 1000);
        write_process(dir.path(), (900, 1), 5, 1000);
        let root = Root::tree(dir.path()).unwrap();
        let before = Sample::take(&root).unwrap();
        // Less than a tick: the large one is not looked at, the small one is.
        write_process(dir.path(), (100, 20), 5, 1200);
        write_process(dir.path(), (900, 1), 5, 1200);
        let (usage, rested) = before.movers_until_now(&root).unwrap();
        assert_eq!(usage.threads.iter().map(|used| used.tid).collect::<Vec<_>>(), [900]);
        assert_eq!(before.until_now(&root).unwrap().0.threads.len(), 21, "the other way reads all");
        write_process(dir.path(), (100, 20), 6, 1500);
        let (usage, _) = rested.movers_until_now(&root).unwrap();
        assert_eq!(usage.threads.len(), 20);
        assert!(usage.threads.iter().all(|used| used.run_ns == 500), "nothing is lost: {usage:?}");
    }

    #[test]
    fn a_tree_without_scheduler_statistics_is_an_error_and_not_an_idle_machine() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/12/task/12")).unwrap();
        let error = Sample::take(&Root::tree(dir.path()).unwrap()).unwrap_err();
        assert!(matches!(error, HostError::Missing { .. }), "{error}");
    }
}
