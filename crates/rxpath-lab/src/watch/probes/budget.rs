//! What the probes of `watch` may take of a CPU, and what each event costs them.

use std::time::Duration;

use rxpath_bpf::turns::Rhythm;

/// What all but the drops take of one CPU, putting their programs into place included: 2 ms of CPU time on a small virtual
/// machine, and 4 ms to take them away.
pub(super) const RHYTHM: Rhythm = Rhythm {
    share: 0.005,
    shortest_turn: Duration::from_millis(10),
    longest_turn: Duration::from_millis(100),
    cycle: Duration::from_secs(2),
    longest_pause: Duration::from_secs(30),
};

/// CPU time that putting them into place takes, until it is measured.
pub(super) const SWITCHING: Duration = Duration::from_millis(2);

/// What drops take.
pub(super) const DROPS: Rhythm = Rhythm {
    share: 0.0015,
    cycle: Duration::from_secs(1),
    longest_pause: Duration::from_secs(10),
    ..RHYTHM
};

/// What the hook of reads takes after turns, as it waits for what is still unread.
pub(super) const READS_SHARE: f64 = 0.001;

/// What the programs take together for each event, in ns: measured on a small virtual machine. Where they take more or less
/// the kernel's measurement corrects it.
pub(super) const SWITCH_NS: f64 = 500.0;
pub(super) const SOFTIRQ_NS: f64 = 570.0;
pub(super) const POLL_NS: f64 = 270.0;
pub(super) const INTERRUPT_NS: f64 = 550.0;
pub(super) const PACKET_NS: f64 = 400.0;
pub(super) const READ_NS: f64 = 100.0;
pub(super) const DROP_NS: f64 = 500.0;
