//! Scheduler classes of threads, as options and scenarios write them: `batch`, `fifo:10`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::ParseUnitError;

/// A scheduler class and its priority (sched(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum SchedClass {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_BATCH`: taken for a computation that nobody waits for.
    Batch,
    /// `SCHED_IDLE`: runs when nobody else on its CPU wants to.
    Idle,
    /// `SCHED_FIFO` with this priority: runs before all of the classes above.
    Fifo(u8),
    /// `SCHED_RR` with this priority: like FIFO, in turns with threads of the same priority.
    RoundRobin(u8),
}

impl FromStr for SchedClass {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |why: &str| ParseUnitError::new(text, "a scheduler class", why, "fifo:10");
        let priority = |number: &str| {
            let known = number.parse().ok().filter(|priority| (1..=99).contains(priority));
            known.ok_or_else(|| bad("a priority is from 1 to 99"))
        };
        match text.split_once(':') {
            None => match text {
                "other" => Ok(Self::Other),
                "batch" => Ok(Self::Batch),
                "idle" => Ok(Self::Idle),
                "fifo" | "rr" => Err(bad("it needs a priority")),
                _ => Err(bad("use other, batch, idle, fifo:PRIORITY or rr:PRIORITY")),
            },
            Some(("fifo", number)) => priority(number).map(Self::Fifo),
            Some(("rr", number)) => priority(number).map(Self::RoundRobin),
            Some(_) => Err(bad("only fifo and rr have a priority")),
        }
    }
}

impl fmt::Display for SchedClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Batch => f.write_str("batch"),
            Self::Idle => f.write_str("idle"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

crate::as_text!(SchedClass);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_class_without_its_priority_and_a_wrong_one_are_refused() {
        for (text, words) in [
            ("fifo", "it needs a priority"),
            ("fifo:0", "from 1 to 99"),
            ("rr:100", "from 1 to 99"),
            ("idle:3", "only fifo and rr"),
            ("realtime", "use other, batch"),
            ("", "use other, batch"),
        ] {
            let error = text.parse::<SchedClass>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(priority in 1u8..=99, kind in 0..5) {
            let class = match kind {
                0 => SchedClass::Other,
                1 => SchedClass::Batch,
                2 => SchedClass::Idle,
                3 => SchedClass::Fifo(priority),
                _ => SchedClass::RoundRobin(priority),
            };
            prop_assert_eq!(class.to_string().parse::<SchedClass>().unwrap(), class);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,12}") {
            let _ = text.parse::<SchedClass>();
        }
    }
}
