//! Values that are set together, as one line of text: `rx=4096 tx=1024`.
//!
//! The journal, the plan and the result hold this text, so a person can read and check each of them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Names with their values, in the kernel's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(String, String)>);

/// A text that is no list of pairs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{word}` is not NAME=VALUE")]
pub struct NoPair {
    word: String,
}

impl Pairs {
    /// Adds a pair; blanks in it are written as `%20`, so that a driver's odd names stay one word.
    pub fn push(&mut self, name: &str, value: impl fmt::Display) {
        self.0.push((one_word(name), one_word(&value.to_string())));
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those pairs of `self` for which `keep` holds, of name and value.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&str, &str) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, value)| keep(name, value)).cloned().collect())
    }

    /// The pairs of `self`, then those of `other` whose names `self` lacks.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let more = other.only(|name, _| self.get(name).is_none());
        Self([self.0.as_slice(), more.0.as_slice()].concat())
    }

    /// Those pairs of `self` that `other` has with another value, or lacks.
    #[must_use]
    pub fn unlike(&self, other: &Self) -> Self {
        self.only(|name, value| other.get(name) != Some(value))
    }

    /// Those pairs of `self` whose names `names` has.
    #[must_use]
    pub fn named_in(&self, names: &Self) -> Self {
        self.only(|name, _| names.get(name).is_some())
    }
}

fn one_word(text: &str) -> String {
    text.replace('%', "%25").replace(' ', "%20").replace('=', "%3D").replace(['\n', '\t'], "%20")
}

/// A name as the driver writes it.
pub(crate) fn as_written(word: &str) -> String {
    word.replace("%20", " ").replace("%3D", "=").replace("%25", "%")
}

impl<N: AsRef<str>, V: fmt::Display> FromIterator<(N, V)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(all: I) -> Self {
        let mut pairs = Self::default();
        all.into_iter().for_each(|(name, value)| pairs.push(name.as_ref(), value));
        pairs
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            write!(f, "{blank}{name}={value}")?;
        }
        Ok(())
    }
}

impl FromStr for Pairs {
    type Err = NoPair;

    fn from_str(text: &str) -> Result<Self, NoPair> {
        let pair = |word: &str| {
            let found = word.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = found.ok_or_else(|| NoPair { word: word.into() })?;
            Ok((name.to_owned(), value.to_owned()))
        };
        text.split_whitespace().map(pair).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn differences_are_found_by_name() {
        let before: Pairs = "rx=256 tx=256".parse().unwrap();
        let after: Pairs = "rx=512 tx=256".parse().unwrap();
        assert_eq!(after.unlike(&before).to_string(), "rx=512");
        assert_eq!(before.named_in(&after.unlike(&before)).to_string(), "rx=256");
        let more: Pairs = "rx=1 jumbo=8".parse().unwrap();
        assert_eq!(before.with(&more).to_string(), "rx=256 tx=256 jumbo=8");
        assert_eq!("rx".parse::<Pairs>().unwrap_err().to_string(), "`rx` is not NAME=VALUE");
    }

    proptest! {
        #[test]
        fn odd_names_stay_one_word(name in "[a-z %=]{1,12}", value in "[a-z %=]{0,12}") {
            let mut pairs = Pairs::default();
            pairs.push(&name, &value);
            let again: Pairs = pairs.to_string().parse().unwrap();
            prop_assert_eq!(&again, &pairs);
            prop_assert_eq!(&again.only(|_, _| true), &pairs);
            prop_assert!(again.only(|_, _| false).is_empty());
            prop_assert_eq!(&Pairs::default().with(&again), &pairs);
            let (read_name, read_value) = again.iter().next().unwrap();
            prop_assert_eq!(as_written(read_name), name);
            prop_assert_eq!(as_written(read_value), value);
        }
    }
}
