//! Times of options whose plain numbers have a unit of their own; a time with a unit is accepted too.

use crate::{ItemCount, Nanos, ParseUnitError};

/// A time whose plain number has this unit.
///
/// # Errors
/// In words, if it is neither.
pub fn in_unit(text: &str, unit: &str, example: &'static str) -> Result<Nanos, String> {
    let text = text.trim();
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '_'));
    let text = if is_plain { format!("{text}{unit}") } else { text.to_owned() };
    text.parse().map_err(|error: ParseUnitError| error.with_example(example).to_string())
}

/// A plain number of ns or a time with its unit.
///
/// # Errors
/// In words, if it is neither.
pub fn nanoseconds(text: &str) -> Result<Nanos, String> {
    if let Ok(ItemCount(ns)) = text.parse() {
        return Ok(Nanos(ns));
    }
    text.parse::<Nanos>().map_err(|error| error.to_string())
}

/// `5.5`, `500ns`, `2us`, in microseconds.
///
/// # Errors
/// In words, if it is neither a number nor a time.
pub fn microseconds(text: &str) -> Result<f64, String> {
    if let Ok(us) = text.trim().parse::<f64>() {
        return if us.is_finite() && us >= 0.0 { Ok(us) } else { Err(WANTED.into()) };
    }
    let Nanos(ns) = text.parse().map_err(|_: ParseUnitError| WANTED.to_owned())?;
    Ok(ns as f64 / 1e3)
}

/// The cost of entering and leaving an interrupt, in microseconds: none takes a millisecond.
///
/// # Errors
/// As [`microseconds`], and from a millisecond on.
pub fn irq_entry(text: &str) -> Result<f64, String> {
    match microseconds(text)? {
        us if us < 1000.0 => Ok(us),
        us => Err(format!("{us} us: expected less than 1000 us")),
    }
}

/// A setting that the kernel stores in whole microseconds.
///
/// # Errors
/// As [`microseconds`], and with a fraction.
pub fn whole_microseconds(text: &str) -> Result<u64, String> {
    /// More than a quarter of an hour is not coalescing.
    const MOST: f64 = 1e9;
    let us = microseconds(text)?;
    if us > MOST || us.fract() != 0.0 {
        return Err(format!("{us} us: a whole number of microseconds up to {MOST} expected"));
    }
    Ok(us as u64)
}

const WANTED: &str = "microseconds or a time with its unit expected, for example 5.5 or 500ns";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_number_is_nanoseconds_where_the_option_says_so() {
        let of = |text: &str| nanoseconds(text).ok();
        assert_eq!((of("2000"), of("2k"), of("2us")), (Some(Nanos(2000)), of("2us"), of("2000")));
        assert!(of("-4").is_none() && of("").is_none() && of("2 parsecs").is_none());
    }

    #[test]
    fn a_plain_number_is_microseconds_and_a_unit_is_taken() {
        for (text, us) in
            [("5.5", 5.5), ("500ns", 0.5), ("50us", 50.0), ("1ms", 1000.0), ("0", 0.0)]
        {
            assert_eq!(microseconds(text), Ok(us), "{text}");
        }
        for text in ["-1", "nan", "5 parsecs", "", "inf"] {
            assert!(microseconds(text).is_err(), "{text}");
        }
        assert_eq!(irq_entry("5us"), Ok(5.0));
        assert!(irq_entry("1ms").is_err());
        assert_eq!(whole_microseconds("50us"), Ok(50));
        assert_eq!(whole_microseconds("50"), Ok(50));
        assert!(whole_microseconds("1500ns").is_err() && whole_microseconds("1h").is_err());
    }
}
