//! What a parameter is: its sort, its range, and how messages and the documentation name them.

use rxpath_core::Nanos;

/// CPUs that a simulated machine can have.
pub const CPUS: u64 = 64;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A time: plain ns or a text with a unit. The range is in ns.
    Time,
    /// Packets per second.
    Rate,
    /// A number of these things.
    Count(&'static str),
    /// A size.
    Bytes,
    /// A number between the ends of the range, in thousandths.
    Ratio,
    /// A whole number that may be negative; the range is that of the value plus 20.
    Nice,
    /// One of these words.
    Word(&'static [&'static str]),
    /// true or false.
    Flag,
    /// CPU numbers.
    Cpus,
    /// Any text.
    Text,
    /// The states of a modulated Poisson process: `[{ rate = "10k", mean = "5ms" }, …]`.
    States,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParameterKey {
    /// `section.name`, or a name at the top of the file.
    pub name: &'static str,
    /// What its value is.
    pub sort: Sort,
    /// The smallest value and the largest.
    pub range: (u64, u64),
    /// As `--set` would give it; nothing when it has none.
    pub default: Option<&'static str>,
    /// What it means.
    pub what: &'static str,
}

impl ParameterKey {
    /// The unit, as messages and the table name it.
    pub fn unit(&self) -> String {
        match self.sort {
            Sort::Time => "time (plain numbers are ns)".into(),
            Sort::Rate => "packets/s".into(),
            Sort::Count(of) => of.into(),
            Sort::Bytes => "bytes".into(),
            Sort::Ratio => "ratio".into(),
            Sort::Nice => "nice value".into(),
            Sort::Word(words) => format!("one of {}", words.join(", ")),
            Sort::Flag => "true or false".into(),
            Sort::Cpus => "list of CPUs".into(),
            Sort::Text => "text".into(),
            Sort::States => "list of { rate, mean }".into(),
        }
    }

    /// The range in the unit's own words; nothing for words, flags and texts.
    pub fn range(&self) -> Option<String> {
        let (least, most) = self.range;
        match self.sort {
            Sort::Time => Some(format!("{} to {}", Nanos(least), Nanos(most))),
            Sort::Rate | Sort::Count(_) | Sort::Bytes | Sort::Cpus => {
                Some(format!("{least} to {most}"))
            }
            Sort::Ratio => Some(format!("{} to {}", least as f64 / 1e3, most as f64 / 1e3)),
            Sort::Nice => Some(format!("{} to {}", least as i64 - 20, most as i64 - 20)),
            Sort::States => Some("1 to 64 states".into()),
            Sort::Word(_) | Sort::Flag | Sort::Text => None,
        }
    }

    /// What the key's name lacks of its unit.
    pub(super) fn suffix(&self) -> &'static str {
        match self.sort {
            Sort::Time if !self.name.ends_with("_ns") => "_ns",
            Sort::Rate => "_pps",
            Sort::Count("packets") => "_packets",
            Sort::Bytes => "_bytes",
            Sort::Ratio => "_ratio",
            _ => "",
        }
    }
}
