//! From a fact to its value, or to the gap that ends a rule.

use rxpath_core::Fact;

/// A fact that a rule needs and does not have: it is then not judged, and counted with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The host does not have it.
    Absent(String),
    /// The host has it and did not show it; what would.
    Denied(String),
}

/// A fact whose value a rule cannot do without.
pub trait RequiredFact {
    /// What is known.
    type Value;
    /// The value; a rule ends with the gap (`?`) where there is none.
    fn known(self) -> Result<Self::Value, Gap>;
}

impl<T> RequiredFact for Fact<T> {
    type Value = T;
    fn known(self) -> Result<T, Gap> {
        match self {
            Self::Ok { value } => Ok(value),
            Self::Absent { why } => Err(Gap::Absent(why)),
            Self::Denied { needs } => Err(Gap::Denied(needs)),
        }
    }
}

impl<'a, T> RequiredFact for &'a Fact<T> {
    type Value = &'a T;
    fn known(self) -> Result<&'a T, Gap> {
        self.as_ref().known()
    }
}

/// A part that a driver may leave out of an answer.
pub trait OrGap<T> {
    /// The part; a rule ends with the gap (`?`) where the driver does not report `what`.
    fn or_gap(self, what: &str) -> Result<T, Gap>;
}

impl<T> OrGap<T> for Option<T> {
    fn or_gap(self, what: &str) -> Result<T, Gap> {
        self.ok_or_else(|| Gap::Absent(format!("the driver does not report {what}")))
    }
}
