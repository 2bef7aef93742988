//! A rule's claim.

use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, EvidenceLine, PairedTrial, Stage};

use crate::lines::{drops, next_loss};
use crate::part::Part;
use crate::remedy::Remedy;
use crate::view::View;

/// One rule's answer.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The stage it names.
    pub stage: Stage,
    /// The CPU concerned.
    pub cpu: Option<u32>,
    /// Its confidence if all its evidence is there.
    pub confidence: Confidence,
    /// What it rests on.
    pub needs: &'static [Part],
    /// Datagrams lost by this cause; 0 if the claim is not about loss.
    pub lost_packets: u64,
    /// One sentence.
    pub sentence: String,
    /// Its numbers, strongest first.
    pub evidence: Vec<EvidenceLine>,
    /// What to change, most effective first.
    pub remedies: Vec<Remedy>,
    /// The trial that would decide.
    pub paired_trial: Option<PairedTrial>,
    /// Text added to the verdict of another rule; empty = nothing.
    pub next: String,
}

impl Claim {
    /// A claim of `stage` with nothing but its sentence.
    pub fn new(
        stage: Stage,
        confidence: Confidence,
        needs: &'static [Part],
        sentence: String,
    ) -> Self {
        Self {
            stage,
            cpu: None,
            confidence,
            needs,
            lost_packets: 0,
            sentence,
            evidence: Vec::new(),
            remedies: Vec::new(),
            paired_trial: None,
            next: String::new(),
        }
    }

    /// A claim of `stage` about the reader's socket, and all that was lost there.
    pub fn at_socket(view: &View, stage: Stage, confidence: Confidence, sentence: String) -> Self {
        let lost = view.lost_at(Place::SocketBuffer);
        Self::new(stage, confidence, Part::READING, sentence).losing_at(
            view,
            Place::SocketBuffer,
            lost,
        )
    }

    /// Names the CPU.
    pub fn on(mut self, cpu: Option<u32>) -> Self {
        self.cpu = cpu;
        self
    }

    /// Says how many datagrams it explains.
    pub fn losing(mut self, packets: u64) -> Self {
        self.lost_packets = packets;
        self
    }

    /// Says how many datagrams it explains, lost at `place`, and what that adds to another rule's verdict.
    pub fn losing_at(self, view: &View, place: Place, packets: u64) -> Self {
        self.losing(packets).next(next_loss(view, packets, place))
    }

    /// The same, with the counters of `place` as evidence.
    pub fn dropped_at(self, view: &View, place: Place, packets: u64) -> Self {
        self.losing_at(view, place, packets).because(drops(view, place))
    }

    /// Adds the evidence lines, strongest first.
    pub fn because(mut self, lines: impl IntoIterator<Item = EvidenceLine>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// Adds a remedy after those that are more effective.
    pub fn remedy(self, remedy: impl Into<Remedy>) -> Self {
        self.remedies([remedy])
    }

    /// Adds the remedies that apply, after those that are more effective.
    pub fn remedies(mut self, remedies: impl IntoIterator<Item = impl Into<Remedy>>) -> Self {
        self.remedies.extend(remedies.into_iter().map(Into::into));
        self
    }

    /// Names the trial that would decide.
    pub fn decided_by(mut self, trial: Option<PairedTrial>) -> Self {
        self.paired_trial = trial;
        self
    }

    /// What this claim adds to another rule's verdict.
    pub fn next(mut self, text: impl Into<String>) -> Self {
        self.next = text.into();
        self
    }
}
