//! Places where a test kills this process, to show that what is on disk then is enough to undo.
//!
//! Only builds with debug assertions (the profiles `dev`, `ci` and `test`) look at the variable; in a release build
//! [`at`] and [`torn`] are empty and nothing in the environment can make the program end itself.

/// The variable that names the place and, after a colon, which passing of it (from 1): `after-write:2`.
pub const VARIABLE: &str = "RXPATH_TEST_FAULT";

/// Steps of applying and undoing, each a moment at which the process may die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Half of the journal's first line is on disk.
    TornHead,
    /// Half of the line that names what is to be changed is on disk.
    TornPlanned,
    /// The old value was read; nothing of this change is on disk.
    BeforeBegin,
    /// Half of the line that announces a change is on disk.
    TornBegin,
    /// The change is announced and not made.
    AfterBegin,
    /// The change is made and not read back.
    AfterWrite,
    /// The change is read back and that is not on disk.
    BeforeEnd,
    /// Half of the line that says what came of it is on disk.
    TornEnd,
    /// What came of it is on disk.
    AfterEnd,
    /// Half of the line that says that all is done is on disk.
    TornReached,
    /// Half of the order to undo without a confirmation is on disk.
    TornWatch,
    /// Half of the confirmation is on disk.
    TornConfirmed,
    /// Undoing has found what to restore.
    BeforeRestore,
    /// The old value is restored and that is not on disk.
    AfterRestore,
    /// Half of the line that says so is on disk.
    TornUndone,
    /// The line that says so is on disk.
    AfterUndone,
    /// Half of the line that gives up what can't be restored is on disk.
    TornForgotten,
}

/// All places and their names.
pub const POINTS: [(Point, &str); 17] = [
    (Point::TornHead, "torn-head"),
    (Point::TornPlanned, "torn-planned"),
    (Point::BeforeBegin, "before-begin"),
    (Point::TornBegin, "torn-begin"),
    (Point::AfterBegin, "after-begin"),
    (Point::AfterWrite, "after-write"),
    (Point::BeforeEnd, "before-end"),
    (Point::TornEnd, "torn-end"),
    (Point::AfterEnd, "after-end"),
    (Point::TornReached, "torn-reached"),
    (Point::TornWatch, "torn-watch"),
    (Point::TornConfirmed, "torn-confirmed"),
    (Point::BeforeRestore, "before-restore"),
    (Point::AfterRestore, "after-restore"),
    (Point::TornUndone, "torn-undone"),
    (Point::AfterUndone, "after-undone"),
    (Point::TornForgotten, "torn-forgotten"),
];

/// Ends this process by SIGKILL when the test asked for it here.
pub fn at(point: Point) {
    if torn(point) {
        end();
    }
}

/// Whether the test asked for the end here: the caller does half of its work and calls [`end`].
#[cfg(debug_assertions)]
pub fn torn(point: Point) -> bool {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let Ok(asked) = std::env::var(VARIABLE) else { return false };
    let (name, number) = asked.split_once(':').unwrap_or((&asked, "1"));
    let here = POINTS.iter().any(|(known, known_name)| *known == point && *known_name == name);
    here && Some(PASSED.fetch_add(1, Ordering::SeqCst) + 1) == number.parse().ok()
}

/// Whether the test asked for the end here: never in a release build.
#[cfg(not(debug_assertions))]
pub fn torn(_point: Point) -> bool {
    false
}

/// Ends this process as `kill -9` does: no destructor runs.
#[cfg(debug_assertions)]
pub fn end() {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
}

/// Never called in a release build.
#[cfg(not(debug_assertions))]
pub fn end() {}
