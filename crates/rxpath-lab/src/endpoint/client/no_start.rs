//! An endpoint that did not start: what ssh and the shell there said instead.

use rxpath_remote::ssh;

/// What an endpoint that did not start left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoStart {
    /// What its host printed before the marker should have come.
    pub printed: String,
    /// The last lines of its standard error.
    pub last_words: String,
    /// How its transport ended; `None` if it did not.
    pub status: Option<i32>,
    /// Its transport was still there at the end of the limit.
    pub is_late: bool,
    /// The program was being sent, and not all of it was taken.
    pub is_cut: bool,
}

impl NoStart {
    /// Everything that ssh and the shell there said; else what became of the copy that they took.
    pub fn words(&self) -> String {
        if self.last_words.is_empty() && (self.is_cut || ssh::not_stored(&self.printed).is_some()) {
            return "the copy of rxpath did not arrive whole".into();
        }
        let greeting = ssh::greeting(&self.printed);
        let parts = [self.last_words.as_str(), greeting.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_did_not_arrive_is_named_where_nobody_says_why() {
        let words = |printed: &str, last_words: &str, is_cut: bool| {
            let (printed, last_words) = (printed.to_owned(), last_words.to_owned());
            NoStart { printed, last_words, status: Some(255), is_late: false, is_cut }.words()
        };
        let refused = "Welcome.\n@@rxpath-need x86_64\n@@rxpath-send\n@@rxpath-not-stored /d";
        let lost = "the copy of rxpath did not arrive whole";
        assert_eq!(words(refused, "", false), lost);
        assert_eq!(words("@@rxpath-send", "", true), lost);
        let full = "head: write error: No space left on device";
        assert_eq!(words(refused, full, false), format!("{full} | Welcome."));
        assert_eq!(words("@@rxpath-send", "", false), "");
    }
}
