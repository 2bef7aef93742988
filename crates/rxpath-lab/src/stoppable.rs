//! A thread that works until it is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The running thread. It is stopped and waited for at the latest when this is dropped.
pub struct Stoppable<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Stoppable<T> {
    /// Starts it; `work` ends soon after its flag is set, and is unparked then.
    pub fn start(work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let seen = Arc::clone(&stop);
        Self { stop, thread: Some(std::thread::spawn(move || work(&seen))) }
    }
}

impl<T> Stoppable<T> {
    /// Sets the flag, and does not wait.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops it and gives what it made; `None` if it panicked, or has been ended before.
    pub fn end(&mut self) -> Option<T> {
        self.stop();
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl<T> Drop for Stoppable<T> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(ended: &Arc<AtomicBool>) -> Stoppable<u32> {
        let ended = Arc::clone(ended);
        Stoppable::start(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park();
            }
            ended.store(true, Ordering::Relaxed);
            7
        })
    }

    #[test]
    fn it_gives_what_it_made_once_and_ends_with_its_owner() {
        let ended = Arc::<AtomicBool>::default();
        let mut thread = parked(&ended);
        assert_eq!((thread.end(), thread.end()), (Some(7), None));
        ended.store(false, Ordering::Relaxed);
        drop(parked(&ended));
        assert!(ended.load(Ordering::Relaxed));
    }
}
