//! Threads of the calibration, each on one CPU. One that does not get its CPU must not stop the program that waits for it.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rxpath_host::HostError;
use rxpath_host::write::sched;

/// So long a thread is waited for: where others have its CPU for longer, nothing can be measured.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Starts a thread.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, HostError> {
    let begun = Builder::new().spawn(work);
    begun.map_err(|e| HostError::os("start a thread of the calibration", &e))
}

/// Runs `work` on a thread that is pinned to `cpu`. One that gets its CPU too late is left to itself, and ends by itself.
pub(super) fn on_cpu<T: Send + 'static>(
    cpu: u32,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HostError> {
    let (answers, done) = mpsc::channel();
    let thread = spawn(move || {
        // Nobody waits any more for one that is too late.
        let _ = answers.send(sched::pin(cpu).map(|()| work()));
    })?;
    let done = answer(&done, PATIENCE)?;
    // It has answered, and has nothing left to do.
    let _ = thread.join();
    Ok(done)
}

/// The next answer of a thread.
///
/// **Errors** its own, `ETIMEDOUT` when there is none in this time, and `EAGAIN` when it ended without one.
pub(super) fn answer<T>(
    answers: &Receiver<Result<T, HostError>>,
    patience: Duration,
) -> Result<T, HostError> {
    let errno = match answers.recv_timeout(patience) {
        Ok(answer) => return answer,
        Err(RecvTimeoutError::Timeout) => libc::ETIMEDOUT,
        Err(RecvTimeoutError::Disconnected) => libc::EAGAIN,
    };
    Err(HostError::kernel("run the threads of the calibration", errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_never_answers_is_not_waited_for_forever() {
        let (answers, none) = mpsc::channel::<Result<(), HostError>>();
        let errno = |none| match answer(none, Duration::ZERO) {
            Err(HostError::Kernel { errno, .. }) => errno,
            other => panic!("{other:?}"),
        };
        assert_eq!(errno(&none), libc::ETIMEDOUT);
        drop(answers);
        assert_eq!(errno(&none), libc::EAGAIN);
    }
}
