//! Queues over time: every socket of the workload, the softnet counters and the run and wait time of the reader,
//! read about a thousand times a second by a thread of its own.
//!
//! The thread costs CPU time on the machine that it looks at; what it took, how many samples it missed and where it
//! ran stand next to the samples. It follows the first sockets only and says how many there were.

mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rxpath_core::{PathSide, Warning};
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::QueueAsk;
use rxpath_host::write::sched;
use rxpath_record::samples::TrialSamples;
use serde::{Deserialize, Serialize};

use self::work::Work;
use crate::testbed::ring::Ring;
use crate::testbed::seat::Seat;

/// What of a trial is to be sampled.
pub struct Sampled {
    /// Time from sample to sample.
    pub interval_ns: u64,
    /// Port of the receiver.
    pub port: u16,
    /// TCP instead of UDP.
    pub tcp: bool,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// Threads of each program: process and thread id.
    pub threads: Vec<(Seat, Vec<(i32, i32)>)>,
    /// The ring between the sides, where it can be seen.
    pub ring: Option<Ring>,
}

/// The open sources of a sampler.
#[derive(Default)]
pub struct SamplerSources {
    /// Time from sample to sample.
    pub interval_ns: u64,
    /// A `sock_diag` socket of each side's namespace, with the sockets that belong to the workload.
    pub sockets: Vec<(PathSide, Netlink, QueueAsk)>,
    /// Threads by side: process and thread id.
    pub threads: Vec<(PathSide, Vec<(i32, i32)>)>,
    /// The ring between the sides, where it can be seen.
    pub ring: Option<Ring>,
}

/// Which sockets of a side belong to a workload whose receiver is at `port`; none of a sender of datagrams, whose queue is
/// the receiver's.
pub fn queue_ask(side: PathSide, port: u16, tcp: bool, v6: bool) -> Option<QueueAsk> {
    match side {
        PathSide::Rx => Some(QueueAsk { tcp, v6, local_port: port, remote_port: 0 }),
        PathSide::Tx if tcp => Some(QueueAsk { tcp, v6, local_port: 0, remote_port: port }),
        _ => None,
    }
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledQueues {
    /// The samples, if the sampler did not fail.
    pub samples: Option<TrialSamples>,
    /// What it could not read.
    pub warning: Option<Warning>,
    /// What makes the window worthless, in words.
    #[serde(default)]
    pub faults: Vec<String>,
}

/// A running sampler, wherever it runs.
pub trait Sampling {
    /// Ends it and gives what it read.
    fn finish(self: Box<Self>) -> SampledQueues;
}

/// A running sampler of this host.
pub struct Sampler {
    shared: Arc<Shared>,
    thread: JoinHandle<TrialSamples>,
}

/// What both sides of the thread see.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    samples_count: AtomicU64,
}

impl Sampler {
    /// Starts sampling at once.
    pub fn start(target: SamplerSources) -> Self {
        let shared = Arc::<Shared>::default();
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            // Only a name: without it the samples are the same.
            let _ = sched::set_name("rxp-sampler");
            Work::new(target).run(&seen)
        });
        Self { shared, thread }
    }
}

impl Sampling for Sampler {
    fn finish(self: Box<Self>) -> SampledQueues {
        self.shared.stop.store(true, Ordering::Relaxed);
        let Ok(samples) = self.thread.join() else {
            let text = "the sampler ended early: queues over time are missing for this trial";
            let warning = Some(Warning::new("no-samples", text));
            return SampledQueues { warning, ..SampledQueues::default() };
        };
        let (failed, all) = (samples.cost.failed_reads_count, samples.cost.samples_count);
        let warning = (failed > 0).then(|| {
            let text = format!("{failed} reads of the sockets' queues failed in {all} samples");
            Warning::new("samples-incomplete", text)
                .because("they are gaps in the record, not zeros")
        });
        SampledQueues { samples: Some(samples), warning, faults: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use rxpath_host::read::thread;

    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn a_reader_that_stalls_shows_in_the_queue_and_one_that_reads_empties_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut server = listener.accept().unwrap().0;
        let ask = QueueAsk { tcp: true, v6: false, local_port: port, remote_port: 0 };
        let me = (std::process::id() as i32, thread::current_tid());
        let running = Sampler::start(SamplerSources {
            interval_ns: 1_000_000,
            sockets: vec![(PathSide::Rx, Netlink::sock_diag().unwrap(), ask)],
            threads: vec![(PathSide::Rx, vec![me])],
            ring: None,
        });
        let mut check = Netlink::sock_diag().unwrap();
        let mut wait = |bytes: u32| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while check.queues(ask).unwrap()[0].unread_bytes != bytes {
                assert!(Instant::now() < deadline, "never {bytes} unread bytes");
                std::thread::yield_now();
            }
            // The sample that was being taken may be from before; the one after it is not.
            let taken = || running.shared.samples_count.load(Ordering::Acquire);
            let enough = taken() + 2;
            while taken() < enough {
                assert!(Instant::now() < deadline, "the sampler stands still");
                std::thread::yield_now();
            }
        };
        client.write_all(&[1; 4000]).unwrap();
        wait(4000);
        server.read_exact(&mut [0; 4000]).unwrap();
        wait(0);
        let SampledQueues { samples, warning, .. } = Box::new(running).finish();
        assert_eq!(warning, None);
        let samples = samples.unwrap();
        let column = |entity: &str, metric: &str| {
            let found = samples.series.iter().find(|s| s.entity == entity && s.metric == metric);
            found.unwrap_or_else(|| panic!("{entity} {metric}")).values.clone()
        };
        let unread = column("socket0", "unread_bytes");
        assert!(unread.contains(&Some(4000)), "{unread:?}");
        assert_eq!(unread.last(), Some(&Some(0)));
        assert!(column("thread0", "run_ns").iter().flatten().count() > 0);
        assert!(samples.series.iter().all(|series| series.values.len() == samples.t_ns.len()));
        assert_eq!(samples.cost.samples_count as usize, samples.t_ns.len());
        assert!(samples.cost.cpu_s > 0.0 && !samples.cost.cpus.is_empty());
    }

    #[test]
    fn sockets_are_those_of_the_port_at_the_end_where_it_is() {
        let ports = |side, tcp| {
            let ask = queue_ask(side, 4321, tcp, false)?;
            assert_eq!((ask.tcp, ask.v6), (tcp, false));
            Some((ask.local_port, ask.remote_port))
        };
        assert_eq!(ports(PathSide::Rx, false), Some((4321, 0)));
        assert_eq!(ports(PathSide::Rx, true), Some((4321, 0)));
        assert_eq!(ports(PathSide::Tx, true), Some((0, 4321)));
        assert_eq!(ports(PathSide::Tx, false), None);
    }

    #[test]
    fn a_queue_that_cannot_be_read_is_a_gap_and_not_empty() {
        // A socket of another netlink family refuses every question about sockets.
        let deaf = Netlink::netfilter().unwrap();
        let ask = QueueAsk { tcp: false, v6: false, local_port: 1, remote_port: 0 };
        let running = Sampler::start(SamplerSources {
            interval_ns: 1_000_000,
            sockets: vec![(PathSide::Rx, deaf, ask)],
            threads: Vec::new(),
            ring: None,
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        while running.shared.samples_count.load(Ordering::Acquire) == 0 {
            assert!(Instant::now() < deadline, "the sampler stands still");
            std::thread::yield_now();
        }
        let SampledQueues { samples, warning, .. } = Box::new(running).finish();
        let samples = samples.unwrap();
        let queues = samples.series.iter().filter(|series| series.entity == "all");
        assert_eq!(queues.count(), 0, "{:?}", samples.series);
        assert_eq!(samples.cost.failed_reads_count, samples.cost.samples_count);
        let text = warning.unwrap().to_string();
        assert!(text.contains("reads of the sockets' queues failed"), "{text}");
    }

    #[test]
    fn a_sampler_that_ended_early_leaves_no_empty_record() {
        let thread = std::thread::spawn(|| -> TrialSamples { panic!("on purpose") });
        let found = Box::new(Sampler { shared: Arc::default(), thread }).finish();
        assert_eq!(found.samples, None);
        assert_eq!(found.warning.unwrap().code, "no-samples");
    }
}
