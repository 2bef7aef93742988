//! A deep look: what `rxpath diagnose --no-bpf` sees in some seconds, in a thread of its own next to a live view.
//!
//! It sends nothing, loads nothing and needs no capability. In addition to a window of the live view it has the sockets' queues
//! every 20 ms, every thread of the machine, the quotas of control groups, and the owners of all sockets that this user may see.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rxpath_bpf::cost::own_cpu;
use rxpath_host::Root;
use rxpath_host::procfs::schedstat;
use rxpath_host::thread::current_tid;
use rxpath_record::verdict::Verdict;

use crate::live::{Ask, watch};

/// Lists of UDP's sockets take 5 % of a CPU at most, as those of TCP's do.
const UDP_PAUSE: u32 = 20;

/// A deep look that is being made.
#[derive(Debug)]
pub struct DeepLook {
    thread: JoinHandle<(Result<Verdict, String>, Duration)>,
    /// Its thread's number, 0 until it runs.
    tid: Arc<AtomicI32>,
    /// CPU time that was charged so far.
    charged: Duration,
}

/// The end of a deep look.
#[derive(Debug)]
pub struct DeepSeen {
    /// The verdict, or why there is none.
    pub verdict: Result<Verdict, String>,
    /// CPU time of the whole.
    pub cpu: Duration,
    /// The part of it that was not charged yet.
    pub uncharged: Duration,
}

impl DeepLook {
    /// Begins one of this length, in the caller's network namespace.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(length: Duration) -> io::Result<Self> {
        let tid = Arc::new(AtomicI32::new(0));
        let own_tid = Arc::clone(&tid);
        let thread = Builder::new().name("rxpath-deep".into()).spawn(move || {
            own_tid.store(current_tid(), Ordering::Relaxed);
            let ask = Ask { length, port: None, probes: false, only: None, udp_pause: UDP_PAUSE };
            let seen = watch(&ask, &AtomicBool::new(false), || {});
            let verdict = seen.map(|seen| rxpath_diagnose::diagnose(&seen.evidence));
            (verdict.map_err(|error| error.to_string()), own_cpu())
        })?;
        Ok(Self { thread, tid, charged: Duration::ZERO })
    }

    /// Whether its end is there to be taken.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// CPU time since the last call. Where the kernel has no scheduler statistics all of it comes with the end.
    pub fn charge(&mut self) -> Duration {
        let (pid, tid) = (std::process::id() as i32, self.tid.load(Ordering::Relaxed));
        let time = schedstat::read(&Root::host(), pid, tid).unwrap_or_default();
        let new = Duration::from_nanos(time.run_ns).saturating_sub(self.charged);
        self.charged += new;
        new
    }

    /// Waits for its end.
    pub fn end(self) -> DeepSeen {
        let charged = self.charged;
        let panicked = |_| (Err("its thread panicked".to_owned()), charged);
        let (verdict, cpu) = self.thread.join().unwrap_or_else(panicked);
        let uncharged = cpu.saturating_sub(charged);
        DeepSeen { verdict, cpu, uncharged }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_deep_look_ends_with_a_verdict_and_its_cpu_time_is_charged_once() {
        let _socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut look = DeepLook::begin(Duration::from_millis(200)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut charged = Duration::ZERO;
        while !look.is_over() {
            assert!(Instant::now() < deadline, "{look:?}");
            charged += look.charge();
            // why: the pace of charging; the deadline above ends it.
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = look.end();
        assert!(seen.verdict.is_ok(), "{seen:?}");
        assert!(seen.cpu > Duration::ZERO && charged <= seen.cpu, "{charged:?} {seen:?}");
        assert_eq!(charged + seen.uncharged, seen.cpu);
    }
}
