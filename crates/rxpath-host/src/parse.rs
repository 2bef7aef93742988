//! What the parsers of this crate share: where a text is wrong, and numbers that say what they were.

use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use crate::HostError;

/// A text that is not what its source should hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {why}")]
pub struct ParseError {
    /// Line, from 1; 0 when the whole text is meant.
    pub line: usize,
    /// What is wrong and what was expected.
    pub why: String,
}

impl ParseError {
    /// An error in `line` (from 1).
    pub fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }

    /// The same error with the source's path.
    pub fn at(self, path: impl Into<PathBuf>) -> HostError {
        HostError::Malformed { path: path.into(), line: self.line, why: self.why }
    }
}

/// The number in `word`, or what was expected there.
pub(crate) fn number<T: FromStr>(
    line: usize,
    what: &str,
    word: Option<&str>,
) -> Result<T, ParseError> {
    let word = word.ok_or_else(|| missing(line, what))?;
    word.parse().map_err(|_| ParseError::new(line, format!("{what} is `{}`", shorten(word))))
}

/// The hexadecimal number in `word`, or what was expected there.
pub(crate) fn hex(line: usize, what: &str, word: Option<&str>) -> Result<u32, ParseError> {
    let word = word.ok_or_else(|| missing(line, what))?;
    u32::from_str_radix(word, 16)
        .map_err(|_| ParseError::new(line, format!("{what} is `{}`, not hex", shorten(word))))
}

fn missing(line: usize, what: &str) -> ParseError {
    ParseError::new(line, format!("{what} is missing"))
}

/// The CPU number in a column head such as `CPU12`.
pub(crate) fn cpu_heads(line: usize, text: &str) -> Result<Vec<u32>, ParseError> {
    text.split_whitespace()
        .map(|word| {
            word.strip_prefix("CPU").and_then(|n| n.parse().ok()).ok_or_else(|| {
                ParseError::new(line, format!("column head `{}` is not CPU<n>", shorten(word)))
            })
        })
        .collect()
}

/// Nothing but digits: `+5` and an empty text are no numbers in a name.
pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// At most 40 characters of what is quoted in a message: sources may be binary garbage.
pub(crate) fn shorten(word: &str) -> String {
    let clean: String =
        word.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    if word.chars().nth(40).is_some() { clean + "..." } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_number_is_named_and_shortened() {
        let error = number::<u64>(3, "the drops", Some(&"x".repeat(90))).unwrap_err();
        assert_eq!(error.line, 3);
        assert_eq!(error.why, format!("the drops is `{}...`", "x".repeat(40)));
        assert_eq!(number::<u64>(1, "it", None).unwrap_err().why, "it is missing");
    }
}
