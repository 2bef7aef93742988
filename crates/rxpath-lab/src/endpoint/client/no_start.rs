//! An endpoint that did not start: what ssh and the shell there said instead.

/// What an endpoint that did not start left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoStart {
    /// What its shell printed before the marker should have come.
    pub printed: String,
    /// The last lines of its standard error.
    pub last_words: String,
    /// How its transport ended; `None` if it did not.
    pub status: Option<i32>,
    /// Its transport was still there at the end of the limit.
    pub is_late: bool,
}

impl NoStart {
    /// Everything that ssh and the shell there said.
    pub fn words(&self) -> String {
        let parts = [self.last_words.as_str(), self.printed.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
    }
}
