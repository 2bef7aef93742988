//! Watches this host for some seconds.

use std::collections::BTreeMap;

use rxpath_bpf::ProbeCost;
use rxpath_diagnose::diagnose;
use rxpath_live::live;
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::verdict::DiagnosisVerdict;

use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;
use crate::output::json;
use crate::output::table::sentences;

/// A shorter window says nothing about queues.
const SHORTEST: Nanos = Nanos::from_millis(100);
/// The longest window allowed.
const LONGEST: Nanos = Nanos::from_secs(3600);

/// A window that begins later than this after the command gets a warning.
const LATE_S: f64 = 1.0;

/// The options of the watch.
pub(super) struct Ask {
    pub duration: Nanos,
    pub port: Option<u16>,
    pub scope: ScopeArgs,
    pub probes: bool,
}

#[derive(Serialize)]
struct Settings<'a> {
    duration_s: f64,
    port: Option<u16>,
    #[serde(flatten)]
    scope: &'a ScopeArgs,
    probes: bool,
}

/// The `result` object.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// Which stage limits, and why.
    #[serde(flatten)]
    verdict: DiagnosisVerdict,
    /// The evidence for the verdict.
    evidence_read: WindowEvidence,
    /// TCP's receive-path counters that changed, by name.
    tcp_counters: BTreeMap<String, u64>,
    /// The cost of the measurement for this host.
    probe_cost: ProbeCost,
    /// The time that is judged.
    window: Window,
}

/// The time that is judged.
#[derive(Serialize, schemars::JsonSchema)]
struct Window {
    /// Its begin, UTC (RFC 3339).
    began: String,
    /// Time between the command and the begin: finding socket owners and attaching BPF programs takes time.
    began_after_s: f64,
    /// Its length.
    duration_s: f64,
}

impl Window {
    fn of(seen: &live::Seen) -> Self {
        Self {
            began: format!("{:.3}", seen.began.at),
            began_after_s: seen.began.after.as_secs_f64(),
            duration_s: seen.evidence.window_s,
        }
    }

    /// Warns that earlier events are not in the answer.
    fn late(&self) -> Option<Warning> {
        (self.began_after_s > LATE_S).then(|| {
            let text = format!("the window began {:.1} s after the command", self.began_after_s);
            Warning::new("late-window", text)
                .because("events before the window are not judged; on a busy machine it takes seconds to attach BPF programs")
                .cure("use --no-bpf to begin at once, or raise rxpath's priority (`nice -n -5 rxpath diagnose`)")
        })
    }
}

pub(super) fn run(ask: &Ask, format: &FormatArgs) -> Outcome {
    let (duration, probes) = (ask.duration, ask.probes);
    if !(SHORTEST..=LONGEST).contains(&duration) {
        return Err(Failure::usage(format!("--duration {duration}: {SHORTEST} to {LONGEST}")));
    }
    // Before other threads exist.
    let only = ask.scope.enter()?.only;
    let interrupt = Interrupt::catch()?;
    let (length, port) = (Duration::from_nanos(duration.0), ask.port);
    let watched = live::LiveRequest { length, port, probes, only, udp_pause: 0 };
    let begun = || crate::note!("watching for {duration}");
    let seen = live::watch(&watched, interrupt.stop(), begun)
        .map_err(|error| Failure::new(Exit::Cannot, error))?;
    let verdict = diagnose(&seen.evidence);
    let window = Window::of(&seen);
    let mut warnings = warnings(&seen, port);
    warnings.extend(window.late());
    let whole = "losses before the sockets are those of the whole network namespace";
    warnings.extend(
        ask.scope
            .warning(whole, "the sockets and their readers")
            .map(|one| one.because("the kernel counts UDP and TCP by namespace, not by process")),
    );
    if format.is_json() {
        let settings =
            Settings { duration_s: seen.evidence.window_s, port, scope: &ask.scope, probes };
        let result = Judged {
            verdict,
            evidence_read: seen.evidence,
            tcp_counters: seen.beside,
            probe_cost: seen.probe_cost,
            window,
        };
        json(&Envelope::new("diagnose", settings, result, warnings))?;
        return Ok(interrupt.caught().map_or(Exit::Done, Exit::Signal));
    }
    for warning in &warnings {
        output::warning(warning);
    }
    let mut text = super::text(&verdict);
    text += &format!(
        "window: {:.2} s from {}, {:.1} s after the command\n",
        window.duration_s, window.began, window.began_after_s
    );
    for (name, count) in &seen.beside {
        text += &format!("TCP: {name} changed by {count}\n");
    }
    text += &output::steal::cost(&seen.probe_cost);
    output::text(&sentences(&text))?;
    Ok(interrupt.caught().map_or(Exit::Done, Exit::Signal))
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

fn warnings(seen: &live::Seen, port: Option<u16>) -> Vec<Warning> {
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
    if seen.sockets_count == 0 && !seen.gaps.contains_key(live::UDP_SOCKETS) {
        let which = port.map_or_else(String::new, |port| format!(" on port {port}"));
        warnings.push(Warning::new(
            "no-socket",
            format!("no UDP socket{which} was open in the window"),
        ));
    } else if !quiet && seen.sockets_count > 0 && seen.owned_count == 0 {
        warnings.push(
            Warning::new("readers-unknown", "the owners of these sockets could not be read")
                .because("only root can read the descriptors of other users' processes")
                .cure("run as root, or as the user of the receiving program"),
        );
    }
    warnings
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
        let window = |began_after_s| Window {
            began: "2026-01-01T00:00:00.000Z".into(),
            began_after_s,
            duration_s: 3.0,
        };
        assert_eq!(window(0.4).late(), None);
        let late = window(4.5).late().unwrap();
        assert!(late.text.contains("began 4.5 s after the command"), "{late:?}");
    }
}
