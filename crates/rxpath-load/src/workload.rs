//! What a conductor (a command, a test, the lab) can do with a running workload of any protocol, either side.

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
    /// Counters of a moment, cumulative: any two of them give a rate.
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
    /// The instant of the first datagram, request or byte, when there was one.
    fn first_ns(&self) -> Option<u64>;
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
    /// Datagrams, requests, transactions or bytes so far: what the protocol counts first.
    fn done(&self) -> u64;
}

/// A workload's end.
#[derive(Clone, Debug)]
pub struct Finished<R> {
    /// What came out.
    pub result: R,
    /// What to know before trusting it.
    pub warnings: Vec<Warning>,
    /// Times behind the quantiles of the result, by name, so that trials can be merged instead of averaged.
    pub histograms: Vec<(&'static str, Histogram)>,
}

impl<R> Finished<R> {
    /// Without the histograms that nothing was recorded in.
    #[must_use]
    pub fn with_samples(mut self) -> Self {
        self.histograms.retain(|(_, histogram)| histogram.count() > 0);
        self
    }
}

/// Interrupts the workers' blocking calls until all have left their loops.
///
/// Once is not enough: a signal that comes just before a call blocks interrupts nothing, so it is sent again soon. There is
/// no deadline: a worker's results are its own until it has ended, and whoever waits for them would wait all the same.
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
        self.0.done.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Refuses CPUs that are offline or outside of the cpuset.
pub(crate) fn check_cpus(cpus: &[u32]) -> Result<(), LoadError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let allowed = host_thread::allowed_cpus().map_err(|error| refused("--cpu", error))?;
    match cpus.iter().find(|cpu| !allowed.as_slice().contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(LoadError::usage(
            format!(
                "--cpu {cpu}: not online or outside of this process' cpuset (allowed: {allowed})"
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

/// A refusal of the host layer in this crate's words.
fn refused(option: &str, error: HostError) -> LoadError {
    match error {
        HostError::Denied { .. } => {
            LoadError::Denied { what: option.into(), needs: "CAP_SYS_NICE" }
        }
        other => LoadError::usage(format!("{option}: {other}"), ""),
    }
}
