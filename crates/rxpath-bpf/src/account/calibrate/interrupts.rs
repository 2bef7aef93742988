//! Interrupts that do nothing, at a rate, where no packets can be sent.
//!
//! They are those of membarrier(2) (kernel/sched/membarrier.c, `membarrier_private_expedited`): it interrupts each CPU
//! that runs a thread of the caller's process, and nothing else.

use rxpath_host::HostError;
use rxpath_host::write::sched;

use super::sender::Act;

/// Interrupts the other threads of this process, from `other`.
pub(super) fn prepare((_, other): (u32, u32)) -> Result<Act, HostError> {
    sched::pin(other)?;
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
    Ok(Box::new(|_| membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
}

fn membarrier(command: i32) -> Result<(), HostError> {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if done < 0 {
        Err(HostError::last_os("interrupt the other threads (membarrier)"))
    } else {
        Ok(())
    }
}
