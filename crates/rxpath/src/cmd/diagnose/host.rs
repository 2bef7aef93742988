//! Watches this host for some seconds.

use std::collections::BTreeMap;

use rxpath_bpf::ProbeCost;
use rxpath_core::number::grouped;
use rxpath_diagnose::diagnose;
use rxpath_live::{doubts, live};
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::verdict::DiagnosisVerdict;

use super::DiagnoseCommand;
use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;
use crate::cmd::values::check_window;
use crate::output::table::sentences;

/// A shorter window says nothing about queues.
const SHORTEST: Nanos = Nanos::from_millis(100);

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

pub(super) fn run(ask: &DiagnoseCommand) -> Outcome {
    let (duration, probes) = (ask.duration, !ask.no_bpf);
    check_window("--duration", duration, SHORTEST)?;
    // Before other threads exist.
    let only = ask.scope.enter()?.only;
    let interrupt = Interrupt::catch()?;
    let (length, port) = (Duration::from_nanos(duration.0), ask.port);
    let watched = live::LiveRequest { length, port, probes, only, udp_pause: 0 };
    let begun = || crate::note!("watching for {duration}");
    let seen = live::watch(&watched, interrupt.stop(), begun)?;
    let verdict = diagnose(&seen.evidence);
    let window = Window {
        began: format!("{:.3}", seen.began.at),
        began_after_s: seen.began.after.as_secs_f64(),
        duration_s: seen.evidence.window_s,
    };
    let mut warnings = doubts::warnings(&seen, port);
    warnings.extend(doubts::late(window.began_after_s));
    let whole = "losses before the sockets are those of the whole network namespace";
    warnings.extend(
        ask.scope
            .warning(whole, "the sockets and their readers")
            .map(|one| one.because("the kernel counts UDP and TCP by namespace, not by process")),
    );
    let settings = Settings { duration_s: window.duration_s, port, scope: &ask.scope, probes };
    let tcp = seen.evidence.tcp.as_ref();
    let result = Judged {
        verdict,
        tcp_counters: tcp.map(|tcp| tcp.counters.clone()).unwrap_or_default(),
        evidence_read: seen.evidence,
        probe_cost: seen.probe_cost,
        window,
    };
    let answer = Envelope::new("diagnose", settings, result, warnings);
    output::answer(ask.format.is_json(), &answer, text)?;
    Ok(interrupt.caught().map_or(Exit::Done, Exit::Signal))
}

fn text(judged: &Judged) -> String {
    let mut text = super::text(&judged.verdict);
    let Window { began, began_after_s, duration_s } = &judged.window;
    text += &format!(
        "window: {duration_s:.2} s from {began}, {began_after_s:.1} s after the command\n"
    );
    let counters = judged.tcp_counters.iter();
    text.extend(
        counters.map(|(name, count)| format!("TCP: {name} changed by {}\n", grouped(*count))),
    );
    sentences(&(text + &output::steal::cost(&judged.probe_cost)))
}
