//! The calling thread in a measured loop: where it runs, what CPU time it used, how it is woken.
//!
//! Placing a thread is the host layer's (`rxpath_host::read::thread`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{
    SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};

/// CPU time. **Unit** ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel, with the softirqs that ran on top.
    pub system_ns: u64,
}

impl CpuTime {
    /// The time used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

pub use rxpath_host::read::thread::current_tid as id;

/// The CPU this thread is on. **Cost** a few ns (rseq or vDSO).
#[inline]
pub fn cpu() -> u32 {
    // SAFETY: sched_getcpu has no arguments.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).unwrap_or(u32::MAX)
}

/// Lets timers of this thread fire when they are due, instead of up to 50 us later.
///
/// **Source** prctl(2) `PR_SET_TIMERSLACK`.
pub fn set_exact_timers() {
    // SAFETY: plain integers; a refusal leaves the default slack and does no harm.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

fn usage(who: UsageWho) -> CpuTime {
    let Ok(usage) = getrusage(who) else { return CpuTime::default() };
    let ns = |time: TimeVal| time.num_nanoseconds() as u64;
    CpuTime { user_ns: ns(usage.user_time()), system_ns: ns(usage.system_time()) }
}

/// CPU time of this thread. **Source** getrusage(2) `RUSAGE_THREAD`.
pub fn cpu_time() -> CpuTime {
    usage(UsageWho::RUSAGE_THREAD)
}

/// CPU time of the whole process. **Source** getrusage(2) `RUSAGE_SELF`.
pub fn process_cpu_time() -> CpuTime {
    usage(UsageWho::RUSAGE_SELF)
}

/// CPU time of a thread of this process, readable from any other; 0 when it is gone. **Unit** ns.
///
/// **Source** the thread's `CPUCLOCK_SCHED` (`MAKE_THREAD_CPUCLOCK`, include/linux/posix-timers_types.h).
pub fn cpu_clock_ns(tid: i32) -> u64 {
    const PER_THREAD_SCHED: libc::clockid_t = 6;
    let clock = (!tid << 3) | PER_THREAD_SCHED;
    let time = clock_gettime(ClockId::from_raw(clock));
    time.map_or(0, |time| time.num_nanoseconds() as u64)
}

/// Time that the thread which opened it ran, and time that it waited for a CPU.
///
/// **Source** `/proc/thread-self/schedstat`. The file stays open: to find it by its name takes longer than to read it, and workers
/// read it shortly before or after their start.
#[derive(Debug)]
pub struct RunAndWait(Option<File>);

impl RunAndWait {
    /// That of the calling thread.
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Both until now; `None` where the kernel does not keep them. **Unit** ns.
    pub fn read_ns(&self) -> Option<(u64, u64)> {
        // Three numbers of at most 20 digits.
        let mut bytes = [0; 64];
        let length = self.0.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        let mut words = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        Some((words.next()??, words.next()??))
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// Makes [`wake`] interrupt blocking calls: a handler for SIGURG that does nothing, without `SA_RESTART`.
pub fn allow_wake() {
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, so it is async-signal-safe; SIGURG is ignored by default and means nothing
    // to this program.
    let _ = unsafe { sigaction(Signal::SIGURG, &action) };
}

/// Interrupts the blocking call of a thread of this process; repeat it until the thread has answered.
pub fn wake(tid: i32) {
    // SAFETY: tgkill within this process; a thread that is gone gives ESRCH, which means done.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGURG) };
}

/// Interrupts the calling thread's calls from an instant of `CLOCK_MONOTONIC` on, every millisecond, until the timer is
/// dropped.
pub fn alarm_at(at_ns: u64) -> io::Result<Timer> {
    allow_wake();
    let notify =
        SigevNotify::SigevThreadId { signal: Signal::SIGURG, thread_id: id(), si_value: 0 };
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify))?;
    let again = TimeSpec::milliseconds(1);
    let first = TimeSpec::from_duration(Duration::from_nanos(at_ns.max(1)));
    let when = Expiration::IntervalDelayed(first, again);
    timer.set(when, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
    Ok(timer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// User and system together.
    fn total_ns(time: CpuTime) -> u64 {
        time.user_ns + time.system_ns
    }

    #[test]
    fn the_time_that_a_thread_ran_grows_from_reading_to_reading() {
        let schedstat = RunAndWait::of_this_thread();
        let (before, waited) = schedstat.read_ns().unwrap();
        let by_clock = cpu_clock_ns(id());
        while cpu_clock_ns(id()) < by_clock + 20_000_000 {}
        let (after, waited_since) = schedstat.read_ns().unwrap();
        // The kernel adds the current turn at its tick, of 10 ms at most.
        assert!(after >= before + 10_000_000, "{before} to {after}");
        assert!(waited_since >= waited);
    }

    #[test]
    fn waking_interrupts_a_sleep() {
        allow_wake();
        let (send, receive) = std::sync::mpsc::channel();
        let far = crate::engine::clock::now_ns() + 3_600_000_000_000;
        let sleeper = std::thread::spawn(move || {
            send.send(id()).unwrap();
            crate::engine::clock::sleep_until(far);
        });
        let tid = receive.recv().unwrap();
        while !sleeper.is_finished() {
            wake(tid);
            std::thread::yield_now();
        }
        sleeper.join().unwrap();
    }

    #[test]
    fn an_alarm_interrupts_a_sleep_at_its_instant() {
        let at = crate::engine::clock::now_ns() + 5_000_000;
        let _alarm = alarm_at(at).unwrap();
        crate::engine::clock::sleep_until(at + 3_600_000_000_000);
        assert!(crate::engine::clock::now_ns() >= at);
    }

    #[test]
    fn another_threads_clock_is_its_own() {
        let tid = id();
        let (before, mine) = (cpu_clock_ns(tid), total_ns(cpu_time()));
        // No thread has an id above PID_MAX_LIMIT, 4,194,304 (include/linux/threads.h).
        assert!(before > 0 && cpu_clock_ns(5_000_000) == 0);
        let seen = std::thread::spawn(move || cpu_clock_ns(tid)).join().unwrap();
        assert!(seen >= before && seen < mine + 10_000_000_000, "{before} {seen} {mine}");
    }

    #[test]
    fn work_shows_in_cpu_time() {
        let before = cpu_time();
        let mut x = 1u64;
        while total_ns(cpu_time().since(before)) < 1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(total_ns(process_cpu_time()) >= total_ns(cpu_time().since(before)));
    }
}
