//! The instants of a trial's window on this host: the latest ones, which it has before the load begins, until the coordinator
//! names earlier ones. The window begins by them, whether the coordinator is heard then or not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::shared::locked;

/// How often a wait checks whether it is to end. Not more often: each check takes CPU time from senders that may begin then. Not less
/// often: `carriers.rs` reads its reports meanwhile, and says of a loss how long before the window it was, from 50 ms on.
const GLANCE: Duration = Duration::from_millis(50);

/// Begin and end of a window that lies ahead, of this host's clock.
pub struct Ahead {
    armed_ns: [u64; 2],
    now_ns: Mutex<[u64; 2]>,
    changed: Condvar,
    /// The load has ended: nothing is to be measured any more.
    is_over: AtomicBool,
}

impl Ahead {
    /// With the latest instants.
    pub fn armed(armed_ns: [u64; 2]) -> Self {
        let now_ns = Mutex::new(armed_ns);
        Self { armed_ns, now_ns, changed: Condvar::new(), is_over: AtomicBool::new(false) }
    }

    /// Takes earlier instants, unless the window has begun or `by_ns` is past, which lies before them; whether it did.
    pub fn earlier(&self, to_ns: [u64; 2], by_ns: u64, clock_ns: impl FnOnce() -> u64) -> bool {
        let mut window = locked(&self.now_ns);
        // Read under the lock: nobody has begun the window by a later reading.
        let is_in_time = to_ns[0] < window[0] && clock_ns() < by_ns.min(to_ns[0]);
        if is_in_time {
            *window = to_ns;
            self.changed.notify_all();
        }
        is_in_time
    }

    /// Takes the latest instants again, unless the window has begun by earlier ones.
    pub fn as_armed(&self, clock_ns: impl FnOnce() -> u64) {
        let mut window = locked(&self.now_ns);
        if clock_ns() < window[0] {
            *window = self.armed_ns;
            self.changed.notify_all();
        }
    }

    /// Waits until so long before the begin, and gives the instants as they are then. Without such a time they are final.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] when `stop` is set, or the load has ended.
    pub fn wait(&self, before: Duration, stop: &AtomicBool) -> Result<[u64; 2], LabError> {
        self.wait_and(before, stop, || ())
    }

    /// The same. Does `each` again and again until then, which never waits.
    ///
    /// # Errors
    /// As above.
    pub fn wait_and(
        &self,
        before: Duration,
        stop: &AtomicBool,
        mut each: impl FnMut(),
    ) -> Result<[u64; 2], LabError> {
        let before_ns = before.as_nanos() as u64;
        let mut window = locked(&self.now_ns);
        loop {
            if stop.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let left_ns = window[0].saturating_sub(before_ns).saturating_sub(monotonic_ns());
            if left_ns == 0 {
                return Ok(*window);
            }
            each();
            let left = GLANCE.min(Duration::from_nanos(left_ns));
            let waited = self.changed.wait_timeout(window, left);
            window = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The load has ended: a window that has not begun never does.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Set when the load has ended.
    pub fn is_over(&self) -> &AtomicBool {
        &self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARMED: [u64; 2] = [1_000, 1_500];
    const EARLY: [u64; 2] = [400, 900];

    /// The instants as they are now.
    fn now(ahead: &Ahead) -> [u64; 2] {
        *locked(&ahead.now_ns)
    }

    #[test]
    fn earlier_instants_are_taken_only_before_them() {
        let ahead = Ahead::armed(ARMED);
        assert!(!ahead.earlier(EARLY, u64::MAX, || 400), "its new begin is past");
        assert_eq!(now(&ahead), ARMED);
        assert!(!ahead.earlier(EARLY, 300, || 300), "its answer would come too late");
        assert_eq!(now(&ahead), ARMED);
        assert!(ahead.earlier(EARLY, 300, || 299));
        assert_eq!(now(&ahead), EARLY);
    }

    #[test]
    fn a_window_that_has_begun_keeps_its_instants() {
        let ahead = Ahead::armed(ARMED);
        // A late order, as one that waited in a connection.
        assert!(!ahead.earlier(EARLY, 300, || 1_000));
        assert!(!ahead.earlier([1_200, 1_700], 1_100, || 900), "not earlier");
        assert_eq!(now(&ahead), ARMED);
        assert!(ahead.earlier(EARLY, 300, || 100));
        ahead.as_armed(|| 400);
        assert_eq!(now(&ahead), EARLY, "it has begun by the earlier ones");
    }

    #[test]
    fn the_latest_instants_hold_again_if_that_is_said_before_the_earlier_ones() {
        let ahead = Ahead::armed(ARMED);
        assert!(ahead.earlier(EARLY, 300, || 100));
        ahead.as_armed(|| 399);
        assert_eq!(now(&ahead), ARMED);
        // One that did not get the earlier ones in time has them anyway.
        ahead.as_armed(|| 1_200);
        assert_eq!(now(&ahead), ARMED);
    }

    #[test]
    fn a_wait_ends_at_earlier_instants_and_with_the_load() {
        let never = AtomicBool::new(false);
        let hour_ns = 3_600_000_000_000;
        let far_ns = monotonic_ns() + hour_ns;
        let ahead = Ahead::armed([far_ns, far_ns + 5]);
        let soon_ns = monotonic_ns() + 30_000_000;
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| ahead.wait(Duration::ZERO, &never).unwrap());
            assert!(ahead.earlier([soon_ns, soon_ns + 5], soon_ns, || soon_ns - 1));
            assert_eq!(waits.join().unwrap(), [soon_ns, soon_ns + 5]);
        });
        assert!(monotonic_ns() >= soon_ns);
        let ahead = Ahead::armed([far_ns, far_ns + 5]);
        let acts_meanwhile = || {
            let mut times = 0;
            let passed = Ahead::armed([monotonic_ns() + 30_000_000, far_ns]);
            assert!(passed.wait_and(Duration::ZERO, &never, || times += 1).is_ok());
            times > 0
        };
        // A busy machine may not get there before the begin.
        assert!((0..50).any(|_| acts_meanwhile()));
        // An hour before its begin is now.
        let before = Duration::from_nanos(hour_ns);
        assert_eq!(ahead.wait(before, &never).unwrap(), [far_ns, far_ns + 5]);
        ahead.end();
        assert!(matches!(ahead.wait(Duration::ZERO, &never), Err(LabError::Interrupted)));
    }
}
