//! What a rule answers, and what it found.

use crate::facts::{Count, Counted, Evidence, Gap, Watched};
use crate::knob::Set;
use crate::weight::{Magnitude, Severity};

/// A rule's answer, or the fact that it would have needed.
pub type Checked = Result<Answer, Gap>;

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It does not apply here, and why.
    Silent(String),
    /// It applies, and all is well: what was observed.
    Fine(String),
    /// It applies, and this is wrong.
    Found(Box<Found>),
    /// What was recorded, without a judgement.
    Recorded(String),
    /// What makes numbers taken here mislead.
    Caution(String),
}

impl Answer {
    /// This is wrong: observed, expected, and why in one line.
    pub fn found(
        observed: impl Into<String>,
        expected: impl Into<String>,
        why: impl Into<String>,
    ) -> Checked {
        let (observed, expected, why) = (observed.into(), expected.into(), why.into());
        Ok(Self::Found(Box::new(Found { observed, expected, why, ..Found::default() })))
    }

    /// This is wrong, and the rule's file says what is expected and why: [`crate::rule::Rule::finding_expected`],
    /// [`crate::rule::Rule::finding_why`].
    pub fn observed(observed: impl Into<String>) -> Checked {
        Self::found(observed, "", "")
    }

    /// Does not apply, because of `why`.
    pub fn silent(why: impl Into<String>) -> Checked {
        Ok(Self::Silent(why.into()))
    }

    /// All is well.
    pub fn fine(observed: impl Into<String>) -> Checked {
        Ok(Self::Fine(observed.into()))
    }

    /// Recorded.
    pub fn recorded(value: impl Into<String>) -> Checked {
        Ok(Self::Recorded(value.into()))
    }

    /// A warning about numbers that are taken here.
    pub fn caution(text: impl Into<String>) -> Checked {
        Ok(Self::Caution(text.into()))
    }
}

/// What a rule found, before it is known for which goal it was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// What is, with its numbers.
    pub observed: String,
    /// What should be.
    pub expected: String,
    /// Why, in one line.
    pub why: String,
    /// What to change at runtime, in order.
    pub changes: Vec<Set>,
    /// What to do where no setting does it, or in addition to it.
    pub advice: Option<String>,
    /// This case is more or less severe than the rule's weight says.
    pub severity: Option<Severity>,
    /// This case has a larger or smaller effect than the rule's.
    pub size: Option<Magnitude>,
    /// No more severe than this, whatever the goal.
    pub at_most: Option<Severity>,
    /// The counter that it rests on.
    pub counted: Option<Counted>,
}

impl Found {
    /// Only a counter that rose between two readings asks for a change. What is known to be old is no more than
    /// `info`, and what was read once no more than `warn`.
    fn rest_on(&mut self, count: Count, watched: &Watched) {
        self.counted = Some(watched.counted(count));
        let evidence = count.evidence();
        self.at_most = match evidence {
            Evidence::Now => return,
            Evidence::Unknown => Some(Severity::Warn),
            Evidence::Old | Evidence::Never => Some(Severity::Info),
        };
        self.changes.clear();
        self.advice = evidence.remedy();
        if evidence == Evidence::Old {
            self.size = Some(Magnitude::Unmeasured);
        }
    }
}

/// What a finding says in addition. Other answers and gaps stay as they are.
pub(crate) trait Details: Sized {
    /// Alters the finding.
    fn with(self, alter: impl FnOnce(&mut Found)) -> Self;

    /// Adds a change.
    fn change(self, set: Set) -> Self {
        self.with(|found| found.changes.push(set))
    }

    /// Adds changes.
    fn changes(self, sets: impl IntoIterator<Item = Set>) -> Self {
        self.with(|found| found.changes.extend(sets))
    }

    /// Says what to do where no knob does it.
    fn advice(self, text: impl Into<String>) -> Self {
        self.with(|found| found.advice = Some(text.into()))
    }

    /// Sets the severity of this case.
    fn severity(self, severity: Severity) -> Self {
        self.with(|found| found.severity = Some(severity))
    }

    /// Sets the size of the effect in this case.
    fn size(self, size: Magnitude) -> Self {
        self.with(|found| found.size = Some(size))
    }

    /// Says that the finding rests on this counter.
    fn rests_on(self, count: Count, watched: &Watched) -> Self {
        self.with(|found| found.rest_on(count, watched))
    }
}

impl Details for Checked {
    fn with(mut self, alter: impl FnOnce(&mut Found)) -> Self {
        if let Ok(Answer::Found(found)) = &mut self {
            alter(found);
        }
        self
    }
}
