//! A fact about a host: known, absent with its reason, or denied with the missing privilege.
//!
//! A reader never invents: a missing source is a recorded gap, never a zero.

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One requested fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Fact<T> {
    /// It was read.
    Ok {
        /// The value.
        value: T,
    },
    /// The host does not have it.
    Absent {
        /// Why, in words a user can act on.
        why: String,
    },
    /// The host has it and did not show it.
    Denied {
        /// The capability or permission that would show it.
        needs: String,
    },
}

/// A fact as it is written, its value not yet read.
#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", expecting = "internally tagged enum Fact")]
enum Written {
    Ok { value: Value },
    Absent { why: String },
    Denied { needs: String },
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Fact<T> {
    /// The value is read from [`Value`], whatever the fact is read from: a derived reader would be compiled for each pair
    /// of a type and a format.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::Ok { value } => {
                Self::ok(serde_json::from_value(value).map_err(D::Error::custom)?)
            }
            Written::Absent { why } => Self::Absent { why },
            Written::Denied { needs } => Self::Denied { needs },
        })
    }
}

impl<T> Default for Fact<T> {
    /// A fact that was not requested, or that an old recording does not hold.
    fn default() -> Self {
        Self::absent("not recorded")
    }
}

impl<T> Fact<T> {
    /// A fact that was read.
    pub fn ok(value: T) -> Self {
        Self::Ok { value }
    }

    /// A fact that this host does not have.
    pub fn absent(why: impl Into<String>) -> Self {
        Self::Absent { why: why.into() }
    }

    /// The value, or the reason why this host has none.
    pub fn of(value: Option<T>, why: impl Into<String>) -> Self {
        value.map_or_else(|| Self::absent(why), Self::ok)
    }

    /// A fact that this process may not see.
    pub fn denied(needs: impl Into<String>) -> Self {
        Self::Denied { needs: needs.into() }
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Ok { value } => Some(value),
            Self::Absent { .. } | Self::Denied { .. } => None,
        }
    }

    /// The value by move, if there is one.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Ok { value } => Some(value),
            Self::Absent { .. } | Self::Denied { .. } => None,
        }
    }

    /// The fact of a borrowed value.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Ok { value } => Fact::Ok { value },
            Self::Absent { why } => Fact::Absent { why: why.clone() },
            Self::Denied { needs } => Fact::Denied { needs: needs.clone() },
        }
    }

    /// As [`Fact::as_ref`], for a value that changes as it is used.
    pub fn as_mut(&mut self) -> Fact<&mut T> {
        match self {
            Self::Ok { value } => Fact::Ok { value },
            Self::Absent { why } => Fact::Absent { why: why.clone() },
            Self::Denied { needs } => Fact::Denied { needs: needs.clone() },
        }
    }

    /// Applies `f` to the value and keeps a gap a gap.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::ok(f(value)))
    }

    /// Applies `f`, which may find a gap, to the value and keeps a gap a gap.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Ok { value } => f(value),
            Self::Absent { why } => Fact::Absent { why },
            Self::Denied { needs } => Fact::Denied { needs },
        }
    }

    /// Why there is no value, in one line; `None` if there is one.
    pub fn gap(&self) -> Option<String> {
        match self {
            Self::Ok { .. } => None,
            Self::Absent { why } => Some(format!("absent: {why}")),
            Self::Denied { needs } => Some(format!("denied: needs {needs}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_not_a_value() {
        let fact: Fact<u64> = Fact::absent("no such device");
        assert_eq!(fact.value(), None);
        assert_eq!(fact.map(|v| v + 1).gap().as_deref(), Some("absent: no such device"));
    }

    #[test]
    fn a_value_changes_within_its_fact() {
        let mut fact = Fact::ok(1);
        assert_eq!(fact.as_mut().map(|value| std::mem::replace(value, 2)), Fact::ok(1));
        assert_eq!(fact, Fact::ok(2));
    }

    #[test]
    fn states_are_told_apart_in_json() {
        assert_eq!(serde_json::to_string(&Fact::ok(3)).unwrap(), r#"{"state":"ok","value":3}"#);
        assert_eq!(
            serde_json::to_string(&Fact::<u64>::denied("CAP_NET_ADMIN")).unwrap(),
            r#"{"state":"denied","needs":"CAP_NET_ADMIN"}"#
        );
    }

    #[test]
    fn what_is_written_is_read_back() {
        for fact in [Fact::ok(vec![1, 2]), Fact::absent("no such device"), Fact::denied("root")] {
            let text = serde_json::to_string(&fact).unwrap();
            assert_eq!(serde_json::from_str::<Fact<Vec<u32>>>(&text).unwrap(), fact, "{text}");
        }
    }

    #[test]
    fn what_is_no_fact_is_refused_with_its_place() {
        for (text, why) in [
            ("7", "invalid type: integer `7`, expected internally tagged enum Fact"),
            (r#"{"value":1}"#, "missing field `state`"),
            (r#"{"state":"ok"}"#, "missing field `value`"),
            (
                r#"{"state":"lost"}"#,
                "unknown variant `lost`, expected one of `ok`, `absent`, `denied`",
            ),
            (r#"{"state":"ok","value":"x"}"#, "invalid type: string \"x\", expected u32"),
        ] {
            let error = serde_json::from_str::<Vec<Fact<u32>>>(&format!("[{text}]")).unwrap_err();
            assert!(error.to_string().starts_with(why), "{error}");
            assert_eq!(error.line(), 1, "{error}");
        }
    }
}
