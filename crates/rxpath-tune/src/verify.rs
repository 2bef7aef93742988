//! Whether what was changed is still so.

use rxpath_host::HostError;
use rxpath_host::write::change::{ChangeOutcome, same_of};
use rxpath_host::write::journal::{Contents, JournalEntry};
use rxpath_host::write::setter::Setter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a change stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Standing {
    /// It reads as asked.
    Holds,
    /// It reads as the kernel had made it, which is not what was asked.
    AsLeft,
    /// The kernel took it and changed nothing when it was asked.
    Ignored,
    /// The kernel said no when it was asked.
    Refused {
        /// Its words.
        why: String,
    },
    /// It was planned and never tried: a step before it was refused, or the program died.
    NeverReached,
    /// It has another value now: somebody changed it, or the device was reset.
    Drifted,
    /// What it belonged to is gone.
    Gone,
    /// It can't be read now.
    Unread {
        /// Why.
        why: String,
    },
}

impl Standing {
    /// The names of all.
    pub const WORDS: [&'static str; 8] =
        ["holds", "as-left", "ignored", "refused", "never-reached", "drifted", "gone", UNREAD];

    /// Its name, as in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::AsLeft => "as-left",
            Self::Ignored => "ignored",
            Self::Refused { .. } => "refused",
            Self::NeverReached => "never-reached",
            Self::Drifted => "drifted",
            Self::Gone => "gone",
            Self::Unread { .. } => UNREAD,
        }
    }
}

/// The name of what can't be read, a change or a whole journal.
pub const UNREAD: &str = "unread";
/// The code of the warning of `rxpath tune verify` about a journal that can't be read.
pub const UNREADABLE: &str = "unreadable";

/// One change, and the value now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// The setting, under its present name.
    pub target: String,
    /// The value asked for.
    pub asked: String,
    /// The value now.
    pub now: Option<String>,
    /// How they compare.
    #[serde(flatten)]
    pub standing: Standing,
}

impl Verified {
    /// Whether nothing changed it since.
    pub fn holds(&self) -> bool {
        matches!(self.standing, Standing::Holds | Standing::AsLeft)
    }
}

/// Compares each change that was not undone with the host, of several changes to a setting the last; and says what was
/// ignored, refused or never reached.
pub fn verify<S: Setter>(setter: &mut S, contents: &Contents) -> Vec<Verified> {
    if contents.forgotten {
        return Vec::new();
    }
    let left: Vec<&JournalEntry> = contents.entries.iter().filter(|entry| !entry.undone).collect();
    let last = |at: usize| left[at + 1..].iter().all(|later| later.target != left[at].target);
    let mut all: Vec<Verified> =
        (0..left.len()).filter(|at| last(*at)).map(|at| one(setter, left[at])).collect();
    // What was undone by hand was given up, and what was planned after it too.
    if contents.entries.iter().all(|entry| !entry.undone) {
        all.extend(contents.never_reached().iter().map(|(target, asked)| Verified {
            target: target.to_string(),
            asked: asked.clone(),
            now: None,
            standing: Standing::NeverReached,
        }));
    }
    all
}

fn one<S: Setter>(setter: &mut S, entry: &JournalEntry) -> Verified {
    let mut verified = Verified {
        target: entry.target.to_string(),
        asked: entry.asked.clone(),
        now: None,
        standing: Standing::Gone,
    };
    if let Err(error) = look(setter, entry, &mut verified) {
        verified.standing = Standing::Unread { why: error.reason() };
    }
    verified
}

fn look<S: Setter>(
    setter: &mut S,
    entry: &JournalEntry,
    verified: &mut Verified,
) -> Result<(), HostError> {
    let located = match &entry.identity {
        Some(identity) => setter.locate(&entry.target, identity)?,
        None => Some(entry.target.clone()),
    };
    let Some(target) = located else { return Ok(()) };
    verified.target = target.to_string();
    let now = setter.read(&target)?;
    let now = now.map_or_else(String::new, |now| target.as_far_as(&now, &entry.asked));
    let left = entry.end.as_ref().and_then(|(after, _)| after.as_ref());
    let left = left.map(|left| target.as_far_as(left, &entry.asked));
    // How it ended, of a change of which nothing came.
    let end = entry.end.as_ref().filter(|_| entry.unchanged).map(|(_, end)| end);
    verified.standing = match end {
        _ if same_of(&target, &entry.asked, &now) => Standing::Holds,
        Some(ChangeOutcome::Ignored) => Standing::Ignored,
        Some(ChangeOutcome::Refused { why }) => Standing::Refused { why: why.clone() },
        _ if left.as_deref().is_some_and(|left| same_of(&target, left, &now)) => Standing::AsLeft,
        _ => Standing::Drifted,
    };
    verified.now = Some(now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_has_one_name() {
        let all = [
            Standing::Holds,
            Standing::AsLeft,
            Standing::Ignored,
            Standing::Refused { why: String::new() },
            Standing::NeverReached,
            Standing::Drifted,
            Standing::Gone,
            Standing::Unread { why: String::new() },
        ];
        assert_eq!(all.each_ref().map(Standing::word), Standing::WORDS);
        for standing in all {
            assert_eq!(serde_json::to_value(&standing).unwrap()["state"], standing.word());
        }
    }
}
