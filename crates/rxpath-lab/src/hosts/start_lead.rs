//! How long before the common start of a trial the orders go out: longer after a start that was missed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The longest time from an order to its instant, unless orders take longer.
const LONGEST: Duration = Duration::from_secs(5);

/// The time from the order to start to its instant, over the trials of a run: how often it was doubled.
#[derive(Debug, Default)]
pub struct StartLead(AtomicU32);

impl StartLead {
    /// From the least time that orders need.
    pub fn of(&self, least: Duration) -> Duration {
        let times = 2_u32.saturating_pow(self.0.load(Ordering::Relaxed));
        least.saturating_mul(times).min(LONGEST.max(least))
    }

    /// A start was missed.
    pub fn double(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missed_start_doubles_it_up_to_the_longest() {
        let (lead, least) = (StartLead::default(), Duration::from_millis(200));
        let mut all = Vec::new();
        for _ in 0..7 {
            all.push(lead.of(least).as_millis());
            lead.double();
        }
        assert_eq!(all, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        (0..40).for_each(|_| lead.double());
        assert_eq!(lead.of(least), LONGEST);
        assert_eq!(lead.of(Duration::from_secs(9)), Duration::from_secs(9));
    }
}
