//! An endpoint that did not start: what ssh and the shell there said instead.

use rxpath_remote::ssh;

/// The exit status of ssh for an error of its own.
const OF_SSH: i32 = 255;

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
    /// Whether ssh failed, and not what it started.
    pub fn is_of_ssh(&self) -> bool {
        self.status == Some(OF_SSH)
    }

    /// Everything that ssh and the shell there said; else what became of the copy that they took.
    pub fn words(&self) -> String {
        let is_refused = ssh::not_stored(&self.printed).is_some();
        let is_lost = if self.last_words.is_empty() {
            self.is_cut || is_refused
        } else {
            // Nothing of this is the host's reason: ssh says that a connection has ended, or a login shell spoke before.
            self.is_cut && !is_refused && (self.is_late || self.is_of_ssh())
        };
        if is_lost {
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
        let of = |printed: &str, last_words: &str, is_cut: bool| {
            let (printed, last_words) = (printed.to_owned(), last_words.to_owned());
            NoStart { printed, last_words, status: Some(0), is_late: false, is_cut }
        };
        let words =
            |printed: &str, last_words: &str, is_cut| of(printed, last_words, is_cut).words();
        let refused = "Welcome.\n@@rxpath-need x86_64\n@@rxpath-send\n@@rxpath-not-stored /d";
        let lost = "the copy of rxpath did not arrive whole";
        assert_eq!(words(refused, "", false), lost);
        assert_eq!(words("@@rxpath-send", "", true), lost);
        let full = "head: write error: No space left on device";
        assert_eq!(words(refused, full, false), format!("{full} | Welcome."));
        assert_eq!(words("@@rxpath-send", "", false), "");
        // The host's own words are the reason; those of ssh, or of a login shell before the transfer, are not.
        assert_eq!(words("@@rxpath-send", full, true), full);
        let cut = |printed: &str, last_words: &str| of(printed, last_words, true);
        let closed = cut("", "Connection to 192.0.2.1 closed by remote host.");
        assert_eq!(NoStart { status: Some(OF_SSH), ..closed }.words(), lost);
        let late = cut("", "mesg: ttyname failed");
        assert_eq!(NoStart { status: None, is_late: true, ..late }.words(), lost);
        let ended = cut("@@rxpath-not-stored /d", full);
        assert_eq!(NoStart { status: Some(OF_SSH), ..ended }.words(), full);
    }
}
