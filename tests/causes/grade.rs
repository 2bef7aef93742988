//! Grades an answer against the truth. Pure: `tests/it/causes.rs` tests it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A stage, and words that must stand somewhere in the answer. An empty stage is any; no words are asked for by "".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said(pub &'static str, pub &'static str);

/// From best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Grade {
    /// What is true.
    Right,
    /// It does not know, is not sure, or names what it could not see.
    Honest,
    /// Something else, fairly sure.
    Wrong,
    /// Something else, and no doubt about it.
    WrongStrong,
}

impl Grade {
    /// One word for the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Honest => "honest",
            Self::Wrong => "wrong",
            Self::WrongStrong => "wrong strong",
        }
    }
}

/// What one window said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub stage: String,
    pub confidence: String,
    pub sentence: String,
    /// Evidence and remedies.
    pub more: String,
    pub remedies: String,
}

impl Answer {
    /// Of the object that `rxpath diagnose --json` prints.
    pub fn of(json: &Value) -> Option<Self> {
        let result = json.get("result")?;
        let text = |name: &str| result[name].as_str().map(str::to_owned);
        let lines = |name: &str| -> String {
            let all = result[name].as_array().into_iter().flatten();
            let line = |it: &Value| it.as_str().or_else(|| it["text"].as_str()).map(str::to_owned);
            all.filter_map(line).collect::<Vec<_>>().join("\n")
        };
        let remedies = lines("remedies");
        Some(Self {
            stage: text("stage")?,
            confidence: text("confidence")?,
            sentence: text("sentence")?,
            more: format!("{}\n{remedies}\n{}", lines("evidence"), lines("next")),
            remedies,
        })
    }

    fn says(&self, said: &Said) -> bool {
        let has = |words| self.sentence.contains(words) || self.more.contains(words);
        (said.0.is_empty() || self.stage == said.0) && has(said.1)
    }
}

/// The grade of one answer. What is `honest` for a cause is so only where the answer leaves a doubt.
pub fn grade(right: &[Said], honest: &[Said], answer: &Answer) -> Grade {
    let sure = answer.confidence == "strong";
    if right.iter().any(|said| answer.says(said)) {
        return Grade::Right;
    }
    let unsure = answer.stage == "unknown" || answer.confidence == "weak";
    if unsure || (!sure && honest.iter().any(|said| answer.says(said))) {
        return Grade::Honest;
    }
    if sure { Grade::WrongStrong } else { Grade::Wrong }
}

/// Of several windows: the middle one, the worse of two; but a wrong answer without doubt stays one.
pub fn of_windows(grades: &[Grade]) -> Option<Grade> {
    let mut sorted = grades.to_vec();
    sorted.sort_unstable();
    let worst = *sorted.last()?;
    Some(if worst == Grade::WrongStrong { worst } else { sorted[sorted.len() / 2] })
}
