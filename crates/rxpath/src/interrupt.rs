//! SIGINT and SIGTERM as something to wait for beside other descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Catches SIGINT and SIGTERM from its creation on; a second signal of the same kind ends the process at once.
#[derive(Debug)]
pub struct Interrupt {
    wake: UnixStream,
    number: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Installs the handlers.
    pub fn catch() -> io::Result<Self> {
        let (wake, write) = UnixStream::pair()?;
        let number = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            let armed = Arc::new(AtomicBool::new(false));
            // In this order: the first signal finds `armed` false, the second ends the process.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&armed))?;
            flag::register(signal, armed)?;
            flag::register_usize(signal, Arc::clone(&number), signal as usize)?;
            low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self { wake, number })
    }

    /// The signal that came, if one did.
    pub fn caught(&self) -> Option<i32> {
        match self.number.load(Ordering::SeqCst) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

impl AsFd for Interrupt {
    /// Readable once a signal came.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
