//! What is wrong with a scenario, where, and what would be right.

use std::path::PathBuf;

use rxpath_remote::inventory::BadInventory;
use thiserror::Error;

/// Why a scenario cannot be used. Each prints as one line.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// Neither a bundled name nor a file.
    #[error("no scenario is called `{name}`; {right}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest names, or all of them.
        right: String,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A line of the file or a `--set` is wrong.
    #[error("{place}: {wrong}; {right}")]
    Malformed {
        /// `FILE:LINE` or `--set KEY=VALUE`.
        place: String,
        /// What is wrong.
        wrong: String,
        /// What would be right.
        right: String,
    },
}

impl From<BadInventory> for ScenarioError {
    fn from(BadInventory { file, wrong, right }: BadInventory) -> Self {
        Self::Malformed { place: file, wrong, right }
    }
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Line of the scenario file, from 1.
    Line(usize),
    /// The whole text of a `--set`.
    Set(String),
}

/// Something wrong at a place, before the file's name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileError {
    pub at: At,
    pub wrong: String,
    pub right: String,
}

impl FileError {
    pub fn new(at: &At, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { at: at.clone(), wrong: wrong.into(), right: right.into() }
    }

    /// The error with the file's name.
    pub fn of(self, origin: &str) -> ScenarioError {
        let place = match self.at {
            At::Line(line) => format!("{origin}:{line}"),
            At::Set(text) => format!("--set {text}"),
        };
        ScenarioError::Malformed { place, wrong: self.wrong, right: self.right }
    }
}

/// The candidate that `word` was most likely meant to be.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.replace('-', "_").to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|known| {
            let plain = known.replace('-', "_").to_lowercase();
            (strsim::damerau_levenshtein(&word, &plain), known)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// `did you mean X?`, or the list of what is known.
pub(super) fn suggestion(word: &str, what: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates.iter().copied()) {
        Some(known) => format!("did you mean `{known}`?"),
        None if candidates.is_empty() => format!("there are no {what} here"),
        None => format!("{what} known here: {}", candidates.join(", ")),
    }
}

/// An error unless a word is one of those that a scenario may have there.
pub(super) fn one_of(
    at: &At,
    what: &str,
    word: &str,
    known: &[impl AsRef<str>],
) -> Result<(), FileError> {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    if known.contains(&word) {
        return Ok(());
    }
    let wrong = format!("`{word}` is no {what} of this scenario");
    Err(FileError::new(at, wrong, suggestion(word, &format!("{what}s"), &known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_word_that_was_meant() {
        let known = ["rcvbuf", "batch", "busy_poll", "udp-pinning"];
        assert_eq!(nearest("rcvbuff", known), Some("rcvbuf"));
        assert_eq!(nearest("busy-poll", known), Some("busy_poll"));
        assert_eq!(nearest("udp_pining", known), Some("udp-pinning"));
        assert_eq!(nearest("temperature", known), None);
    }

    #[test]
    fn lists_what_is_known_when_nothing_is_near() {
        assert_eq!(suggestion("zzz", "keys", &["a", "bb"]), "keys known here: a, bb");
    }
}
