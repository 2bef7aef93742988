//! Numbers with their units, as users type them and as results print them.
//!
//! `10k` and `1M` are decimal counts, `64KiB` is binary, `64kB` decimal, `10us` a duration, `50kpps` and `2.5Gbit` rates.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::number::scaled;
pub use crate::number::{grouped, si};

/// A text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not {what}: {why}; for example `{example}`")]
pub struct ParseUnitError {
    text: String,
    what: &'static str,
    why: String,
    example: &'static str,
}

impl ParseUnitError {
    pub(crate) fn new(text: &str, what: &'static str, why: &str, example: &'static str) -> Self {
        Self { text: text.trim().into(), what, why: why.into(), example }
    }

    /// The same with another example, where not every quantity of its kind would be accepted.
    #[must_use]
    pub fn with_example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}

/// A number of things: packets, datagrams, connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(with = "u64")]
pub struct ItemCount(pub u64);

/// A rate of packets, requests or transactions.
///
/// **Unit** 1/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(with = "u64")]
pub struct Rate(pub u64);

/// A rate of bits.
///
/// **Unit** bit/s. **Caveat** `bps` is refused: tc(8) reads it as bytes, others as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(with = "u64")]
pub struct BitRate(pub u64);

/// A span or an instant in nanoseconds.
///
/// **Unit** ns. **Caveat** an instant is `CLOCK_MONOTONIC` unless its name says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(with = "u64")]
pub struct Nanos(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(with = "u64")]
pub struct Bytes(pub u64);

type Suffixes = &'static [(&'static str, f64)];

/// Rounding to a whole number may change a value by this much.
const ROUNDING_RATIO: f64 = 1e-3;

const COUNT: Suffixes = &[("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
const RATE: Suffixes = &[
    ("", 1.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("pps", 1.0),
    ("kpps", 1e3),
    ("Mpps", 1e6),
    ("rps", 1.0),
    ("krps", 1e3),
    ("Mrps", 1e6),
];
const BITRATE: Suffixes = &[
    ("", 1.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("bit", 1.0),
    ("kbit", 1e3),
    ("Mbit", 1e6),
    ("Gbit", 1e9),
];
const TIME: Suffixes = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("m", 60e9),
    ("h", 3600e9),
];
const SIZE: Suffixes = &[
    ("", 1.0),
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("k", 1024.0),
    ("K", 1024.0),
    ("M", 1_048_576.0),
    ("G", 1_073_741_824.0),
];

fn parse(
    text: &str,
    what: &'static str,
    example: &'static str,
    suffixes: Suffixes,
) -> Result<u64, ParseUnitError> {
    let bad = |why: &str| ParseUnitError::new(text, what, why, example);
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(trimmed.len());
    let (digits, suffix) = trimmed.split_at(split);
    if digits.is_empty() {
        return Err(bad("it does not start with a number"));
    }
    let suffix = suffix.trim_start();
    let Some((_, factor)) = suffixes.iter().find(|(name, _)| *name == suffix) else {
        let known: Vec<&str> =
            suffixes.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        return Err(bad(&if suffix.is_empty() {
            format!("the unit is missing (one of {})", known.join(", "))
        } else {
            format!("unit `{suffix}` is not one of {}", known.join(", "))
        }));
    };
    let digits = digits.replace('_', "");
    if let Ok(whole) = digits.parse::<u64>() {
        // Whole numbers stay exact: f64 would lose digits above 2^53.
        return whole.checked_mul(*factor as u64).ok_or_else(|| bad("the number is too large"));
    }
    let value = digits.parse::<f64>().map_err(|_| bad("the number is malformed"))? * factor;
    if value >= u64::MAX as f64 {
        return Err(bad("the number is too large"));
    }
    let whole = value.round();
    // 1.1 MiB is some whole number of bytes; a third of a packet is a mistake.
    if (value - whole).abs() > value * ROUNDING_RATIO {
        return Err(bad(&format!("it is not a whole number, {whole} is the nearest")));
    }
    Ok(whole as u64)
}

macro_rules! quantity {
    ($name:ident, $what:literal, $example:literal, $suffixes:expr) => {
        impl FromStr for $name {
            type Err = ParseUnitError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse(text, $what, $example, $suffixes).map(Self)
            }
        }

        impl From<$name> for u64 {
            fn from(quantity: $name) -> Self {
                quantity.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            /// Takes a plain number in the base unit or a text with a unit.
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Visit;
                impl serde::de::Visitor<'_> for Visit {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} such as \"{}\"", $what, $example)
                    }
                    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<$name, E> {
                        Ok($name(value))
                    }
                    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<$name, E> {
                        u64::try_from(value).map($name).map_err(|_| E::custom("it is negative"))
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                from.deserialize_any(Visit)
            }
        }
    };
}

quantity!(ItemCount, "a count", "10k", COUNT);
quantity!(Rate, "a rate", "50kpps", RATE);
quantity!(BitRate, "a bit rate", "2.5Gbit", BITRATE);
quantity!(Nanos, "a duration", "10us", TIME);
quantity!(Bytes, "a size", "64KiB", SIZE);

impl Nanos {
    /// A span of whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// As the standard library's duration.
    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl fmt::Display for ItemCount {
    /// At most four digits: `1.147M`, `350k`, `12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&si(self.0 as f64))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = scaled(self.0 as f64, &[("s", 1e9), ("ms", 1e6), ("us", 1e3)]);
        f.write_str(&text.unwrap_or_else(|| format!("{}ns", self.0)))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(" GiB", 1_073_741_824.0), (" MiB", 1_048_576.0), (" KiB", 1024.0)];
        let text = scaled(self.0 as f64, &units);
        f.write_str(&text.unwrap_or_else(|| format!("{} B", self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_type() {
        assert_eq!("10k".parse::<ItemCount>().unwrap().0, 10_000);
        assert_eq!("1.5M".parse::<ItemCount>().unwrap().0, 1_500_000);
        assert_eq!("10us".parse::<Nanos>().unwrap().0, 10_000);
        assert_eq!("0.3s".parse::<Nanos>().unwrap().0, 300_000_000);
        assert_eq!("64KiB".parse::<Bytes>().unwrap().0, 65_536);
        assert_eq!("64kB".parse::<Bytes>().unwrap().0, 64_000);
        assert_eq!("32".parse::<Bytes>().unwrap().0, 32);
    }

    #[test]
    fn a_rate_has_the_unit_of_what_it_counts() {
        for (text, wanted) in
            [("50k", 50_000), ("1.2M", 1_200_000), ("50kpps", 50_000), ("0.5krps", 500)]
        {
            assert_eq!(text.parse::<Rate>().unwrap(), Rate(wanted), "{text}");
        }
        for (text, wanted) in
            [("10Gbit", 10_000_000_000), ("2.5Gbit", 2_500_000_000), ("64k", 64_000)]
        {
            assert_eq!(text.parse::<BitRate>().unwrap(), BitRate(wanted), "{text}");
        }
        let error = "10Gbit".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`10Gbit` is not a rate: unit `Gbit` is not one of k, K, M, G, pps, kpps, Mpps, rps, krps, Mrps; for example `50kpps`"
        );
        for text in ["50kpps", "1Gbps", "1gbit"] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_without_unit_is_refused_with_an_example() {
        let text = "10".parse::<Nanos>().unwrap_err().to_string();
        assert!(text.contains("unit is missing") && text.contains("10us"), "{text}");
        let own = "10".parse::<Nanos>().unwrap_err().with_example("5min").to_string();
        assert_eq!(own, text.replace("10us", "5min"));
    }

    #[test]
    fn a_part_of_one_is_refused_and_not_rounded() {
        for text in ["0.3", "1.5", "0.0004k"] {
            assert!(
                text.parse::<ItemCount>().unwrap_err().to_string().contains("not a whole number"),
                "{text}"
            );
        }
        assert!("0.3ns".parse::<Nanos>().is_err());
        assert_eq!("1.5k".parse::<ItemCount>().unwrap(), ItemCount(1500));
        assert_eq!("0.5us".parse::<Nanos>().unwrap(), Nanos(500));
        assert_eq!("1.1MiB".parse::<Bytes>().unwrap(), Bytes(1_153_434));
        assert_eq!("1.147M".parse::<ItemCount>().unwrap(), ItemCount(1_147_000));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "k", "-1", "1x", "1e9", "99999999999999999999", "1.2.3", "20000000000000G"]
        {
            assert!(text.parse::<ItemCount>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_at_most_four_digits() {
        assert_eq!(ItemCount(1_147_000).to_string(), "1.15M");
        assert_eq!(ItemCount(350_000).to_string(), "350k");
        assert_eq!(Nanos(2_500).to_string(), "2.5us");
        assert_eq!(Bytes(212_992).to_string(), "208 KiB");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,30}") {
            let _ = text.parse::<ItemCount>();
            let _ = text.parse::<Nanos>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<BitRate>();
        }

        /// A rate is a count, whatever its unit counts; a refusal is one line with an example.
        #[test]
        fn rates_are_counts_with_a_unit(
            whole in 0..10_000u64,
            thousandths in 0..1000u64,
            factor in prop::sample::select(vec!["k", "M"]),
            unit in prop::sample::select(vec!["pps", "rps"]),
        ) {
            let number = format!("{whole}.{thousandths:03}{factor}");
            let ItemCount(count) = number.parse().unwrap();
            prop_assert_eq!(format!("{number}{unit}").parse::<Rate>().unwrap(), Rate(count));
            prop_assert_eq!(format!("{number}bit").parse::<BitRate>().unwrap(), BitRate(count));
            prop_assert_eq!(number.parse::<Rate>().unwrap(), Rate(count));
            let refused = format!("{number}{unit}").parse::<BitRate>().unwrap_err().to_string();
            prop_assert!(refused.ends_with("for example `2.5Gbit`") && !refused.contains('\n'));
        }

        #[test]
        fn whole_numbers_are_exact(n in any::<u64>()) {
            prop_assert_eq!(n.to_string().parse::<ItemCount>().unwrap().0, n);
        }
    }
}
