//! What is left of the time of a search.

use std::time::{Duration, Instant};

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Trials of this length that end before the deadline.
pub(super) fn trials(deadline: Instant, full: Duration) -> usize {
    (left(deadline).as_secs_f64() / full.as_secs_f64().max(1e-3)) as usize
}

/// A step of the search, and the seconds until the deadline.
pub(super) fn step(deadline: Instant, text: &str) -> String {
    format!("{text} (at most {} s to go)", left(deadline).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_whole_trials_and_never_less_than_none() {
        let now = Instant::now();
        assert_eq!(trials(now + Duration::from_secs(3599), Duration::from_secs(1000)), 3);
        assert_eq!(trials(now, Duration::ZERO), 0);
        assert_eq!(step(now, "arrays"), "arrays (at most 0 s to go)");
    }
}
