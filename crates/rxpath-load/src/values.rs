//! Values of options as the plain numbers that workloads count with, and options with their defaults.

use std::str::FromStr;

use rxpath_core::plain_time::{self, in_unit};
use rxpath_core::{Bytes, ItemCount, Nanos, ParseUnitError};

/// The options of a command line that has nothing but this address or URL.
pub fn defaults<O: clap::Args>(address: impl ToString) -> Result<O, clap::Error> {
    let address = address.to_string();
    let command = O::augment_args(clap::Command::new("rxpath"));
    O::from_arg_matches(&command.try_get_matches_from(["rxpath", address.as_str()])?)
}

/// A quantity with its unit.
pub(crate) fn number<Q>(text: &str) -> Result<u64, ParseUnitError>
where
    Q: FromStr<Err = ParseUnitError> + Into<u64>,
{
    text.parse::<Q>().map(Into::into)
}

/// Bytes of a buffer or a datagram.
pub(crate) fn size(text: &str) -> Result<usize, ParseUnitError> {
    number::<Bytes>(text).map(|bytes| bytes as usize)
}

/// A size that a socket option of 32 bits holds.
pub(crate) fn small_size(text: &str) -> Result<u32, String> {
    let bytes = number::<Bytes>(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes).map_err(|_| "under 4 GiB expected".into())
}

/// Bytes of a message; a larger size becomes the largest, which is refused with the sizes that are possible.
pub(crate) fn message_size(text: &str) -> Result<u32, ParseUnitError> {
    number::<Bytes>(text).map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// A number of connections.
pub(crate) fn count(text: &str) -> Result<usize, ParseUnitError> {
    number::<ItemCount>(text).map(|count| count as usize)
}

/// A time with its unit, of an option that takes seconds and refuses microseconds. **Unit** ns.
pub(crate) fn seconds(text: &str) -> Result<u64, ParseUnitError> {
    number::<Nanos>(text).map_err(|error| error.with_example("10s"))
}

/// A plain number of ns or a time with its unit. **Unit** ns.
pub(crate) fn nanoseconds(text: &str) -> Result<u64, String> {
    plain_time::nanoseconds(text).map(u64::from)
}

/// A plain number of us or a time with its unit, in whole us that an `int` holds.
pub(crate) fn microseconds(text: &str) -> Result<u32, String> {
    whole(in_unit(text, "us", "10us")?, 1_000, 0x7fff_ffff, "us")
}

/// A plain number of ms or a time with its unit, in whole ms up to a minute.
pub(crate) fn milliseconds(text: &str) -> Result<u16, String> {
    whole(in_unit(text, "ms", "10ms")?, 1_000_000, 60_000, "ms").map(|ms| ms as u16)
}

fn whole(time: Nanos, step_ns: u64, most: u64, unit: &str) -> Result<u32, String> {
    let count = time.0 / step_ns;
    if !time.0.is_multiple_of(step_ns) || count > most {
        return Err(format!("whole {unit} from 0 to {most} expected"));
    }
    Ok(count as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_number_has_the_unit_of_its_option() {
        assert_eq!((microseconds("50"), microseconds("50us")), (Ok(50), Ok(50)));
        assert_eq!((microseconds("1ms"), microseconds("0")), (Ok(1000), Ok(0)));
        assert!(microseconds("50ns").is_err() && microseconds("1h").is_err());
        assert_eq!((milliseconds("1000"), milliseconds("10ms")), (Ok(1000), Ok(10)));
        assert!(milliseconds("61s").is_err() && milliseconds("10us").is_err());
        assert_eq!((nanoseconds("50"), nanoseconds("2us")), (Ok(50), Ok(2000)));
        assert_eq!(seconds("200ms"), Ok(200_000_000));
    }

    #[test]
    fn a_size_has_the_bounds_of_its_option() {
        assert_eq!((small_size("1460"), small_size("1KiB")), (Ok(1460), Ok(1024)));
        assert!(small_size("4GiB").is_err());
        assert_eq!((message_size("1KiB"), message_size("8GiB")), (Ok(1024), Ok(u32::MAX)));
        assert_eq!((size("64KiB"), count("10k")), (Ok(65_536), Ok(10_000)));
    }

    #[test]
    fn the_example_of_a_refusal_is_a_value_that_the_option_takes() {
        assert!(seconds("fast").unwrap_err().to_string().ends_with("for example `10s`"));
        assert!(milliseconds("fast").unwrap_err().ends_with("for example `10ms`"));
        assert!(microseconds("fast").unwrap_err().ends_with("for example `10us`"));
    }
}
