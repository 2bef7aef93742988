//! SIGINT and SIGTERM as a descriptor to wait for, alongside others.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// Signals this close together are one request: timeout(1) signals its child and then the child's whole group, and a
/// terminal and a service manager may both pass one on.
const ONE_WISH: Duration = Duration::from_secs(1);

/// Catches SIGINT and SIGTERM from its creation on. A signal more than a second after the first ends the process at
/// once.
#[derive(Debug)]
pub struct Interrupt {
    wake: UnixStream,
    number: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the handlers.
    ///
    /// Both signals are blocked until all handlers exist: with the first one installed, a signal no longer ends the
    /// process, and without the last one, the signal would be lost.
    pub fn catch() -> io::Result<Self> {
        let held = Held::hold()?;
        let (wake, write) = UnixStream::pair()?;
        let number = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let signals = Signals::new([SIGINT, SIGTERM])?;
        for signal in [SIGINT, SIGTERM] {
            flag::register_usize(signal, Arc::clone(&number), signal as usize)?;
            flag::register(signal, Arc::clone(&stop))?;
            low_level::pipe::register(signal, write.try_clone()?)?;
        }
        std::thread::Builder::new().name("rxpath-signals".into()).spawn(|| end_at_once(signals))?;
        drop(held);
        Ok(Self { wake, number, stop })
    }

    /// True from the first signal on; for loops that poll it.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// The signal received, if any.
    pub fn caught(&self) -> Option<i32> {
        match self.number.load(Ordering::SeqCst) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

/// SIGINT and SIGTERM blocked for this thread, the only one at that time; unblocked on drop.
struct Held(SigSet);

impl Held {
    fn hold() -> io::Result<Self> {
        let both = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        Ok(Self(both.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It cannot fail: the mask comes from the kernel.
        let _ = self.0.thread_set_mask();
    }
}

/// Ends the process at a second signal, for the sender of the first one does not want to wait for an orderly end.
fn end_at_once(mut signals: Signals) {
    let mut first: Option<Instant> = None;
    for signal in &mut signals {
        let since = first.get_or_insert_with(Instant::now).elapsed();
        if since > ONE_WISH {
            low_level::exit(128 + signal);
        }
    }
}

impl AsFd for Interrupt {
    /// Readable after a signal.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
