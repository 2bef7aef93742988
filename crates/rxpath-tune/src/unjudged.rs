//! Rules that could not be judged, and why by group.
//!
//! A rule answers from what was read alone. Where its source is not there, is not reported or cannot be read, it says
//! neither that all is well nor that something is wrong, and is counted here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::prelude::tally;

rxpath_core::named! {
    /// Why a rule could not be judged.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Reason {
        /// The file or object is not on this host, or not in the captured tree.
        NotThere => "not-there",
        /// The kernel, the driver or the capture does not tell it.
        NotTold => "not-told",
        /// It is there, and cannot be read or is not what it should be.
        Unreadable => "unreadable",
        /// It is there, and needs more privilege.
        Privilege => "privilege",
    }
    /// Its name, as in JSON.
    pub fn word(self) -> &'static str
}

impl Reason {
    /// The group of a gap's own words.
    ///
    /// A fact keeps the words of its gap alone, those of `rxpath_host::HostError`.
    pub fn of(why: &str) -> Self {
        let is_path = |text: &str| text.contains('/') || text.contains(".json");
        if why.ends_with(": no such file or object") {
            Self::NotThere
        } else if why.contains(": not supported here, needs ") {
            Self::NotTold
        } else if why.starts_with("cannot ")
            || why.contains(" does not hold ")
            || why.split_once(": ").is_some_and(|(source, _)| is_path(source))
        {
            Self::Unreadable
        } else {
            Self::NotTold
        }
    }

    /// Words behind a number of rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotThere => "have no source here",
            Self::NotTold => "are not reported by kernel, driver or capture",
            Self::Unreadable => "have a source that cannot be read",
            Self::Privilege => "need more privilege",
        }
    }
}

/// A rule that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unjudged {
    /// The rule.
    pub id: String,
    /// The device, for rules about devices.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<String>,
    /// The group of its reason.
    pub reason: Reason,
    /// The reason.
    pub text: String,
}

impl Unjudged {
    /// The rule `id`, and what is missing to judge it.
    pub fn new(id: &str, device: Option<&str>, text: String) -> Self {
        Self { id: id.into(), device: device.map(str::to_owned), reason: Reason::of(&text), text }
    }
}

/// How many rules could not be judged, by why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnjudgedCounts(BTreeMap<Reason, usize>);

impl UnjudgedCounts {
    /// Counts each rule once, by its first reason; those that answered elsewhere are not counted. `unseen` are the rules
    /// that need more privilege.
    pub fn of<'a>(
        unjudged: &'a [Unjudged],
        unseen: impl Iterator<Item = &'a str>,
        answered: &BTreeSet<&str>,
    ) -> Self {
        let mut first: BTreeMap<&str, Reason> = BTreeMap::new();
        let denied = unseen.map(|id| (id, Reason::Privilege));
        for (id, reason) in denied.chain(unjudged.iter().map(|one| (one.id.as_str(), one.reason))) {
            if !answered.contains(id) {
                first.entry(id).or_insert(reason);
            }
        }
        Self(tally(first.into_values()))
    }

    /// Those of this group.
    pub fn of_reason(&self, reason: Reason) -> usize {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// All of them.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }
}

/// `12 rules could not be judged: 9 have no source here, 3 need more privilege`; empty when there is none.
impl fmt::Display for UnjudgedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        if total == 0 {
            return Ok(());
        }
        let rules = if total == 1 { "rule" } else { "rules" };
        let groups: Vec<String> =
            self.0.iter().map(|(reason, count)| format!("{count} {}", reason.as_str())).collect();
        write!(f, "{total} {rules} could not be judged: {}", groups.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_host::HostError;

    fn of(error: HostError) -> Reason {
        match error.into_gap::<()>() {
            rxpath_core::Fact::Absent { why } => Reason::of(&why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_words_of_each_error_are_in_the_right_group() {
        let missing = HostError::Missing { path: "/proc/x".into() };
        assert_eq!(of(missing), Reason::NotThere);
        let unsupported =
            HostError::Unsupported { what: "read /sys/x".into(), needs: "a driver".into() };
        assert_eq!(of(unsupported), Reason::NotTold);
        assert_eq!(of(HostError::malformed("/proc/x", 3, "no number")), Reason::Unreadable);
        assert_eq!(of(HostError::malformed("eth0.json", 0, "cut")), Reason::Unreadable);
        let io = HostError::Io {
            op: "read",
            path: "/proc/x".into(),
            source: std::io::Error::other("broken"),
        };
        assert_eq!(of(io), Reason::Unreadable);
        assert_eq!(Reason::of("/proc/x does not hold a number"), Reason::Unreadable);
        assert_eq!(Reason::of("the driver does not report its rings"), Reason::NotTold);
    }

    #[test]
    fn a_rule_is_counted_once_and_not_when_it_answered_elsewhere() {
        let one =
            |id: &str, device: &str, text: &str| Unjudged::new(id, Some(device), text.to_owned());
        let unjudged = [
            one("a", "eth0", "/x: no such file or object"),
            one("a", "eth1", "/x: no such file or object"),
            one("b", "eth1", "cannot read /y: I/O error"),
            one("c", "eth0", "/z: no such file or object"),
        ];
        let unseen = std::iter::once("d");
        let counts = UnjudgedCounts::of(&unjudged, unseen, &BTreeSet::from(["c"]));
        assert_eq!(
            counts.to_string(),
            "3 rules could not be judged: 1 have no source here, 1 have a source that cannot be read, 1 need more privilege"
        );
        assert_eq!(UnjudgedCounts::default().to_string(), "");
        assert_eq!(Reason::ALL.map(|reason| counts.of_reason(reason)), [1, 0, 1, 1]);
    }

    #[test]
    fn a_reason_has_one_name() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
        }
    }
}
