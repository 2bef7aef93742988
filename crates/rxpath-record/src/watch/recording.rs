//! A recording: JSON Lines, the settings first, then one frame a line. It is what `rxpath watch --json` prints.
//!
//! It is read up to where it was cut: a killed recorder or a full disk leaves half a line at the end.

use rxpath_core::envelope::line_schema_id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Frame;

/// What the recording is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Name of the host that was watched.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// Version of rxpath.
    pub rxpath: String,
    /// Time between two looks.
    pub interval_s: f64,
    /// Which probes ran: `counters and BPF`, or `counters only: WHY`.
    pub probes: String,
}

/// A recording that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Its first line.
    pub settings: Settings,
    /// Its frames, in their order.
    pub frames: Vec<Frame>,
    /// The line, from 1, from which on it could not be read, with the reason.
    pub cut: Option<(usize, String)>,
}

/// Why a file is no recording.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RecordingError {
    /// Nothing in it.
    #[error("empty: no recording of rxpath watch")]
    Empty,
    /// Another kind of file.
    #[error("line 1: {0}: no recording of rxpath watch")]
    Foreign(String),
    /// Written by a later version.
    #[error("line 1: schema {0}: this version reads rxpath/watch-line/1.*")]
    Newer(String),
    /// A head and nothing else.
    #[error("line {line}: no whole frame in it: {why}")]
    NoFrame {
        /// The line.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    schema: String,
    #[serde(flatten)]
    settings: Settings,
}

#[derive(Serialize)]
struct Tail<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    frame: &'a Frame,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

/// The first line, without its end.
///
/// # Errors
/// None with these types; a serializer's are passed on.
pub fn head_line(settings: &Settings) -> serde_json::Result<String> {
    let (kind, schema) = ("settings".to_owned(), line_schema_id("watch"));
    serde_json::to_string(&Head { kind, schema, settings: settings.clone() })
}

/// A frame's line, without its end.
///
/// # Errors
/// None with these types; a serializer's are passed on.
pub fn tail_line(frame: &Frame) -> serde_json::Result<String> {
    serde_json::to_string(&Tail { kind: "interval", frame })
}

/// Reads a recording, up to where it was cut. Lines of other types (warnings) are passed over.
///
/// # Errors
/// What keeps it from being one at all.
pub fn parse(bytes: &[u8]) -> Result<Recorded, RecordingError> {
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate().map(|(at, line)| (at + 1, line));
    let settings = match lines.next() {
        Some((_, line)) if !line.is_empty() => head(line)?,
        _ => return Err(RecordingError::Empty),
    };
    let mut recorded = Recorded { settings, ..Recorded::default() };
    for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
        match frame(line) {
            Ok(Some(frame)) => recorded.frames.push(frame),
            Ok(None) => {}
            Err(error) => {
                recorded.cut = Some((at, error.to_string()));
                break;
            }
        }
    }
    if recorded.frames.is_empty() {
        let (line, why) = recorded.cut.unwrap_or((2, "the file ends there".into()));
        return Err(RecordingError::NoFrame { line, why });
    }
    Ok(recorded)
}

fn head(line: &[u8]) -> Result<Settings, RecordingError> {
    let head: Head =
        serde_json::from_slice(line).map_err(|error| RecordingError::Foreign(error.to_string()))?;
    // Recordings of before the lines had a schema of their own name that of a whole answer.
    let version = ["rxpath/watch-line/", "rxpath/watch/"]
        .iter()
        .find_map(|prefix| head.schema.strip_prefix(prefix));
    match version {
        Some(version) if version.starts_with("1.") => Ok(head.settings),
        Some(_) => Err(RecordingError::Newer(head.schema)),
        None => Err(RecordingError::Foreign(format!("schema {}", head.schema))),
    }
}

fn frame(line: &[u8]) -> serde_json::Result<Option<Frame>> {
    let kind: Kind = serde_json::from_slice(line)?;
    if kind.kind == "interval" { serde_json::from_slice(line).map(Some) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{CpuRow, PathStage, StageRow};
    use proptest::prelude::*;
    use rxpath_core::Fact;

    fn whole() -> String {
        let stage = StageRow {
            stage: PathStage::Ip,
            rate_per_s: Fact::ok(12.5),
            unit: "packets".into(),
            rate_source: "Ip.InReceives".into(),
            drops_pps: Fact::denied("root"),
            drops_source: String::new(),
            cpu_ratio: Fact::absent("not measured"),
            note: String::new(),
        };
        let frame =
            Frame { stages: vec![stage], cpus: vec![CpuRow::default()], ..Frame::default() };
        let mut text = head_line(&Settings { host: "a".into(), ..Settings::default() }).unwrap();
        for number in 1..=3 {
            text += &format!("\n{}", tail_line(&Frame { number, ..frame.clone() }).unwrap());
        }
        text + "\n"
    }

    #[test]
    fn what_is_written_is_read_back() {
        let read = parse(whole().as_bytes()).unwrap();
        assert_eq!(read.settings.host, "a");
        assert_eq!(read.frames.len(), 3);
        assert_eq!(read.frames[2].stages[0].rate_per_s, Fact::ok(12.5));
        assert_eq!(read.cut, None);
    }

    #[test]
    fn what_is_none_is_told() {
        assert_eq!(parse(b"").unwrap_err(), RecordingError::Empty);
        assert!(parse(b"{}").unwrap_err().to_string().contains("no recording"));
        let other = "{\"type\":\"settings\",\"schema\":\"rxpath/trace/1.0\"}\n";
        assert!(parse(other.as_bytes()).unwrap_err().to_string().contains("rxpath/trace/1.0"));
        let newer = "{\"type\":\"settings\",\"schema\":\"rxpath/watch/2.0\"}\n";
        assert!(matches!(parse(newer.as_bytes()), Err(RecordingError::Newer(_))));
        let empty = format!("{}\n", head_line(&Settings::default()).unwrap());
        assert!(matches!(parse(empty.as_bytes()), Err(RecordingError::NoFrame { line: 2, .. })));
    }

    proptest! {
        #[test]
        fn a_cut_recording_is_read_up_to_the_cut(cut in 0usize..2000) {
            let whole = whole();
            let bytes = &whole.as_bytes()[..cut.min(whole.len())];
            let lines = bytes.split(|byte| *byte == b'\n').count() - 1;
            match parse(bytes) {
                Ok(read) => {
                    prop_assert!(read.frames.len() >= lines.saturating_sub(1));
                    prop_assert!(read.frames.iter().zip(1..).all(|(frame, n)| frame.number == n));
                }
                Err(_) => prop_assert!(lines < 2),
            }
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
