//! Places where a test kills this process, to show that what is on disk then is enough to undo.
//!
//! Only builds with debug assertions (the profiles `dev`, `ci` and `test`) look at the variable; in a release build
//! [`at`] and [`torn`] are empty and nothing in the environment can make the program end itself.

/// The variable that names the place and, after a colon, which passing of it (from 1): `after-write:2`.
pub const VARIABLE: &str = "RXPATH_TEST_FAULT";

rxpath_core::named! {
    /// Steps of applying and undoing, each a moment at which the process may die.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Point {
        /// Half of the journal's first line is on disk.
        TornHead => "torn-head",
        /// Half of the line that names what is to be changed is on disk.
        TornPlanned => "torn-planned",
        /// The old value was read; nothing of this change is on disk.
        BeforeBegin => "before-begin",
        /// Half of the line that announces a change is on disk.
        TornBegin => "torn-begin",
        /// The change is announced and not made.
        AfterBegin => "after-begin",
        /// The change is made and not read back.
        AfterWrite => "after-write",
        /// The change is read back and that is not on disk.
        BeforeEnd => "before-end",
        /// Half of the line that says what came of it is on disk.
        TornEnd => "torn-end",
        /// What came of it is on disk.
        AfterEnd => "after-end",
        /// Half of the line that says that all is done is on disk.
        TornReached => "torn-reached",
        /// Half of the order to undo without a confirmation is on disk.
        TornWatch => "torn-watch",
        /// Half of the confirmation is on disk.
        TornConfirmed => "torn-confirmed",
        /// Undoing has found what to restore.
        BeforeRestore => "before-restore",
        /// The old value is restored and that is not on disk.
        AfterRestore => "after-restore",
        /// Half of the line that says so is on disk.
        TornUndone => "torn-undone",
        /// The line that says so is on disk.
        AfterUndone => "after-undone",
        /// Half of the line that gives up what can't be restored is on disk.
        TornForgotten => "torn-forgotten",
    }
    /// As the variable has it.
    pub fn name(self) -> &'static str
}

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
    name == point.name() && Some(PASSED.fetch_add(1, Ordering::SeqCst) + 1) == number.parse().ok()
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
