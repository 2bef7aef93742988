//! What is wrong with a host of an experiment, and what to do about it.

use rxpath_core::Warning;

use crate::error::{LabError, cannot, with_hint};

/// What is wrong with a host.
#[derive(Debug)]
pub struct HostFault {
    /// The host that is not ready; empty if the inventory contradicts itself.
    pub host: String,
    error: LabError,
}

impl HostFault {
    pub(super) fn of(host: &str, error: LabError) -> Self {
        Self { host: host.to_owned(), error }
    }

    /// A line for people: the host, what is wrong, what to do about it.
    pub fn text(&self) -> String {
        with_hint(self.named(), self.error.hint())
    }

    /// For a result that programs read.
    pub fn warning(&self) -> Warning {
        let warning = Warning::new("host-not-ready", self.named());
        match self.error.hint() {
            "" => warning,
            hint => warning.cure(hint),
        }
    }

    /// What is wrong, with the host's name.
    fn named(&self) -> String {
        let text = self.error.to_string();
        // `sut: no answer`, `sut has no route`.
        let rest = text.strip_prefix(&self.host);
        let is_named = self.host.is_empty() || rest.is_some_and(|it| it.starts_with([':', ' ']));
        if is_named { text } else { format!("{}: {text}", self.host) }
    }
}

/// Refuses to begin with any fault; names all.
///
/// # Errors
/// The fault itself if there is one; [`LabError::CannotRun`] with a line for each of several.
pub(super) fn refuse(mut faults: Vec<HostFault>) -> Result<(), LabError> {
    if faults.len() > 1 {
        let lines: Vec<String> = faults.iter().map(HostFault::text).collect();
        let (count, lines) = (lines.len(), lines.join("\n  "));
        return Err(cannot(
            format!("{count} faults of hosts, and nothing was started:\n  {lines}"),
            "rxpath hosts check FILE looks at all hosts of an inventory, and starts nothing",
        ));
    }
    faults.pop().map_or(Ok(()), |fault| Err(fault.error))
}

/// What was found of a host; an error becomes a fault of it.
pub(super) fn noted<T>(
    host: &str,
    found: Result<T, LabError>,
    faults: &mut Vec<HostFault>,
) -> Option<T> {
    found.map_err(|error| faults.push(HostFault::of(host, error))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_without_an_error_stay_in_their_order() {
        let mut faults = Vec::new();
        let found = [("a", Ok(1)), ("b", Err(cannot("b: no", ""))), ("c", Ok(3))];
        let sound = found.into_iter().filter_map(|(host, one)| noted(host, one, &mut faults));
        assert_eq!(sound.collect::<Vec<_>>(), [1, 3]);
        assert_eq!(faults.iter().map(HostFault::text).collect::<Vec<_>>(), ["b: no"]);
    }

    #[test]
    fn a_fault_is_one_line_that_begins_with_its_host() {
        let fault = HostFault::of("gen1", cannot("gen1: ssh wants a password", "set up a key"));
        assert_eq!(fault.text(), "gen1: ssh wants a password; set up a key");
        assert_eq!(fault.warning().text, "gen1: ssh wants a password");
        assert_eq!(fault.warning().cure.as_deref(), Some("set up a key"));
        let fault = HostFault::of("sut", LabError::Internal { what: "a thread".into() });
        assert_eq!(fault.text(), "sut: internal: a thread");
        let of = |host: &str, what: &str| HostFault::of(host, cannot(what, "")).text();
        assert_eq!(of("a", "no answer to ssh"), "a: no answer to ssh", "a letter is no name");
        assert_eq!(of("sut", "sut2 is one machine with it"), "sut: sut2 is one machine with it");
        assert_eq!(of("sut", "sut has no route to 10.0.0.1"), "sut has no route to 10.0.0.1");
        assert_eq!(of("", "the inventory is odd"), "the inventory is odd");
    }

    #[test]
    fn a_run_is_refused_with_every_fault() {
        assert!(refuse(Vec::new()).is_ok());
        let one = || HostFault::of("gen1", cannot("gen1: no", "yes"));
        let only = refuse(vec![one()]).unwrap_err();
        assert!(matches!(&only, LabError::CannotRun { hint, .. } if hint == "yes"), "{only}");
        let lost =
            LabError::OnHost { host: "sut".into(), text: "busy".into(), hint: "wait".into() };
        let both = refuse(vec![one(), HostFault::of("sut", lost)]).unwrap_err().to_string();
        let all = "2 faults of hosts, and nothing was started:\n  gen1: no; yes\n  sut: busy; wait";
        assert_eq!(both, all);
    }
}
