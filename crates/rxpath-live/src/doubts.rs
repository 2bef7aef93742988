//! What a live window leaves open, as warnings.

use rxpath_core::Warning;

use crate::live::{Seen, UDP_SOCKETS};

/// A window that begins later than this after the command gets a warning.
const LATE_S: f64 = 1.0;

/// Warns that earlier events are not in the answer.
pub fn late(began_after_s: f64) -> Option<Warning> {
    (began_after_s > LATE_S).then(|| {
        let text = format!("the window began {began_after_s:.1} s after the command");
        Warning::new("late-window", text)
            .because("events before the window are not judged; on a busy machine it takes seconds to attach BPF programs")
            .cure("use --no-bpf to begin at once, or raise rxpath's priority (`nice -n -5 rxpath diagnose`)")
    })
}

/// What of a window is not judged, or judged with less than there could be.
pub fn warnings(seen: &Seen, port: Option<u16>) -> Vec<Warning> {
    let gap = |(what, why): (&String, &String)| {
        Warning::new("not-read", format!("{what} was not read: {why}"))
    };
    let mut warnings: Vec<Warning> = seen.gaps.iter().map(gap).collect();
    let blind = seen.evidence.probed.iter().flat_map(|probed| &probed.gaps);
    warnings.extend(by_reason(blind).into_iter().map(|gap| {
        Warning::new("not-measured", gap)
            .because("a limit that only these show is not found: waits for a socket's lock, stolen CPU time, wrong tick accounting, drops without a counter")
            .cure("run as root on a kernel with BTF, in a build with BPF; `--no-bpf` turns this warning off")
    }));
    let quiet = seen.evidence.ledger.offered_packets == 0;
    if let Some(port) = port {
        let text = format!(
            "losses before the sockets are those of all ports; only the UDP sockets of port {port} are judged"
        );
        warnings.push(Warning::new("all-ports", text).because(
            "the kernel keeps the counters before the sockets per namespace, not per port",
        ));
    }
    let [owners, measured] = seen.owners_count;
    if measured < owners {
        let text = format!(
            "{owners} processes have UDP sockets: the threads of {measured} were measured, first those of sockets with queued or dropped packets"
        );
        warnings
            .push(Warning::new("owners-capped", text).because("only measured readers are judged"));
    }
    if seen.sockets_count == 0 && !seen.gaps.contains_key(UDP_SOCKETS) {
        let which = port.map_or_else(String::new, |port| format!(" on port {port}"));
        let text = format!("no UDP socket{which} was open in the window");
        warnings.push(Warning::new("no-socket", text));
    } else if !quiet && seen.sockets_count > 0 && seen.owned_count == 0 {
        warnings.push(
            Warning::new("readers-unknown", "the owners of these sockets could not be read")
                .because("only root can read the descriptors of other users' processes")
                .cure("run as root, or as the user of the receiving program"),
        );
    }
    warnings
}

/// Measurements that failed (`WHAT: WHY`, or `WHAT: STEP: WHY`), grouped by reason.
fn by_reason<'a>(gaps: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for gap in gaps {
        let why = gap.splitn(3, ": ").last().unwrap_or(gap);
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, same)) => same.push(gap),
            None => all.push((why, vec![gap])),
        }
    }
    let what = |gap: &&str| gap.split(": ").next().unwrap_or_default().to_owned();
    let line = |(why, same): (&str, Vec<&str>)| match same.as_slice() {
        [one] => (*one).to_owned(),
        same => format!("{}: {why}", same.iter().map(what).collect::<Vec<_>>().join(", ")),
    };
    all.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_for_one_reason_is_told_once() {
        let gaps = [
            "tasks: account CPU time: needs CAP_BPF; without it: counters",
            "locks: watch locks: needs CAP_BPF; without it: counters",
            "reads: watch reads: Linux 6.3",
            "all of it",
        ];
        let told = by_reason(gaps.map(str::to_owned).iter());
        let one = "tasks, locks: needs CAP_BPF; without it: counters";
        assert_eq!(told, [one, gaps[2], gaps[3]]);
    }

    #[test]
    fn a_window_that_begins_late_says_so() {
        assert_eq!(late(0.4), None);
        let late = late(4.5).unwrap();
        assert!(late.text.contains("began 4.5 s after the command"), "{late:?}");
    }
}
