//! What NTP says of this host's clock: asked of the kernel, so that it needs no daemon's protocol. Of the daemon only the name is
//! known.

use rxpath_core::ntp::NtpState;

use crate::read::clock::RealtimeReading;
use crate::read::procfs::{is_first_pid_namespace, task};
use crate::{HostError, Root};

/// Name of the fact.
pub const FACT: &str = "time.ntp";
/// Parts of a ppm in which the kernel gives frequencies. **Source** adjtimex(2).
const PARTS_OF_PPM: f64 = 65_536.0;
/// Programs that correct the clock: as the kernel names their process, and their name.
const DAEMONS: [(&str, &str); 6] = [
    ("chronyd", "chronyd"),
    ("ntp-daemon", "ntp-daemon"),
    ("ntpd", "ntpd"),
    ("phc2sys", "phc2sys"),
    ("ptp4l", "ptp4l"),
    ("systemd-timesyn", "systemd-timesyncd"),
];

/// Reads it; needs no privilege and changes nothing.
///
/// **Cost** a system call, and that of [`daemons`]. **Errors** `Kernel` where a sandbox forbids it.
pub fn read(root: &Root) -> Result<NtpState, HostError> {
    // SAFETY: all its fields are integers, for which zero is a value; `modes` is 0 then, which sets nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes into the structure, which lives beyond the call.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(HostError::last_os("read the state of the clock (adjtimex)"));
    }
    Ok(NtpState { daemons: daemons(root), ..of(state, &timex, epoch_ns()) })
}

/// Running programs that correct the clock; `None` where none is seen, and not all programs are: in a container, or with
/// `hidepid`. A `ptp4l` may correct a card's clock only.
///
/// **Cost** the names of all processes.
pub fn daemons(root: &Root) -> Option<Vec<String>> {
    let pids = task::processes(root).ok()?;
    let found = task::named(root, &pids, &DAEMONS.map(|(comm, _)| comm));
    let are_all_seen = is_first_pid_namespace(root) && root.value("/proc/1/comm").is_ok();
    let named = DAEMONS.iter().filter(|(comm, _)| found.iter().any(|name| name == comm));
    (are_all_seen || !found.is_empty()).then(|| named.map(|(_, name)| (*name).to_owned()).collect())
}

fn of(state: i32, timex: &libc::timex, epoch_ns: i64) -> NtpState {
    // Microseconds, unless the daemon chose nanoseconds.
    let offset_unit = if timex.status & libc::STA_NANO == 0 { 1_000 } else { 1 };
    NtpState {
        is_synchronised: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
        status: timex.status,
        offset_ns: timex.offset * offset_unit,
        frequency_ppm: timex.freq as f64 / PARTS_OF_PPM,
        max_error_us: timex.maxerror,
        estimated_error_us: timex.esterror,
        epoch_ns,
        daemons: None,
    }
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
fn epoch_ns() -> i64 {
    let RealtimeReading { before_ns, realtime_ns, after_ns } = RealtimeReading::now();
    realtime_ns as i64 - before_ns.midpoint(after_ns) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::clock::{monotonic_ns, realtime_ns};

    #[test]
    fn the_epoch_is_the_difference_of_the_two_clocks() {
        let state = match read(&Root::host()) {
            Ok(state) => state,
            // Sandboxes forbid the call.
            Err(error) => return assert!(matches!(error, HostError::Kernel { .. }), "{error}"),
        };
        let now = realtime_ns() as i64 - monotonic_ns() as i64;
        assert!((state.epoch_ns - now).abs() < 1_000_000_000, "{state:?}, {now}");
        assert!(state.frequency_ppm.abs() <= 500.0, "MAXFREQ: {state:?}");
    }

    #[test]
    fn units_are_those_of_the_status_and_a_clock_in_error_is_not_synchronised() {
        // SAFETY: all its fields are integers, for which zero is a value.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        timex.offset = -7;
        timex.freq = 65_536 * 3 / 2;
        timex.maxerror = 12_000;
        let micros = of(0, &timex, 9);
        assert!(micros.is_synchronised);
        assert_eq!((micros.offset_ns, micros.max_error_us, micros.epoch_ns), (-7_000, 12_000, 9));
        assert!((micros.frequency_ppm - 1.5).abs() < f64::EPSILON);
        timex.status = libc::STA_NANO;
        assert_eq!(of(0, &timex, 9).offset_ns, -7);
        assert!(!of(libc::TIME_ERROR, &timex, 9).is_synchronised);
        timex.status = libc::STA_UNSYNC;
        assert!(!of(0, &timex, 9).is_synchronised);
    }

    #[test]
    fn daemons_are_those_that_run_and_unknown_where_programs_are_hidden() {
        let of = |processes: &[(u32, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("proc")).unwrap();
            for (pid, comm) in processes {
                let process = dir.path().join(format!("proc/{pid}"));
                std::fs::create_dir(&process).unwrap();
                std::fs::write(process.join("comm"), format!("{comm}\n")).unwrap();
            }
            daemons(&Root::tree(dir.path()).unwrap())
        };
        let names =
            |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[(1, "systemd"), (7, "chronyd"), (8, "chronyd")]), names(&["chronyd"]));
        let timesyncd = of(&[(1, "systemd"), (7, "systemd-timesyn")]);
        assert_eq!(timesyncd, names(&["systemd-timesyncd"]));
        assert_eq!(of(&[(1, "systemd"), (7, "sshd")]), names(&[]));
        // Without the first process others may be hidden too.
        assert_eq!(of(&[(7, "sshd")]), None);
        assert_eq!(of(&[(7, "ptp4l"), (8, "phc2sys")]), names(&["phc2sys", "ptp4l"]));
    }

    #[test]
    fn names_of_daemons_are_as_short_as_the_kernel_s() {
        assert!(DAEMONS.iter().all(|(comm, _)| comm.len() <= crate::read::thread::MAX_NAME_BYTES));
    }
}
