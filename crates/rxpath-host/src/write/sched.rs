//! Threads set up: CPUs, nice value, scheduler class, name.
//!
//! `sched_setaffinity` cuts a request down to the cpuset without a word, so each setter here reads back.

use rxpath_core::{CpuList, SchedClass};

use crate::HostError;
use crate::cpu_mask::{MAX_CPUS, Mask, WORDS, set_mask};
use crate::read::thread::{MAX_NAME_BYTES, affinity, allowed_cpus, nice_of};

/// Lets thread `tid` (0: the caller) run on `cpus` only, and gives what the kernel made of it.
///
/// The answer is smaller than the request when the cpuset or offline CPUs cut it down.
///
/// **Errors** [`HostError::Unsupported`] when no CPU of the list is online and inside the cpuset;
/// [`HostError::Kernel`] for a thread that is gone or someone else's.
pub fn set_affinity(tid: i32, cpus: &CpuList) -> Result<CpuList, HostError> {
    let what = || format!("run thread {tid} on CPU {cpus}");
    let mut mask: Mask = [0; WORDS];
    for cpu in cpus.as_slice() {
        let word = mask.get_mut(*cpu as usize / 64).ok_or_else(|| {
            HostError::unsupported(what(), format!("a CPU number below {MAX_CPUS}"))
        })?;
        *word |= 1 << (cpu % 64);
    }
    match set_mask(tid, &mask, &what()) {
        Ok(()) => affinity(tid),
        Err(HostError::Kernel { errno: libc::EINVAL, .. }) => {
            let needs = match allowed_cpus() {
                Ok(allowed) => format!("an online CPU inside this process's cpuset: {allowed}"),
                Err(_) => "an online CPU inside this process's cpuset".into(),
            };
            Err(HostError::Unsupported { what: what(), needs })
        }
        Err(other) => Err(other),
    }
}

/// Pins the caller to one CPU and makes sure that it runs there.
pub fn pin(cpu: u32) -> Result<(), HostError> {
    let granted = set_affinity(0, &CpuList(vec![cpu]))?;
    if granted.as_slice() == [cpu] {
        return Ok(());
    }
    let needs = format!("a kernel that keeps to it; it granted {granted}");
    Err(HostError::unsupported(format!("run on CPU {cpu}"), needs))
}

/// Names the caller, cut to `MAX_NAME_BYTES` at a character's end, and gives the name that it has now.
pub fn set_name(name: &str) -> Result<String, HostError> {
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let kept = name[..end].replace('\0', "?");
    let mut bytes = [0u8; MAX_NAME_BYTES + 1];
    bytes[..kept.len()].copy_from_slice(kept.as_bytes());
    // SAFETY: PR_SET_NAME reads at most 16 bytes up to a zero; `bytes` has 16 and the last one is zero.
    let result = unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
    if result == 0 {
        Ok(kept)
    } else {
        Err(HostError::last_os(format_args!("name the thread {kept}")))
    }
}

/// Sets the nice value of thread `tid` (0: the caller) and gives the value that it has now.
///
/// In Linux nice belongs to the thread, not to the process (setpriority(2), notes).
///
/// **Errors** [`HostError::Denied`] for a lower value than now without `CAP_SYS_NICE`.
pub fn set_nice(tid: i32, nice: i32) -> Result<i32, HostError> {
    let what = format!("set nice {nice} of thread {tid}");
    // SAFETY: no pointers.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, tid as libc::id_t, nice) };
    if result == 0 { nice_of(tid) } else { Err(refused(what)) }
}

/// Why the last call of the scheduler failed.
fn refused(what: String) -> HostError {
    match HostError::last_os(&what) {
        HostError::Kernel { errno: libc::EACCES | libc::EPERM, .. } => {
            HostError::Denied { what, capability: "CAP_SYS_NICE".into() }
        }
        other => other,
    }
}

/// Puts thread `tid` (0: the caller) into a scheduler class (sched(7)).
///
/// **Errors** [`HostError::Denied`] for a real-time class without `CAP_SYS_NICE`.
pub fn set_class(tid: i32, class: SchedClass) -> Result<(), HostError> {
    let (policy, priority) = match class {
        SchedClass::Other => (libc::SCHED_OTHER, 0),
        SchedClass::Batch => (libc::SCHED_BATCH, 0),
        SchedClass::Idle => (libc::SCHED_IDLE, 0),
        SchedClass::Fifo(priority) => (libc::SCHED_FIFO, priority),
        SchedClass::RoundRobin(priority) => (libc::SCHED_RR, priority),
    };
    let what = format!("set class {class} of thread {tid}");
    let param = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: `param` lives across the call, which only reads it.
    let result = unsafe { libc::sched_setscheduler(tid, policy, &raw const param) };
    if result == 0 { Ok(()) } else { Err(refused(what)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::thread::{SeenCpus, check_cpus, current_tid};

    /// Runs `test` on a thread of its own: settings must not leak into other tests.
    fn alone<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(test).join().unwrap()
    }

    #[test]
    fn a_pinned_thread_runs_where_it_was_pinned() {
        alone(|| {
            let cpu = *allowed_cpus().unwrap().as_slice().last().unwrap();
            pin(cpu).unwrap();
            assert_eq!(affinity(0).unwrap().0, [cpu]);
            let mut seen = SeenCpus::default();
            for _ in 0..1000 {
                seen.note();
            }
            assert_eq!((seen.cpus().0, seen.moves()), (vec![cpu], 0));
            assert!(
                allowed_cpus().unwrap().as_slice().contains(&cpu),
                "pinned threads still know the cpuset"
            );
        });
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
        let error = set_affinity(0, &CpuList(vec![8000])).unwrap_err().to_string();
        let allowed = allowed_cpus().unwrap();
        assert!(
            error.contains("CPU 8000") && error.contains(&format!("cpuset: {allowed}")),
            "{error}"
        );
        assert_eq!(
            check_cpus(&CpuList(vec![allowed.0[0], 8000])).unwrap_err().to_string(),
            format!(
                "run on CPU 8000: not supported here, needs an online CPU inside this process's cpuset: {allowed}"
            )
        );
        assert!(set_affinity(0, &CpuList(vec![1 << 20])).is_err());
        check_cpus(&allowed).unwrap();
    }

    #[test]
    fn what_was_granted_is_told_and_not_what_was_asked() {
        alone(|| {
            let first = allowed_cpus().unwrap().0[0];
            assert_eq!(set_affinity(0, &CpuList(vec![first, 8000])).unwrap().0, [first]);
        });
    }

    #[test]
    fn names_are_cut_at_a_characters_end() {
        alone(|| {
            assert_eq!(set_name("rx-worker-0123456789").unwrap(), "rx-worker-01234");
            let task = crate::read::procfs::task::read(
                &crate::Root::host(),
                std::process::id() as i32,
                Some(current_tid()),
            );
            assert_eq!(task.unwrap().comm, "rx-worker-01234");
            assert_eq!(set_name("12345678901234é").unwrap(), "12345678901234");
        });
    }

    #[test]
    fn nice_belongs_to_the_thread() {
        let before = nice_of(0).unwrap();
        let set = alone(move || set_nice(0, (before + 3).min(19)).unwrap());
        assert_eq!(set, (before + 3).min(19));
        assert_eq!(nice_of(0).unwrap(), before);
    }
}
