//! Loading and attaching again a moment later. Memory and descriptors may be short for a moment only, and a program that gave up its
//! capabilities after the start cannot load anything later.

use std::thread::sleep;
use std::time::Duration;

use rxpath_host::HostError;

/// Before the second attempt, and those behind it.
const WAITS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400)];

/// Loads; again after each wait, as long as the failure is one that may pass: four times within 0.7 s.
///
/// **Errors** that of the last attempt.
pub fn patiently<T>(load: impl FnMut() -> Result<T, HostError>) -> Result<T, HostError> {
    with_waits(&WAITS, load)
}

fn with_waits<T>(
    waits: &[Duration],
    mut load: impl FnMut() -> Result<T, HostError>,
) -> Result<T, HostError> {
    for wait in waits {
        match load() {
            Err(error) if error.is_passing() => {}
            done => return done,
        }
        // why: what is short is freed by others, who say nothing when they do.
        sleep(*wait);
    }
    load()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(errors: &[i32]) -> (Result<(), HostError>, usize) {
        let mut count = 0;
        let done = with_waits(&[Duration::ZERO; 3], || {
            count += 1;
            errors.get(count - 1).map_or(Ok(()), |errno| Err(HostError::kernel("load", *errno)))
        });
        (done, count)
    }

    #[test]
    fn loading_is_tried_again_while_what_is_short_may_come() {
        for errno in [libc::ENOMEM, libc::EAGAIN, libc::EBUSY] {
            let (done, count) = attempts(&[errno; 2]);
            assert!(done.is_ok() && count == 3, "{done:?} after {count}");
            let (done, count) = attempts(&[errno; 9]);
            assert!(done.is_err() && count == 4, "{done:?} after {count}");
        }
    }

    #[test]
    fn what_no_wait_changes_is_tried_once() {
        let (done, count) = attempts(&[libc::EINVAL]);
        assert!(done.is_err() && count == 1, "{done:?} after {count}");
    }
}
