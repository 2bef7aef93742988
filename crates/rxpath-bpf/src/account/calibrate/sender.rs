//! The thread that sends interrupts to the loop's CPU, for all spins of a plan: preparing (a network namespace) takes longer
//! than a spin lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rxpath_host::HostError;

use super::threads::{PATIENCE, answer, spawn};

/// Sends one, and gets its number, from 1.
pub(super) type Act = Box<dyn FnMut(u64) -> Result<(), HostError>>;

/// Makes the calling thread ready to send to the first CPU from the second.
pub(super) type Prepare = fn((u32, u32)) -> Result<Act, HostError>;

/// The running thread. Dropping it ends the thread, and what was prepared goes with it.
#[derive(Debug)]
pub(super) struct InterruptSender {
    /// The rate of each spin; none any more ends the thread.
    rates: Option<Sender<f64>>,
    /// One when it is ready; of each spin one when it begins and one when it has ended.
    answers: Receiver<Result<(), HostError>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl InterruptSender {
    /// Returns when it is ready. It sends for at most `longest` in a spin, even if nobody ends it.
    pub(super) fn start(
        prepare: Prepare,
        cpus: (u32, u32),
        longest: Duration,
    ) -> Result<Self, HostError> {
        let (rates, spins) = mpsc::channel();
        let (to_starter, answers) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let sending = Sending { spins, answers: to_starter, stop: Arc::clone(&stop), longest };
        let run = move || sending.run(prepare, cpus).unwrap_or_else(|e| sending.answer(Err(e)));
        let thread = Some(spawn(run)?);
        let sender = Self { rates: Some(rates), answers, stop, thread };
        sender.answer()?;
        Ok(sender)
    }

    /// Sends at this rate per second from here on.
    pub(super) fn begin(&self, rate: f64) -> Result<(), HostError> {
        self.stop.store(false, Ordering::SeqCst);
        if let Some(rates) = &self.rates {
            // A thread that has ended gives no answer.
            let _ = rates.send(rate);
        }
        self.answer()
    }

    /// Sends no more.
    pub(super) fn end(&self) -> Result<(), HostError> {
        self.stop.store(true, Ordering::SeqCst);
        self.answer()
    }

    fn answer(&self) -> Result<(), HostError> {
        answer(&self.answers, PATIENCE)
    }
}

impl Drop for InterruptSender {
    fn drop(&mut self) {
        self.rates = None;
        self.stop.store(true, Ordering::SeqCst);
        let ended = loop {
            match self.answers.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break true,
                // Without its CPU it ends later, by itself.
                Err(RecvTimeoutError::Timeout) => break false,
            }
        };
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Sending {
    spins: Receiver<f64>,
    answers: Sender<Result<(), HostError>>,
    stop: Arc<AtomicBool>,
    longest: Duration,
}

impl Sending {
    /// **Errors** the last answer.
    fn run(&self, prepare: Prepare, cpus: (u32, u32)) -> Result<(), HostError> {
        let mut act = prepare(cpus)?;
        self.answer(Ok(()));
        for rate in &self.spins {
            self.answer(Ok(()));
            self.at_rate(rate, &mut act)?;
            self.answer(Ok(()));
        }
        Ok(())
    }

    fn answer(&self, answer: Result<(), HostError>) {
        // Nobody gets it once the measurement has ended.
        let _ = self.answers.send(answer);
    }

    fn at_rate(&self, rate: f64, act: &mut Act) -> Result<(), HostError> {
        let begun = Instant::now();
        let mut sent = 0u64;
        while !self.stop.load(Ordering::Relaxed) {
            let elapsed = begun.elapsed();
            if elapsed >= self.longest {
                break;
            }
            if sent < (elapsed.as_secs_f64() * rate) as u64 {
                sent += 1;
                act(sent)?;
            } else {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn one_thread_prepares_once_and_sends_in_each_spin() {
        static PREPARED: AtomicU64 = AtomicU64::new(0);
        static SENT: AtomicU64 = AtomicU64::new(0);
        let sender = InterruptSender::start(
            |_| {
                PREPARED.fetch_add(1, Ordering::SeqCst);
                Ok(Box::new(|nth| {
                    SENT.store(nth, Ordering::SeqCst);
                    Ok(())
                }))
            },
            (0, 0),
            LONG,
        )
        .unwrap();
        for _ in 0..3 {
            SENT.store(0, Ordering::SeqCst);
            sender.begin(1e6).unwrap();
            let deadline = Instant::now() + LONG;
            while SENT.load(Ordering::SeqCst) == 0 {
                assert!(Instant::now() < deadline, "it sends nothing");
                std::thread::yield_now();
            }
            sender.end().unwrap();
        }
        assert_eq!(PREPARED.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_spin_that_nobody_ends_ends_by_itself() {
        let longest = Duration::from_millis(1);
        let sender = InterruptSender::start(|_| Ok(Box::new(|_| Ok(()))), (0, 0), longest).unwrap();
        sender.begin(1e6).unwrap();
        sender.answer().unwrap();
    }

    #[test]
    fn what_fails_says_so_and_ends_the_thread() {
        fn refused() -> HostError {
            HostError::kernel("send", libc::EPERM)
        }
        assert!(InterruptSender::start(|_| Err(refused()), (0, 0), LONG).is_err());
        let prepare: Prepare = |_| Ok(Box::new(|_| Err(refused())));
        let sender = InterruptSender::start(prepare, (0, 0), LONG).unwrap();
        sender.begin(1e6).unwrap();
        assert_eq!(sender.answer().unwrap_err().to_string(), refused().to_string());
        assert!(sender.begin(1e6).is_err());
    }
}
