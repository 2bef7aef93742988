//! The paired trial: the same load with the receive softirq moved off the sender's CPU.
//!
//! One trial cannot distinguish the sender from the receive softirq in its call. If the sender gets faster without the
//! softirq, the softirq was a part of the limit. If it does not and is still full, the sender alone was the limit.
//! Anything else leaves the question open, and the verdict says why.

use rxpath_record::evidence::{Evidence, SoftirqPlace};
use rxpath_record::verdict::{Confidence, EvidenceLine, Stage, Verdict};

use crate::diagnose;
use crate::lines::line;
use crate::stages::info;
use crate::thresholds::{PAIRED_CLEAR_RATIO, PAIRED_RISE_RATIO, PAIRED_SAME_RATIO};
use crate::view::View;
use crate::wording::{change, cpus, percent, rate};

/// Decides between sender and receive softirq with the help of a paired trial.
///
/// `primary` is the verdict of [`diagnose`] on `primary_evidence`; `paired` is the same load with the receive softirq
/// on another CPU. If the primary verdict leaves nothing open, only a line with the paired rates is added. The evidence
/// has the rates of both trials.
///
/// **Caveat** two single trials: differences under 10 % cannot be distinguished from noise.
pub fn combine(primary: &Verdict, primary_evidence: &Evidence, paired: &Evidence) -> Verdict {
    let (before, after) = (View::new(primary_evidence), View::new(paired));
    let rates = [rates_line(&before, &after), offered_line(&before, &after)];
    if primary.stage != Stage::SenderOrSoftirq {
        let mut verdict = primary.clone();
        verdict.evidence.extend(rates);
        return verdict;
    }
    let after_verdict = diagnose(paired);
    let answer = answer(&before, &after, &after_verdict);
    let mut evidence: Vec<EvidenceLine> = rates.into();
    evidence.extend(answer.line.clone());
    let then = format!("in the paired trial: {}", after_verdict.sentence);
    evidence.push(line(then, "the diagnosis of the paired trial"));
    evidence.extend(primary.evidence.iter().cloned());
    let remedies = remedies(&answer, &after, primary, &after_verdict);
    Verdict {
        check_rules: info(answer.stage).check_rules.iter().map(|id| (*id).to_owned()).collect(),
        // Without the softirq, the paired trial shows the next limit.
        next: match answer.stage {
            Stage::Softirq => vec![after_verdict.sentence.clone()],
            _ => primary.next.clone(),
        },
        stage: answer.stage,
        cpu: primary.cpu,
        confidence: answer.confidence,
        sentence: answer.sentence,
        evidence,
        remedies,
        paired_trial: None,
    }
}

struct Answer {
    stage: Stage,
    confidence: Confidence,
    sentence: String,
    line: Option<EvidenceLine>,
}

fn answer(before: &View, after: &View, after_verdict: &Verdict) -> Answer {
    let undecided = |why: String| Answer {
        stage: Stage::SenderOrSoftirq,
        confidence: Confidence::Weak,
        sentence: format!(
            "the sender or the receive softirq is the limit, and the paired trial does not show which: {why}"
        ),
        line: None,
    };
    if matches!(after.raw.softirq, SoftirqPlace::SenderCall) || after.softirq_on_sender() {
        return undecided("the receive softirq stayed on the sender's CPU".into());
    }
    let usable = |view: &View| view.delivered_pps() > 0.0 && view.offered_pps() > 0.0;
    if !usable(before) || !usable(after) || after.sender.count == 0 {
        return undecided("one of the two trials carried no traffic or was not measured".into());
    }
    let delivered = after.delivered_pps() / before.delivered_pps();
    let offered = after.offered_pps() / before.offered_pps();
    if delivered >= PAIRED_RISE_RATIO || offered >= PAIRED_RISE_RATIO {
        return softirq(before, after, delivered.max(offered));
    }
    let sender_full = after.sender.lead.is_full();
    let same = |ratio: f64| (1.0 / PAIRED_SAME_RATIO..=PAIRED_SAME_RATIO).contains(&ratio);
    if same(offered) && sender_full && !after.loses() {
        let on = cpus(&before.sender.cpus);
        return Answer {
            stage: Stage::Sender,
            confidence: Confidence::Fair,
            sentence: format!(
                "the sender is the limit: with the receive softirq moved off {on} it offers no more ({}) and its thread is still full",
                change(before.offered_pps(), after.offered_pps())
            ),
            line: None,
        };
    }
    if !sender_full {
        return undecided(format!(
            "there the sender had time left, because something else held it up ({})",
            after_verdict.sentence
        ));
    }
    undecided(format!(
        "the delivered rate changed by {}, which two single trials cannot distinguish from noise or from the cost of the move",
        change(before.delivered_pps(), after.delivered_pps())
    ))
}

fn softirq(before: &View, after: &View, ratio: f64) -> Answer {
    let on = cpus(&before.sender.cpus);
    let still_full = after.sender.lead.is_full();
    let freed = 1.0 - 1.0 / ratio;
    let line = still_full.then(|| {
        let text = format!(
            "the sender was full in both trials, so {} of what a datagram cost {on} was receive work",
            percent(freed)
        );
        line(text, "ratio of the two rates")
    });
    let delivered_more = after.delivered_pps() >= PAIRED_RISE_RATIO * before.delivered_pps();
    let what = if delivered_more {
        format!(
            "moved off {on}, it lets {} be delivered instead of {} ({})",
            rate(after.delivered_pps()),
            rate(before.delivered_pps()),
            change(before.delivered_pps(), after.delivered_pps())
        )
    } else {
        format!(
            "moved off {on}, it lets {} be offered instead of {} ({}); another limit then keeps the delivered rate at {}",
            rate(after.offered_pps()),
            rate(before.offered_pps()),
            change(before.offered_pps(), after.offered_pps()),
            rate(after.delivered_pps())
        )
    };
    let sure = ratio >= PAIRED_CLEAR_RATIO && delivered_more;
    let whole = before.gaps.is_empty() && after.gaps.is_empty();
    Answer {
        stage: Stage::Softirq,
        confidence: if sure && whole { Confidence::Strong } else { Confidence::Fair },
        sentence: format!(
            "the receive softirq in the sender's calls was a part of the limit: {what}"
        ),
        line,
    }
}

fn rates_line(before: &View, after: &View) -> EvidenceLine {
    let text = format!(
        "delivered: {} with the receive softirq on {}, {} with it on {} ({})",
        rate(before.delivered_pps()),
        cpus(&before.softirq_cpus),
        rate(after.delivered_pps()),
        cpus(&after.softirq_cpus),
        change(before.delivered_pps(), after.delivered_pps()),
    );
    line(text, "the receiver's counts in both windows")
}

fn offered_line(before: &View, after: &View) -> EvidenceLine {
    let text = format!(
        "offered: {} and {} ({})",
        rate(before.offered_pps()),
        rate(after.offered_pps()),
        change(before.offered_pps(), after.offered_pps()),
    );
    line(text, "the sender's counts in both windows")
}

fn remedies(answer: &Answer, after: &View, primary: &Verdict, then: &Verdict) -> Vec<String> {
    match answer.stage {
        Stage::Softirq => {
            let place = match after.raw.softirq {
                SoftirqPlace::NapiThread { .. } => {
                    "keep the NAPI thread (/sys/class/net/IF/threaded)"
                }
                _ => "keep the RPS mask (/sys/class/net/IF/queues/rx-0/rps_cpus)",
            };
            let mut all = vec![format!(
                "{place} that moved the receive softirq to {}",
                cpus(&after.softirq_cpus)
            )];
            all.extend(then.remedies.iter().map(|remedy| format!("then: {remedy}")));
            all
        }
        Stage::Sender => then.remedies.clone(),
        // The trial that was proposed has been run.
        _ => {
            let again = "repeat both trials, longer and several times, on a quiet machine";
            let others = primary.remedies.iter().skip(1).cloned();
            std::iter::once(again.to_string()).chain(others).collect()
        }
    }
}
