//! When one protocol's list of sockets is read: the kernel walks its tables in the time of the thread that asks, about 1 us a
//! socket (net/ipv4/inet_diag.c).
//!
//! A list is paid for by [`PAUSE`] times its CPU time, so that lists take a hundredth of the time at most, however short the
//! windows are. Samples within a window are left out first: a window needs the lists at its two ends.

use std::time::{Duration, Instant};

use rxpath_core::Nanos;
use rxpath_host::HostError;
use rxpath_record::watch::WatchFrame;

/// From one question for a list that the kernel does not have to the next: each has it search for the module of the list, which
/// somebody may load.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// The time that pays for a list, as a multiple of its CPU time.
const PAUSE: u32 = 100;
/// A list that took more CPU time is dear: UDP's and TCP's together would take twice the exporter's budget of 1 %.
const DEAR: Duration = Duration::from_millis(20);
/// The time that pays for a dear list. One of a second, of a million sockets, then takes 0.3 % of a CPU.
const DEAR_AGAIN: Duration = Duration::from_secs(300);

/// When the kernel is asked for one protocol's list, and why it is missing in a window.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Why the kernel does not have it.
    missing: Option<String>,
    /// When the last one was read, and its CPU time.
    last: Option<(Instant, Duration)>,
    /// The next one is not read before.
    next: Option<Instant>,
    /// Why the last window ended without one.
    left_out: Option<String>,
    /// Why the last one failed: a window that begins with it has a gap, too.
    failed: Option<String>,
    /// Of this window.
    gap: Option<String>,
}

impl Listing {
    /// Whether a list is read within a window: only if the time then pays for the one at its end too.
    pub(super) fn is_due_between(&self, now: Instant) -> bool {
        let reserve = self.last.map_or(Duration::ZERO, |(_, took)| price(took));
        self.next.is_none_or(|next| now >= next + reserve)
    }

    /// Whether the list at the end of a window is read. A window that has none at one of its ends has a gap.
    pub(super) fn is_due_at_end(&mut self, now: Instant) -> bool {
        let is_due = self.next.is_none_or(|next| now >= next);
        let left_out = (!is_due).then(|| self.why(now));
        let before = std::mem::replace(&mut self.left_out, left_out.clone());
        self.gap = left_out.or(before).or_else(|| self.gap.take());
        is_due
    }

    /// What the kernel gave at this moment, for so much CPU time.
    pub(super) fn listed<T>(
        &mut self,
        listed: Result<Vec<T>, HostError>,
        took: Duration,
        now: Instant,
    ) -> Option<Vec<T>> {
        self.missing = None;
        self.next = Some(match (&listed, self.next) {
            (Err(error @ HostError::Unsupported { .. }), _) => {
                self.missing = Some(error.to_string());
                now + ASK_AGAIN
            }
            // The first window has both its lists, also where it is the only one.
            (_, None) if took <= DEAR => now,
            (_, next) => (next.unwrap_or(now) + price(took)).max(now),
        });
        self.last = Some((now, took));
        self.failed = listed.as_ref().err().map(ToString::to_string);
        if self.failed.is_some() {
            self.gap.clone_from(&self.failed);
        }
        listed.ok()
    }

    /// Whether the last list was dear.
    pub(super) fn is_dear(&self) -> bool {
        self.last.is_some_and(|(_, took)| took > DEAR)
    }

    /// Why the list is missing in the window that ends here.
    pub(super) fn take_gap(&mut self) -> Option<String> {
        std::mem::replace(&mut self.gap, self.failed.take())
    }

    fn why(&self, now: Instant) -> String {
        if let Some(missing) = &self.missing {
            return missing.clone();
        }
        let (at, took) = self.last.unwrap_or((now, Duration::ZERO));
        let [every, ago] = [price(took), now.saturating_duration_since(at)].map(in_words);
        let took_ms = took.as_millis();
        let seldom = WatchFrame::READ_SELDOM;
        format!("{seldom}{every}: the last list is of {ago} ago and took {took_ms} ms of CPU time")
    }
}

/// The time that pays for a list.
fn price(took: Duration) -> Duration {
    if took > DEAR { DEAR_AGAIN } else { took * PAUSE }
}

fn in_words(time: Duration) -> String {
    Nanos(time.as_millis() as u64 * 1_000_000).to_string()
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn read(list: &mut Listing, took: Duration, now: Instant) {
        list.listed::<()>(Ok(Vec::new()), took, now);
    }

    /// Whether the window that ends now has its list, and its gap.
    fn end(list: &mut Listing, now: Instant) -> (bool, Option<String>) {
        (list.is_due_at_end(now), list.take_gap())
    }

    #[test]
    fn a_list_that_the_kernel_does_not_have_is_asked_for_once_a_minute_and_leaves_a_gap() {
        let missing =
            HostError::Unsupported { what: "list sockets".into(), needs: "udp_diag".into() };
        let (mut list, now) = (Listing::default(), Instant::now());
        assert!(list.is_due_at_end(now) && list.is_due_between(now));
        list.listed::<()>(Err(missing), Duration::ZERO, now);
        for second in [1_u32, 59] {
            let (is_due, gap) = end(&mut list, now + second * 1000 * MS);
            assert!(!is_due && gap.unwrap().contains("udp_diag"));
        }
        // Somebody loaded the module.
        let later = now + ASK_AGAIN;
        assert!(list.is_due_between(later));
        read(&mut list, Duration::ZERO, later);
        let (is_due, gap) = end(&mut list, later);
        assert!(is_due && gap.unwrap().contains("udp_diag"), "in a part of this window");
        assert_eq!(end(&mut list, later), (true, None));
    }

    #[test]
    fn a_list_that_failed_once_is_a_gap_of_the_windows_that_it_ends_and_begins() {
        let (mut list, now) = (Listing::default(), Instant::now());
        let failed = HostError::kernel("list UDP sockets", libc::ENOBUFS);
        list.listed::<()>(Err(failed), Duration::ZERO, now);
        let (is_due, gap) = end(&mut list, now);
        assert!(is_due && gap.is_some());
        read(&mut list, Duration::ZERO, now);
        let (is_due, gap) = end(&mut list, now);
        assert!(is_due && gap.is_some(), "without a list at its begin");
        read(&mut list, Duration::ZERO, now);
        assert_eq!(end(&mut list, now), (true, None), "of another window");
        // One within a window is no end of it.
        let failed = HostError::kernel("list UDP sockets", libc::ENOBUFS);
        list.listed::<()>(Err(failed), Duration::ZERO, now);
        read(&mut list, Duration::ZERO, now);
        assert!(end(&mut list, now).1.is_some());
        assert_eq!(end(&mut list, now), (true, None), "of the window that it was in");
    }

    #[test]
    fn a_list_that_took_long_is_read_once_in_five_minutes_and_leaves_a_gap() {
        let (mut list, now) = (Listing::default(), Instant::now());
        read(&mut list, 2 * DEAR, now);
        assert_eq!(list.take_gap(), None, "all was read");
        assert!(list.is_dear());
        let (is_due, gap) = end(&mut list, now + 7000 * MS);
        let text = "read once in 300s: the last list is of 7s ago and took 40 ms of CPU time";
        assert_eq!((is_due, gap.as_deref()), (false, Some(text)));
        // Five minutes later there are few: what was there at the begin of that window is not known.
        let later = now + DEAR_AGAIN;
        let (is_due, gap) = end(&mut list, later);
        assert!(is_due && gap.is_some());
        read(&mut list, Duration::ZERO, later);
        assert_eq!(end(&mut list, later), (true, None));
        assert!(!list.is_dear());
    }

    /// A hundred windows of a second with ten samples each: lists at their ends, windows without a gap, CPU time of all lists.
    fn hundred_windows(took: Duration) -> (u32, u32, Duration) {
        let (mut list, begun) = (Listing::default(), Instant::now());
        let (mut at_ends, mut whole, mut spent) = (0, 0, took);
        read(&mut list, took, begun);
        for sample in 1..=1000_u32 {
            let now = begun + sample * 100 * MS;
            let is_end = sample % 10 == 0;
            let is_due = if is_end { list.is_due_at_end(now) } else { list.is_due_between(now) };
            if is_due {
                read(&mut list, took, now);
                spent += took;
            }
            if is_end {
                at_ends += u32::from(is_due);
                whole += u32::from(list.take_gap().is_none());
            }
        }
        (at_ends, whole, spent)
    }

    #[test]
    fn lists_take_a_hundredth_of_the_time_whatever_one_takes() {
        for took_ms in [0_u32, 1, 2, 5, 9, 10, 11, 15, 19, 20] {
            let (at_ends, whole, spent) = hundred_windows(took_ms * MS);
            // Those at the two ends of the first window come before what pays for them.
            assert!(spent <= 1000 * MS + 2 * took_ms * MS, "{took_ms} ms: {spent:?}");
            assert!(spent >= took_ms.min(9) * 100 * MS, "{took_ms} ms: {spent:?}");
            assert_eq!((at_ends, whole) == (100, 100), took_ms <= 10, "{took_ms} ms: {whole}");
        }
    }

    #[test]
    fn a_list_that_is_left_out_says_how_old_the_last_is() {
        let (mut list, now) = (Listing::default(), Instant::now());
        read(&mut list, 19 * MS, now);
        for (second, is_read) in [(1_u32, true), (2, true), (3, false), (4, true)] {
            let now = now + second * 1000 * MS;
            let (is_due, gap) = end(&mut list, now);
            assert_eq!(is_due, is_read, "{second}");
            // The window that ends with the next list has none at its begin.
            assert_eq!(gap.is_some(), second >= 3, "{second}: {gap:?}");
            if is_due {
                read(&mut list, 19 * MS, now);
            } else {
                let text =
                    "read once in 1.9s: the last list is of 1s ago and took 19 ms of CPU time";
                assert_eq!(gap.as_deref(), Some(text));
                assert!(!list.is_dear(), "it is not due, and read often");
            }
        }
    }
}
