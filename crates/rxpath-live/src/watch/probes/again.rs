//! When programs that could not be put into place are tried again.

use std::time::{Duration, Instant};

/// After the first failure.
const FIRST: Duration = Duration::from_secs(60);
/// After many.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Waits that double with each failure.
#[derive(Debug, Default)]
pub(super) struct Again {
    wait: Duration,
    /// When it is to be tried again; none while it works.
    pub(super) due: Option<Instant>,
}

impl Again {
    /// It failed at this moment.
    pub(super) fn failed(&mut self, now: Instant) {
        self.wait = (2 * self.wait).clamp(FIRST, LONGEST);
        self.due = now.checked_add(self.wait);
    }

    /// It worked.
    pub(super) fn worked(&mut self) {
        *self = Self::default();
    }

    /// Whether it is to be tried at this moment.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| now >= due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_the_one_before_up_to_half_an_hour() {
        let (mut again, begun) = (Again::default(), Instant::now());
        assert!(!again.is_due(begun) && again.due.is_none());
        for minutes in [1, 2, 4, 8, 16, 30, 30] {
            again.failed(begun);
            let wait = Duration::from_secs(60 * minutes);
            assert_eq!(again.due, Some(begun + wait));
            let before = begun + Duration::from_millis(60_000 * minutes - 1);
            assert!(again.is_due(begun + wait) && !again.is_due(before));
        }
        again.worked();
        assert!(again.due.is_none());
        again.failed(begun);
        assert_eq!(again.due, Some(begun + FIRST));
    }
}
