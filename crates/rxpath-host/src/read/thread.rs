//! The truth about threads: what the kernel granted, where a thread really ran.
//!
//! A program's own call can undo what `taskset` set, so [`SeenCpus`] records where a thread was. They are set up by
//! [`crate::write::sched`].

use rxpath_core::CpuList;

use crate::HostError;
use crate::cpu_mask::{Mask, WORDS, list, set_mask};

pub mod ended;
pub mod usage;

/// Longest thread name in bytes (`TASK_COMM_LEN` less its end, include/linux/sched.h).
pub(crate) const MAX_NAME_BYTES: usize = 15;

/// The id of the calling thread.
pub fn current_tid() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// CPUs that thread `tid` may run on; 0 is the caller.
pub fn affinity(tid: i32) -> Result<CpuList, HostError> {
    let mut mask: Mask = [0; WORDS];
    // SAFETY: the pointer and the size describe `mask`, which lives through the call; the kernel writes at
    // most that many bytes. glibc takes sizes other than that of cpu_set_t (sched_setaffinity(2)).
    let result = unsafe {
        libc::sched_getaffinity(tid, size_of::<Mask>(), (&raw mut mask).cast::<libc::cpu_set_t>())
    };
    if result == 0 {
        Ok(list(&mask))
    } else {
        Err(HostError::last_os(format_args!("ask for the CPUs of thread {tid}")))
    }
}

/// Every CPU that this process could run on: online and inside its cpuset, whatever its present affinity.
///
/// Asked of the kernel itself: a throw-away thread requests all CPUs and reads what it got. The caller's
/// own affinity is not touched, and no cgroup hierarchy has to be understood.
///
/// **Errors** [`HostError::Kernel`] when no thread can be made or a sandbox refuses the call.
pub fn allowed_cpus() -> Result<CpuList, HostError> {
    let probe = std::thread::Builder::new().name("rxpath-cpus".into()).spawn(|| {
        // It changes this short-lived thread only.
        set_mask(0, &[u64::MAX; WORDS], "ask for the allowed CPUs")?;
        affinity(0)
    });
    let failed = |errno| HostError::kernel("start a thread that asks for the allowed CPUs", errno);
    probe
        .map_err(|e| failed(e.raw_os_error().unwrap_or(libc::EAGAIN)))?
        .join()
        .map_err(|_| failed(libc::EIO))?
}

/// Checks before anything starts that each CPU is online and inside this process's cpuset.
///
/// **Errors** [`HostError::Unsupported`] naming the first CPU that is not and those that are.
pub fn check_cpus(cpus: &CpuList) -> Result<(), HostError> {
    let allowed = allowed_cpus()?;
    let outside = cpus.as_slice().iter().find(|cpu| !allowed.as_slice().contains(cpu));
    let Some(cpu) = outside else { return Ok(()) };
    let needs = format!("an online CPU inside this process's cpuset: {allowed}");
    Err(HostError::unsupported(format!("run on CPU {cpu}"), needs))
}

/// The nice value of thread `tid`; 0 is the caller.
pub(crate) fn nice_of(tid: i32) -> Result<i32, HostError> {
    nix::errno::Errno::clear();
    // SAFETY: no pointers; -1 is a value too, so errno was cleared and decides.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, tid as libc::id_t) };
    match nix::errno::Errno::last_raw() {
        0 => Ok(nice),
        errno => Err(HostError::kernel(format!("ask for the nice value of thread {tid}"), errno)),
    }
}

/// The CPUs that a thread was seen on.
///
/// The thread itself calls [`SeenCpus::note`] now and then (once for each batch, say).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCpus {
    mask: Box<Mask>,
    last: Option<u32>,
    moves: u64,
}

impl Default for SeenCpus {
    fn default() -> Self {
        Self { mask: Box::new([0; WORDS]), last: None, moves: 0 }
    }
}

impl SeenCpus {
    /// Notes where the caller is. **Cost** a few ns (vDSO or rseq); no allocation. A kernel without `getcpu` notes nothing.
    pub fn note(&mut self) {
        if let Ok(cpu) = nix::sched::sched_getcpu() {
            self.add(cpu as u32);
        }
    }

    fn add(&mut self, cpu: u32) {
        if self.last == Some(cpu) {
            return;
        }
        self.moves += u64::from(self.last.is_some());
        self.last = Some(cpu);
        if let Some(word) = self.mask.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    /// Every CPU seen, in order.
    pub fn cpus(&self) -> CpuList {
        list(&self.mask)
    }

    /// How often it was found on another CPU than the time before: at least so many migrations.
    pub fn moves(&self) -> u64 {
        self.moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_between_cpus_are_counted() {
        let mut seen = SeenCpus::default();
        for cpu in [3, 3, 9, 3, 20_000] {
            seen.add(cpu);
        }
        assert_eq!((seen.cpus().0, seen.moves()), (vec![3, 9], 3));
    }
}
