//! How a conductor (a command, a test, the lab) controls a running workload of any protocol, on either side.

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rxpath_core::Warning;
use rxpath_host::{HostError, thread as host_thread};
use rxpath_stats::Histogram;
use serde::Serialize;

use crate::LoadError;
use crate::engine::thread;
use crate::tally::{Shared, Tally};

/// A workload whose sockets are open and whose threads wait for the start.
pub trait Workload {
    /// What is really in force.
    type Settings: Serialize;
    /// What comes out.
    type Result: Serialize;
    /// A reading of cumulative counters: any two readings give a rate.
    type Interval: Progress + Serialize + Clone;

    /// Name in the schema id: `serve-udp`, `load-http`.
    const NAME: &'static str;

    /// The effective settings.
    fn settings(&self) -> &Self::Settings;
    /// What was noticed while setting up.
    fn warnings(&self) -> &[Warning];
    /// Ids of the worker threads.
    fn tids(&self) -> Vec<i32>;
    /// Starts the workers at this instant of `CLOCK_MONOTONIC`; a past one means now.
    fn start(&mut self, t_ns: u64);
    /// Counters of this moment.
    fn interval(&self) -> Self::Interval;
    /// Datagrams, requests, transactions or bytes so far: what the rate of the result counts.
    fn done(&self) -> u64;
    /// The instant of the first datagram, request or byte, when there was one.
    fn first_ns(&self) -> Option<u64>;
    /// End of the time that the result's rate covers: the last datagram, request or byte so far.
    fn last_ns(&self) -> Option<u64>;
    /// Tells the workers to stop; returns at once.
    fn stop(&self);
    /// Whether all workers have come to their end.
    fn is_done(&self) -> bool;
    /// Waits for the workers (after [`Workload::stop`] or [`Workload::is_done`]) and adds up.
    ///
    /// The sockets stay open until the workload is dropped.
    fn finish(&mut self) -> Result<Finished<Self::Result>, LoadError>;
}

/// A reading of a workload's cumulative counters.
pub trait Progress {
    /// `CLOCK_MONOTONIC` at the reading.
    fn t_ns(&self) -> u64;
}

/// A workload's end.
#[derive(Clone, Debug)]
pub struct Finished<R> {
    /// What came out.
    pub result: R,
    /// What to know before trusting it.
    pub warnings: Vec<Warning>,
    /// Times behind the quantiles of the result, so that trials can be merged instead of averaged; the quantiles of
    /// `service_time` are the result's `service_time_us`.
    pub histograms: Vec<(&'static str, Histogram)>,
}

impl<R> Finished<R> {
    /// Without empty histograms.
    #[must_use]
    pub fn with_samples(mut self) -> Self {
        self.histograms.retain(|(_, histogram)| histogram.count() > 0);
        self
    }
}

/// A worker's thread; it gives what the worker saw.
pub(crate) type Worker<R> = JoinHandle<Result<R, LoadError>>;
/// Where a worker reports that it is ready, or why it cannot start.
pub(crate) type Ready = SyncSender<Result<(), LoadError>>;

/// Starts a worker's thread and waits until the worker is ready.
///
/// **Errors** why it cannot start; its thread has ended then. The workers before it are stopped by dropping the
/// workload.
pub(crate) fn start_worker<R: Send + 'static>(
    name: &str,
    tally: &Tally,
    run: impl FnOnce(&Ready) -> Result<R, LoadError> + Send + 'static,
) -> Result<Worker<R>, LoadError> {
    thread::allow_wake();
    let (ready, is_ready) = sync_channel(1);
    let worker = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(&ready))
        .map_err(|e| LoadError::io(format!("start the thread {name}"), e))?;
    tally.started.store(true, SeqCst);
    let refused = match is_ready.recv() {
        Ok(Ok(())) => return Ok(worker),
        Ok(Err(error)) => Some(error),
        Err(_) => None,
    };
    // It ends by itself. Its return value adds nothing to its report, unless it reported nothing.
    let ended = worker.join();
    Err(refused.or_else(|| ended.ok()?.err()).unwrap_or_else(|| {
        LoadError::io(format!("start the thread {name}"), io::Error::other("it exited at once"))
    }))
}

/// Interrupts the workers' blocking calls until all that were started have left their loops.
///
/// Once is not enough: a signal that arrives just before a call blocks interrupts nothing, so it is sent again soon.
/// There is no deadline: a worker keeps its results until it has ended, so a caller would wait for them anyway.
pub(crate) fn wake_until_done(shared: &Shared) {
    use std::sync::atomic::Ordering::Relaxed;
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
pub(crate) struct DoneGuard<'a>(pub(crate) &'a Tally);

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, SeqCst);
    }
}

/// Refuses CPUs that are offline or outside the cpuset.
pub(crate) fn check_cpus(cpus: &[u32]) -> Result<(), LoadError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let allowed = host_thread::allowed_cpus().map_err(|error| refused("--cpu", error))?;
    match cpus.iter().find(|cpu| !allowed.as_slice().contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(LoadError::usage(
            format!(
                "--cpu {cpu}: not online, or outside this process's cpuset (allowed: {allowed})"
            ),
            "choose an allowed CPU, or change the cpuset of the cgroup",
        )),
    }
}

/// Binds the calling worker to its CPU and sets its nice value.
pub(crate) fn place(cpu: Option<u32>, nice: Option<i32>) -> Result<(), LoadError> {
    if let Some(cpu) = cpu {
        host_thread::pin(cpu).map_err(|error| refused(&format!("--cpu {cpu}"), error))?;
    }
    if let Some(nice) = nice {
        host_thread::set_nice(0, nice)
            .map_err(|error| refused(&format!("--nice {nice}"), error))?;
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
    use std::sync::Arc;

    use super::*;
    use crate::pace::wait_for_start;

    /// Starts workers up to the first that refuses; what a workload does then when it is dropped.
    fn start_and_drop(workers: usize, refuses: usize) -> LoadError {
        let shared = Arc::new(Shared::new(workers));
        let mut started = Vec::new();
        let mut refusal = None;
        for index in 0..workers {
            let own = Arc::clone(&shared);
            let worker =
                start_worker(&format!("test-{index}"), &shared.tallies[index], move |ready| {
                    let tally = &own.tallies[index];
                    let _done = DoneGuard(tally);
                    if index == refuses {
                        return Err(LoadError::usage("no", ""));
                    }
                    tally.tid.store(thread::id(), SeqCst);
                    let _ = ready.send(Ok(()));
                    Ok(wait_for_start(&own))
                });
            match worker {
                Ok(worker) => started.push(worker),
                Err(error) => {
                    refusal = Some(error);
                    break;
                }
            }
        }
        shared.stop.store(true, SeqCst);
        wake_until_done(&shared);
        for worker in started {
            assert_eq!(worker.join().unwrap().unwrap(), None);
        }
        refusal.unwrap()
    }

    #[test]
    fn workers_that_never_ran_are_not_waited_for() {
        for refuses in 0..3 {
            // The worker's own reason, not that its thread has ended.
            assert_eq!(start_and_drop(3, refuses).to_string(), "no");
        }
    }
}
