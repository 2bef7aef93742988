//! A compact recording: gzip, and for each frame only the changes since the previous one.
//!
//! Its lines are those of a recording in JSON Lines, except that frames after the first have the type `change`. The
//! file can be read up to any frame, however the recorder ended. Shares and rates have four digits, at most five of
//! them after the point: no view shows more.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Number, Value, json};

use super::line::{WatchSettings, head_line};
use super::{WatchFrame, change};

/// What a file of this kind begins with (RFC 1952).
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The longest text of a recording: ten days of the largest machine.
const LARGEST: u64 = 4 << 30;

/// Digits of a share or rate.
const DIGITS: usize = 4;

/// And nothing below a part of this: a thousandth of a percent of a CPU.
const PARTS: f64 = 1e5;

/// Makes the bytes of a recording, frame by frame.
#[derive(Debug)]
pub struct Packer {
    into: GzEncoder<Vec<u8>>,
    before: Option<Value>,
}

impl Packer {
    /// Begins, and gives the first bytes of the file.
    ///
    /// # Errors
    /// None with these types; a serializer's are passed on.
    pub fn begin(settings: &WatchSettings) -> io::Result<(Self, Vec<u8>)> {
        let into = GzEncoder::new(Vec::new(), Compression::best());
        let mut packer = Self { into, before: None };
        let bytes = packer.add(&head_line(settings)?)?;
        Ok((packer, bytes))
    }

    /// The bytes that a frame adds.
    ///
    /// # Errors
    /// As [`Packer::begin`].
    pub fn pack(&mut self, frame: &WatchFrame) -> io::Result<Vec<u8>> {
        let mut now = serde_json::to_value(frame)?;
        shorten(&mut now);
        let line = match &self.before {
            None => {
                let mut whole = now.clone();
                whole["type"] = "interval".into();
                whole.to_string()
            }
            Some(before) => {
                let change = change::between(before, &now).unwrap_or_else(|| json!({ "o": {} }));
                json!({ "type": "change", "change": change }).to_string()
            }
        };
        self.before = Some(now);
        self.add(&line)
    }

    /// A line, complete on disk: a reader that gets this far has the whole line.
    fn add(&mut self, line: &str) -> io::Result<Vec<u8>> {
        writeln!(self.into, "{line}")?;
        self.into.flush()?;
        Ok(std::mem::take(self.into.get_mut()))
    }

    /// The last bytes.
    ///
    /// # Errors
    /// As [`Packer::begin`].
    pub fn end(self) -> io::Result<Vec<u8>> {
        self.into.finish()
    }
}

/// Leaves digits of shares and rates that say something; counts and texts stay. The time of a frame keeps milliseconds.
fn shorten(frame: &mut Value) {
    let at = frame.get("at_unix_s").and_then(Value::as_f64);
    shorten_all(frame);
    if let Some(at) = at {
        frame["at_unix_s"] = ((at * 1e3).round() / 1e3).into();
    }
}

fn shorten_all(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let digits = |long: f64| format!("{long:.*e}", DIGITS - 1).parse::<f64>().ok();
            let parts = |short: f64| (short * PARTS).round() / PARTS;
            let short = number.as_f64().and_then(digits).map(parts);
            if let Some(short) = short.and_then(Number::from_f64) {
                *number = short;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(shorten_all),
        Value::Object(all) => all.values_mut().for_each(shorten_all),
        _ => {}
    }
}

/// The text of a packed recording up to where it can be unpacked, and why no further.
pub fn unpack(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
    let mut text = Vec::new();
    let mut from = GzDecoder::new(bytes).take(LARGEST);
    let ended = from.read_to_end(&mut text);
    (text, ended.err().map(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::parse;

    /// Of a host with work on two CPUs; the other four are at rest.
    const EDGE: &[u8] = include_bytes!("../../../../testdata/recordings/edge-6.jsonl");
    const BUSY_CPUS: f64 = 2.0;
    const MOST_BYTES: f64 = 2e6;

    #[test]
    fn an_hour_of_a_busy_cpu_takes_at_most_2_mb() {
        let recorded = parse(EDGE).unwrap();
        let (mut packer, _) = Packer::begin(&recorded.settings).unwrap();
        let sizes: Vec<usize> =
            recorded.frames.iter().map(|frame| packer.pack(frame).unwrap().len()).collect();
        // The first is in full, once in a recording.
        let changes = &sizes[1..];
        let frame_bytes = changes.iter().sum::<usize>() as f64 / changes.len() as f64;
        let frames_an_hour = 3600.0 / recorded.settings.interval_s;
        let bytes_an_hour = frame_bytes * frames_an_hour / BUSY_CPUS;
        assert!(bytes_an_hour <= MOST_BYTES, "{bytes_an_hour:.0} bytes; frames of {sizes:?}");
    }
}
