//! Waits for locks: only those that begin and end on one CPU are timed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::sync::Barrier;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread::{ScopedJoinHandle, scope};
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use rxpath_bpf::locks::Locks;
use rxpath_bpf::probe::Probe as _;
use rxpath_host::read::thread;

use crate::bed::until_within;
use crate::bypass::has_bpf;
use crate::skip::skip;

/// Waits that have begun and not ended: address of the lock and CPU, and when it began, by which two waits for a lock that is
/// taken often are not one.
fn unended(locks: &Locks) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    locks.loaded().entries("begun").unwrap().into_iter().collect()
}

/// Threads that write to the same files wait for the mutex of each file's position: they spin, sleep, and are moved to
/// another CPU meanwhile. Many files: a later wait for the same mutex on the same CPU would hide what was left.
fn contend_for_mutexes(cpus: &[u32]) {
    let files: Vec<File> = (0..200).map(|_| tempfile::tempfile_in("/dev/shm").unwrap()).collect();
    let tids: Vec<AtomicI32> = (0..4).map(|_| AtomicI32::new(0)).collect();
    let together = Barrier::new(tids.len());
    scope(|scope| {
        let writers: Vec<_> = tids
            .iter()
            .map(|tid| {
                let (files, together) = (&files, &together);
                scope.spawn(move || {
                    tid.store(gettid().as_raw(), SeqCst);
                    for mut file in files {
                        together.wait();
                        for _ in 0..400 {
                            file.write_all(&[0; 4096]).unwrap();
                            file.rewind().unwrap();
                        }
                    }
                })
            })
            .collect();
        for step in 0.. {
            if writers.iter().all(ScopedJoinHandle::is_finished) {
                break;
            }
            let mut only = CpuSet::new();
            only.set(cpus[step / tids.len() % 2] as usize).unwrap();
            // 0 is a thread that has not said who it is; the call would take it for this one. One that ended is no error.
            let tid = tids[step % tids.len()].load(SeqCst);
            if tid != 0 {
                let _ = sched_setaffinity(Pid::from_raw(tid), &only);
            }
        }
    });
}

#[test]
fn a_mutex_whose_waiter_sleeps_is_not_timed_as_a_spinlock() {
    if !has_bpf() {
        return;
    }
    let cpus = thread::allowed_cpus().unwrap().0;
    if cpus.len() < 2 {
        return skip("second_cpu", "one CPU: a waiter cannot move");
    }
    let locks = Locks::start().unwrap();
    contend_for_mutexes(&cpus);
    let first = unended(&locks);
    // A hypervisor may stop whoever has a spinlock that was waited for at the first reading.
    let limit = Duration::from_secs(10);
    until_within(limit, "the waits end", || unended(&locks).is_disjoint(&first));
}
