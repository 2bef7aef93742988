//! Which hosts of an experiment something is for.

use rxpath_core::PathSide;
use serde::{Deserialize, Serialize};

/// A side, all, or some by their aliases.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnHosts {
    /// Those that receive.
    #[default]
    Receivers,
    /// Those that send.
    Senders,
    /// All.
    All,
    /// These, by their aliases.
    #[serde(untagged)]
    These(Vec<String>),
}

impl OnHosts {
    /// The words for it; a list of aliases is the other way to write it.
    pub(super) const WORDS: &'static [&'static str] = &["receivers", "senders", "all"];

    /// Whether it is for this host of a side.
    pub fn has(&self, side: PathSide, alias: &str) -> bool {
        match self {
            Self::Receivers => side == PathSide::Rx,
            Self::Senders => side == PathSide::Tx,
            Self::All => true,
            Self::These(aliases) => aliases.iter().any(|one| one == alias),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_sides_and_a_list_is_aliases() {
        let read = |value| serde_json::from_value::<OnHosts>(value).unwrap();
        // An alias may be a word.
        let named = read(json!(["senders", "sut"]));
        assert_eq!(named, OnHosts::These(vec!["senders".into(), "sut".into()]));
        assert!(named.has(PathSide::Rx, "sut") && named.has(PathSide::Tx, "senders"));
        assert!(!named.has(PathSide::Tx, "gen1"));
        let sides = |on: &OnHosts| [PathSide::Tx, PathSide::Rx].map(|side| on.has(side, "x"));
        let all = [("receivers", [false, true]), ("senders", [true, false]), ("all", [true; 2])];
        for (word, wanted) in all {
            assert!(OnHosts::WORDS.contains(&word));
            assert_eq!(sides(&read(json!(word))), wanted, "{word}");
        }
        assert_eq!(serde_json::to_value(OnHosts::Senders).unwrap(), json!("senders"));
        assert_eq!(serde_json::to_value(&named).unwrap(), json!(["senders", "sut"]));
    }
}
