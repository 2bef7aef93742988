//! A fact about a host: known, absent with its reason, or denied with the missing privilege.
//!
//! A reader never invents: a missing source is a recorded gap, never a zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One requested fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    fn states_are_told_apart_in_json() {
        assert_eq!(serde_json::to_string(&Fact::ok(3)).unwrap(), r#"{"state":"ok","value":3}"#);
        assert_eq!(
            serde_json::to_string(&Fact::<u64>::denied("CAP_NET_ADMIN")).unwrap(),
            r#"{"state":"denied","needs":"CAP_NET_ADMIN"}"#
        );
    }
}
