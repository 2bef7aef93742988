//! A deep look: what `rxpath diagnose` sees in some seconds, in a thread of its own next to a live view.
//!
//! It sends nothing, loads nothing and needs no capability. In addition to a window of the live view it has the sockets' queues
//! every 20 ms, every thread of the machine, the quotas of control groups, and the owners of all sockets that this user may see.
//! With [`Programs`] it has who reads which UDP socket, so also readers that are hidden from this user, and the waits for its lock.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rxpath_bpf::cost::own_cpu;
use rxpath_host::Root;
use rxpath_host::read::procfs::schedstat;
use rxpath_host::read::thread::current_tid;
use rxpath_record::verdict::DiagnosisVerdict;

use crate::live::{LiveRequest, Probes, watch_with};
pub use crate::live::{Programs, ProgramsCpu};

/// Programs are in their places for so long before the window: who reads in this time is measured in the window.
const BEFORE: Duration = Duration::from_millis(300);
/// Lists of UDP's sockets take 5 % of a CPU at most, as those of TCP's do.
const UDP_PAUSE: u32 = 20;

/// A deep look that is being made.
#[derive(Debug)]
pub struct DeepLook {
    thread: JoinHandle<DeepSeen>,
    /// Its thread's number, 0 until it runs.
    tid: Arc<AtomicI32>,
    /// CPU time that was charged so far.
    charged: Duration,
}

/// The end of a deep look.
#[derive(Debug)]
pub struct DeepSeen {
    /// The verdict, or why there is none.
    pub verdict: Result<DiagnosisVerdict, String>,
    /// CPU time of the whole: its thread and its programs.
    pub cpu: Duration,
    /// CPU time of its thread that was not charged yet.
    pub uncharged: Duration,
    /// CPU time of its programs, of which nothing was charged.
    pub programs_cpu: ProgramsCpu,
    /// Kernel memory of the maps of its programs at its end: what they hold comes on top of what they have between deep looks.
    pub map_bytes: u64,
    /// What it did not see because the kernel refused programs their places, with the reason. The next one tries again.
    pub refused: BTreeMap<&'static str, String>,
    /// For the next one.
    pub programs: Programs,
}

impl DeepLook {
    /// Begins one of this length, in the caller's network namespace. It takes these programs.
    ///
    /// # Errors
    /// When no thread can be started. The programs are still there then.
    pub fn begin(length: Duration, programs: &mut Option<Programs>) -> io::Result<Self> {
        Self::begin_as(Builder::new().name("rxpath-deep".into()), length, programs)
    }

    fn begin_as(
        builder: Builder,
        length: Duration,
        programs: &mut Option<Programs>,
    ) -> io::Result<Self> {
        let tid = Arc::new(AtomicI32::new(0));
        let own_tid = Arc::clone(&tid);
        // What a thread owns is dropped where the thread cannot be started. It gets the programs once it runs: without
        // capabilities they cannot be loaded again.
        let (give, given) = mpsc::channel();
        let thread = builder.spawn(move || {
            own_tid.store(current_tid(), Ordering::Relaxed);
            let programs: Option<Programs> = given.recv().ok().flatten();
            look(length, programs.unwrap_or_else(|| Programs::none("none were loaded")))
        })?;
        // The thread waits for them.
        let _ = give.send(programs.take());
        Ok(Self { thread, tid, charged: Duration::ZERO })
    }

    /// Whether its end is there to be taken.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// CPU time of its thread since the last call. Where the kernel has no scheduler statistics all of it comes with the end.
    pub fn charge(&mut self) -> Duration {
        let (pid, tid) = (std::process::id() as i32, self.tid.load(Ordering::Relaxed));
        let time = schedstat::read(&Root::host(), pid, tid).unwrap_or_default();
        let new = Duration::from_nanos(time.run_ns).saturating_sub(self.charged);
        self.charged += new;
        new
    }

    /// Waits for its end.
    pub fn end(self) -> DeepSeen {
        let seen = self.thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        // The thread reads its time before its end, and `charge` may have read it after that.
        let thread_cpu = seen.cpu.max(self.charged);
        DeepSeen {
            cpu: thread_cpu + seen.programs_cpu.whole(),
            uncharged: thread_cpu.saturating_sub(self.charged),
            ..seen
        }
    }
}

/// What its thread leaves: all CPU time is that of the thread, and nothing is known of what was charged.
fn look(length: Duration, programs: Programs) -> DeepSeen {
    let before = programs.cpu();
    let (programs, mut refused) = programs.attached();
    let why_refused = std::mem::take(&mut refused.why);
    // why: the readers that `/proc` hides are those that read in this time.
    std::thread::sleep(BEFORE);
    let ask = LiveRequest { length, port: None, probes: false, only: None, udp_pause: UDP_PAUSE };
    let mut probes = Probes::of(programs);
    let seen = watch_with(&ask, &mut probes, &AtomicBool::new(false), || {});
    let mut programs = probes.into_programs().with(refused);
    let map_bytes = programs.map_bytes();
    programs.detach();
    let programs_cpu = programs.cpu().since(before);
    let verdict = seen.map(|seen| rxpath_diagnose::diagnose(&seen.evidence));
    let verdict = verdict.map_err(|error| error.to_string());
    let (cpu, uncharged, refused) = (own_cpu(), Duration::ZERO, why_refused);
    DeepSeen { verdict, cpu, uncharged, programs_cpu, map_bytes, refused, programs }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_deep_look_ends_with_a_verdict_and_its_cpu_time_is_charged_once() {
        let _socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut none = Some(Programs::none("not in this test"));
        let mut look = DeepLook::begin(Duration::from_millis(200), &mut none).unwrap();
        assert!(none.is_none());
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut charged = Duration::ZERO;
        while !look.is_over() {
            assert!(Instant::now() < deadline, "{look:?}");
            charged += look.charge();
            // why: the pace of charging; the deadline above ends it.
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = look.end();
        let programs = format!("{:?}", seen.programs);
        assert!(seen.verdict.is_ok() && programs.contains("not in this test"), "{seen:?}");
        assert_eq!(seen.programs_cpu, ProgramsCpu::default());
        // What never loaded is not refused again and again.
        assert_eq!((seen.map_bytes, seen.refused.len()), (0, 0));
        assert!(seen.cpu > Duration::ZERO && charged <= seen.cpu, "{charged:?} {seen:?}");
        assert_eq!(charged + seen.uncharged, seen.cpu);
    }

    #[test]
    fn what_was_charged_after_the_threads_own_reading_is_part_of_its_time() {
        let ms = Duration::from_millis;
        for (charged, uncharged, cpu) in [(ms(3), ms(2), ms(5)), (ms(6), ms(0), ms(6))] {
            let ended = DeepSeen {
                verdict: Err("none".into()),
                cpu: ms(5),
                uncharged: ms(0),
                programs_cpu: ProgramsCpu::default(),
                map_bytes: 0,
                refused: BTreeMap::new(),
                programs: Programs::none("not in this test"),
            };
            let thread = std::thread::spawn(move || ended);
            let seen = DeepLook { thread, tid: Arc::default(), charged }.end();
            assert_eq!((seen.uncharged, seen.cpu), (uncharged, cpu));
        }
    }

    #[test]
    fn where_no_thread_can_be_started_the_programs_stay_for_the_next_one() {
        let mut programs = Some(Programs::none("kept"));
        // More than there are addresses.
        let builder = Builder::new().stack_size(1 << 60);
        assert!(DeepLook::begin_as(builder, Duration::ZERO, &mut programs).is_err());
        assert!(programs.is_some());
    }
}
