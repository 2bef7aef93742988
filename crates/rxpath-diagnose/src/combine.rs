//! Paired trials: the same load with the receive softirq moved off the sender's CPU, and without, in turn.
//!
//! One trial cannot distinguish the sender from the receive softirq in its call. If the sender gets faster without the
//! softirq, the softirq was a part of the limit. If it does not and is still full, the sender alone was the limit.
//! Anything else leaves the question open, and the verdict says why. Trials of equal settings differ by a few percent, so
//! every pair must say the same.

use rxpath_core::SortFew;
use rxpath_record::evidence::{SoftirqPlace, WindowEvidence};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, EvidenceLine, Stage};

use crate::diagnose;
use crate::lines::line;
use crate::stages::check_rules;
use crate::thresholds::{PAIRED_CLEAR_RATIO, PAIRED_RISE_RATIO, PAIRED_SAME_RATIO, PAIRS};
use crate::view::View;
use crate::wording::{change, cpus, percent, rate};

/// Two trials of the same load, one right after the other.
#[derive(Clone, Copy, Debug)]
pub struct TrialPair<'a> {
    /// With the receive softirq where the variant has it.
    pub before: &'a WindowEvidence,
    /// With the receive softirq on another CPU.
    pub after: &'a WindowEvidence,
}

/// Decides between sender and receive softirq with the help of paired trials.
///
/// `primary` is the verdict of [`diagnose`] on the trial that speaks for the variant. If it leaves nothing open, only
/// lines with the paired rates are added. Without a pair, it stays as it is. Rates in the text are those of the pair in the
/// middle.
///
/// **Caveat** differences under 10 % cannot be distinguished from noise. Trials of equal settings that scatter by 5 %
/// (normal) make all three pairs show a rise of 10 % about once in 1,400 runs.
pub fn combine(primary: &DiagnosisVerdict, pairs: &[TrialPair]) -> DiagnosisVerdict {
    let mut seen: Vec<Seen> = pairs.iter().map(Seen::new).collect();
    seen.sort_few_by(|a, b| a.rise().total_cmp(&b.rise()));
    let Some(middle) = seen.get(seen.len() / 2) else { return primary.clone() };
    let (before, after) = (&middle.before, &middle.after);
    let rates = [rates_line(before, after), offered_line(before, after)];
    let rates = rates.into_iter().chain(every_pair(&seen));
    if primary.stage != Stage::SenderOrSoftirq {
        let mut verdict = primary.clone();
        verdict.evidence.extend(rates);
        return verdict;
    }
    let after_verdict = diagnose(after.raw);
    let answer = answer(&seen, middle, &after_verdict);
    let mut evidence: Vec<EvidenceLine> = rates.collect();
    evidence.extend(answer.line.clone());
    let then = format!("in the paired trial: {}", after_verdict.sentence);
    evidence.push(line(then, "the diagnosis of the paired trial"));
    evidence.extend(primary.evidence.iter().cloned());
    let remedies = remedies(&answer, after, primary, &after_verdict);
    DiagnosisVerdict {
        check_rules: check_rules(answer.stage, after.raw.ledger.unit),
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

struct Seen<'a> {
    before: View<'a>,
    after: View<'a>,
}

impl<'a> Seen<'a> {
    fn new(pair: &TrialPair<'a>) -> Self {
        Self { before: View::new(pair.before), after: View::new(pair.after) }
    }

    fn offered(&self) -> f64 {
        self.after.offered_pps() / self.before.offered_pps()
    }

    fn delivered(&self) -> f64 {
        self.after.delivered_pps() / self.before.delivered_pps()
    }

    fn rise(&self) -> f64 {
        self.delivered().max(self.offered())
    }

    fn is_usable(&self) -> bool {
        let moved = |view: &View| view.delivered_pps() > 0.0 && view.offered_pps() > 0.0;
        moved(&self.before) && moved(&self.after) && self.after.sender.count > 0
    }

    fn is_same(&self) -> bool {
        (1.0 / PAIRED_SAME_RATIO..=PAIRED_SAME_RATIO).contains(&self.offered())
            && self.after.sender.lead.is_full()
            && !self.after.loses()
    }
}

struct Answer {
    stage: Stage,
    confidence: Confidence,
    sentence: String,
    line: Option<EvidenceLine>,
}

fn answer(seen: &[Seen], middle: &Seen, after_verdict: &DiagnosisVerdict) -> Answer {
    let (before, after) = (&middle.before, &middle.after);
    let undecided = |why: String| Answer {
        stage: Stage::SenderOrSoftirq,
        confidence: Confidence::Weak,
        sentence: format!(
            "the sender or the receive softirq is the limit, and the paired trials do not show which: {why}"
        ),
        line: None,
    };
    let stayed = |view: &View| {
        matches!(view.raw.softirq, SoftirqPlace::SenderCall) || view.softirq_on_sender()
    };
    if seen.iter().any(|pair| stayed(&pair.after)) {
        return undecided("the receive softirq stayed on the sender's CPU".into());
    }
    if !seen.iter().all(Seen::is_usable) {
        return undecided("a trial carried no traffic or was not measured".into());
    }
    if seen.iter().all(|pair| pair.rise() >= PAIRED_RISE_RATIO) {
        return softirq(seen, middle);
    }
    if seen.iter().all(Seen::is_same) {
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
    if !after.sender.lead.is_full() {
        return undecided(format!(
            "there the sender had time left, because something else held it up ({})",
            after_verdict.sentence
        ));
    }
    undecided(format!(
        "the delivered rate changed by {}, and the pairs cannot distinguish that from noise or from the cost of the move",
        change(before.delivered_pps(), after.delivered_pps())
    ))
}

fn softirq(seen: &[Seen], middle: &Seen) -> Answer {
    let (before, after) = (&middle.before, &middle.after);
    let on = cpus(&before.sender.cpus);
    let still_full = after.sender.lead.is_full();
    let freed = 1.0 - 1.0 / middle.rise();
    let line = still_full.then(|| {
        let text = format!(
            "the sender was full in both trials, so {} of what a datagram cost {on} was receive work",
            percent(freed)
        );
        line(text, "ratio of the two rates")
    });
    let delivers_more = |pair: &Seen| pair.delivered() >= PAIRED_RISE_RATIO;
    let what = if delivers_more(middle) {
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
    let sure = middle.rise() >= PAIRED_CLEAR_RATIO && seen.iter().all(delivers_more);
    let whole = seen.iter().all(|pair| pair.before.gaps.is_empty() && pair.after.gaps.is_empty());
    Answer {
        stage: Stage::Softirq,
        confidence: Confidence::strong_if(sure && whole && seen.len() >= PAIRS),
        sentence: format!(
            "the receive softirq in the sender's calls was a part of the limit: {what}"
        ),
        line,
    }
}

/// By how much each pair's rate changed.
fn every_pair(seen: &[Seen]) -> Option<EvidenceLine> {
    let each =
        seen.iter().map(|pair| change(pair.before.delivered_pps(), pair.after.delivered_pps()));
    let text = format!("delivered, change of each pair: {}", each.collect::<Vec<_>>().join(", "));
    (seen.len() > 1).then(|| line(text, "the receiver's counts in the windows of all pairs"))
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

fn remedies(
    answer: &Answer,
    after: &View,
    primary: &DiagnosisVerdict,
    then: &DiagnosisVerdict,
) -> Vec<String> {
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
