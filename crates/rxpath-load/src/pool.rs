//! The pool of worker threads of a workload: placed, started one by one, stopped and joined together.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rxpath_core::SchedClass;
use rxpath_host::HostError;
use rxpath_host::read::thread as host_thread;
use rxpath_host::write::sched;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::engine::{listen, thread};
use crate::pace::{Share, wait_for_start};
use crate::tally::{Shared, Tally};

/// Most threads of a workload: more than a machine has CPUs, and few enough to start within seconds.
const MOST_THREADS: usize = 4096;
/// File descriptors in addition to those of the threads: standard streams, signals, connections, files.
const OTHER_DESCRIPTORS: u64 = 32;

/// How many worker threads there are, and where they run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threads {
    /// Threads; with `cpus`, one per entry.
    #[serde(rename = "threads_count")]
    pub count: usize,
    /// CPU of each thread; empty = not pinned.
    pub cpus: Vec<u32>,
    /// Nice value of the threads, when set.
    pub nice: Option<i32>,
    /// Scheduler class of the threads, when set.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sched: Option<SchedClass>,
}

impl Default for Threads {
    fn default() -> Self {
        Self { count: 1, cpus: Vec::new(), nice: None, sched: None }
    }
}

impl Threads {
    /// Refuses no thread at all, more than can start, another number than that of the CPUs, and CPUs that are offline or
    /// outside the cpuset. `work` is what no thread would do; a thread needs at least `descriptors_each` file descriptors.
    pub(crate) fn check(&self, work: &str, descriptors_each: u64) -> Result<(), LoadError> {
        let (count, listed) = (self.count, self.cpus.len());
        if listed > 0 && listed != count {
            let what = format!("--threads {count} differs from the {listed} entries of --cpu");
            return Err(LoadError::usage(what, "--cpu alone gives one thread per entry"));
        }
        if count == 0 {
            let what = format!("--threads 0: no thread would {work}");
            return Err(LoadError::usage(what, "give at least 1"));
        }
        let limit = if descriptors_each > 0 { listen::raise_descriptor_limit()? } else { u64::MAX };
        self.fit(descriptors_each, limit)?;
        if self.cpus.is_empty() {
            return Ok(());
        }
        let allowed = host_thread::allowed_cpus().map_err(|error| refused("--cpu", error))?;
        let other = self.cpus.iter().find(|cpu| !allowed.as_slice().contains(cpu));
        let Some(cpu) = other else { return Ok(()) };
        let what = format!(
            "--cpu {cpu}: not online, or outside this process's cpuset (allowed: {allowed})"
        );
        Err(LoadError::usage(what, "choose an allowed CPU, or change the cpuset of the cgroup"))
    }

    /// Refuses more threads than can start in a process that may open `limit` file descriptors. One may always try.
    fn fit(&self, descriptors_each: u64, limit: u64) -> Result<(), LoadError> {
        let count = self.count;
        let open = limit.saturating_sub(OTHER_DESCRIPTORS).checked_div(descriptors_each);
        let most = open.map_or(MOST_THREADS, |most| most.clamp(1, MOST_THREADS as u64) as usize);
        if count <= most {
            return Ok(());
        }
        if most == MOST_THREADS {
            let what = format!("--threads {count}: at most {most} threads");
            let hint = "use fewer: more threads than CPUs compete for the same CPUs";
            return Err(LoadError::usage(what, hint));
        }
        Err(LoadError::usage(
            format!(
                "--threads {count}: at most {most} can start here: this process may open {limit} file descriptors \
                 (RLIMIT_NOFILE), and each thread needs {descriptors_each}"
            ),
            "use fewer threads, or raise the limit (`ulimit -Hn` as root, or LimitNOFILE= of the service)",
        ))
    }

    /// The part of `all` that belongs to a thread; the first threads take what does not divide.
    pub(crate) fn share(&self, all: u64, index: usize) -> u64 {
        let (index, threads) = (index as u64, self.count as u64);
        all / threads + u64::from(index < all % threads)
    }
}

/// The worker threads; each gives an `R` at its end. Dropping the pool stops and joins them.
#[derive(Debug)]
pub(crate) struct Pool<R> {
    pub(crate) shared: Arc<Shared>,
    name: &'static str,
    threads: Threads,
    workers: Vec<JoinHandle<Result<R, LoadError>>>,
}

/// A worker on its own thread, which is placed.
pub(crate) struct Start<'a> {
    pub(crate) index: usize,
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) tally: &'a Tally,
    /// CPU that the thread is pinned to.
    pub(crate) cpu: Option<u32>,
    ready: SyncSender<()>,
}

impl Start<'_> {
    /// Reports that the worker is ready. A worker that returns an error before this cannot start.
    pub(crate) fn ready(&self) {
        self.tally.tid.store(thread::id(), SeqCst);
        let _ = self.ready.send(());
    }

    /// This thread's part of a schedule of all threads, of which a send takes `each`.
    pub(crate) fn share(&self, rate_per_s: u64, each: usize) -> Share {
        Share::of(rate_per_s, each, (self.index, self.shared.tallies.len()))
    }

    /// Reports that the worker is ready and waits for the start; `None` when the stop comes first.
    pub(crate) fn ready_and_wait(&self) -> Option<u64> {
        self.ready();
        wait_for_start(self.shared, || ())
    }
}

impl<R: Send + 'static> Pool<R> {
    /// A pool of these threads, none of which runs yet.
    pub(crate) fn new(name: &'static str, threads: &Threads) -> Self {
        thread::allow_wake();
        let shared = Arc::new(Shared::new(threads.count));
        Self { shared, name, threads: threads.clone(), workers: Vec::new() }
    }

    /// Starts the next thread, places it and waits until the worker is ready.
    ///
    /// **Errors** why the worker cannot start; its thread has ended then.
    pub(crate) fn start(
        &mut self,
        run: impl FnOnce(&Start) -> Result<R, LoadError> + Send + 'static,
    ) -> Result<(), LoadError> {
        let index = self.workers.len();
        let (shared, nice, sched) =
            (Arc::clone(&self.shared), self.threads.nice, self.threads.sched);
        let cpu = self.threads.cpus.get(index).copied();
        let name = format!("{}-{index}", self.name);
        let (ready, is_ready) = sync_channel(1);
        let worker = std::thread::Builder::new().name(name.clone()).spawn(move || {
            let tally = &shared.tallies[index];
            let _done = DoneGuard(tally);
            place(cpu, nice, sched)?;
            run(&Start { index, shared: &shared, tally, cpu, ready })
        });
        let worker = worker.map_err(|e| LoadError::io(format!("start the thread {name}"), e))?;
        self.shared.tallies[index].started.store(true, SeqCst);
        if is_ready.recv().is_ok() {
            self.workers.push(worker);
            return Ok(());
        }
        // It ends by itself, with the reason.
        let refused = worker.join().ok().and_then(Result::err);
        Err(refused.unwrap_or_else(|| {
            LoadError::io(format!("start the thread {name}"), io::Error::other("it exited at once"))
        }))
    }

    /// Stops the workers and waits for them; the first error of one is the error of all.
    pub(crate) fn join(&mut self) -> Result<Vec<R>, LoadError> {
        self.shared.stop();
        wake_until_done(&self.shared);
        let joined = self.workers.drain(..).map(|worker| {
            let panicked = |_| LoadError::io("a worker thread", io::Error::other("it panicked"));
            worker.join().map_err(panicked)?
        });
        joined.collect()
    }
}

impl<R> Drop for Pool<R> {
    fn drop(&mut self) {
        self.shared.stop();
        wake_until_done(&self.shared);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

/// Interrupts the workers' blocking calls until all that were started have left their loops.
///
/// Once is not enough: a signal that arrives just before a call blocks interrupts nothing, so it is sent again soon.
/// There is no deadline: a worker keeps its results until it has ended, so a caller would wait for them anyway.
fn wake_until_done(shared: &Shared) {
    while !shared.all_done() {
        for tally in &shared.tallies {
            let tid = tally.tid.load(Relaxed);
            if tid != 0 && !tally.done.load(Relaxed) {
                thread::wake(tid);
            }
        }
        // why: the pace of waking; it ends when all threads are done.
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

/// Marks a worker as done when it ends, also by an error.
struct DoneGuard<'a>(&'a Tally);

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, SeqCst);
    }
}

/// Binds the calling worker to its CPU and sets its nice value and class.
fn place(cpu: Option<u32>, nice: Option<i32>, sched: Option<SchedClass>) -> Result<(), LoadError> {
    if let Some(cpu) = cpu {
        sched::pin(cpu).map_err(|error| refused(&format!("--cpu {cpu}"), error))?;
    }
    if let Some(nice) = nice {
        sched::set_nice(0, nice).map_err(|error| refused(&format!("--nice {nice}"), error))?;
    }
    if let Some(class) = sched {
        sched::set_class(0, class).map_err(|error| refused(&format!("--sched {class}"), error))?;
    }
    Ok(())
}

/// Converts an error of the host layer to one of this crate.
fn refused(option: &str, error: HostError) -> LoadError {
    match error {
        HostError::Denied { .. } => {
            LoadError::Denied { what: option.into(), needs: "CAP_SYS_NICE" }
        }
        other => LoadError::usage(format!("{option}: {other}"), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts workers up to the first that refuses, and drops the pool.
    fn start_and_drop(count: usize, refuses: usize) -> LoadError {
        let mut pool = Pool::new("test", &Threads { count, ..Threads::default() });
        let refusal = (0..count).find_map(|_| {
            let run = move |start: &Start| {
                if start.index == refuses {
                    return Err(LoadError::usage("no", ""));
                }
                Ok(start.ready_and_wait())
            };
            pool.start(run).err()
        });
        refusal.unwrap()
    }

    #[test]
    fn workers_that_never_ran_are_not_waited_for() {
        for refuses in 0..3 {
            // The worker's own reason, not that its thread has ended.
            assert_eq!(start_and_drop(3, refuses).to_string(), "no");
        }
    }

    #[test]
    fn a_stop_before_the_start_ends_all() {
        let mut pool = Pool::new("test", &Threads { count: 2, ..Threads::default() });
        for _ in 0..2 {
            pool.start(|start| Ok(start.ready_and_wait())).unwrap();
        }
        assert_eq!(pool.join().unwrap(), [None, None]);
    }

    #[test]
    fn threads_that_cannot_start_are_refused_with_the_most_that_can() {
        let fit = |count, each, limit| Threads { count, ..Threads::default() }.fit(each, limit);
        for (count, each, limit) in [(1, 3, 3), (MOST_THREADS, 0, 0), (300, 3, 932), (2, 1, 34)] {
            assert!(fit(count, each, limit).is_ok(), "{count} of {each} in {limit}");
        }
        for (count, each, limit, says) in [
            (100_000, 0, u64::MAX, "--threads 100000: at most 4096 threads"),
            (100_000, 3, 1 << 20, "--threads 100000: at most 4096 threads"),
            (301, 3, 932, "--threads 301: at most 300 can start here: this process may open 932 "),
            (2, 1, 8, "--threads 2: at most 1 can start here"),
        ] {
            let refused = fit(count, each, limit).unwrap_err();
            assert!(refused.is_usage() && refused.to_string().starts_with(says), "{refused}");
            assert!(refused.hint().is_some(), "{refused}");
        }
    }

    #[test]
    fn shares_add_up() {
        for (all, count) in [(10, 3), (3, 3), (100, 7)] {
            let threads = Threads { count, ..Threads::default() };
            let shares: Vec<u64> = (0..count).map(|index| threads.share(all, index)).collect();
            assert_eq!(shares.iter().sum::<u64>(), all);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
