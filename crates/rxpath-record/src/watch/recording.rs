//! A recording: JSON Lines, first the settings, then one frame per line. `rxpath watch --json` prints this form, and
//! old recorders wrote it; now they write it packed (`packed.rs`).
//!
//! It is read up to the point where it was cut: a killed recorder or a full disk leaves half a line at the end.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::line::{Head, WatchSettings};
use super::packed::MAGIC;
use super::{WatchFrame, change, packed};

/// A recording that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Its first line.
    pub settings: WatchSettings,
    /// Its frames, in their order.
    pub frames: Vec<WatchFrame>,
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

/// Reads a recording, up to where it was cut. Lines of other types (warnings) are passed over.
///
/// # Errors
/// What keeps it from being one at all.
pub fn parse(bytes: &[u8]) -> Result<Recorded, RecordingError> {
    if !bytes.starts_with(&MAGIC) {
        return parse_lines(bytes);
    }
    let (text, why) = packed::unpack(bytes);
    if text.is_empty() {
        return Err(RecordingError::Foreign(why.unwrap_or_else(|| "an empty archive".into())));
    }
    let mut recorded = parse_lines(&text)?;
    if let (Some(why), None) = (why, &recorded.cut) {
        recorded.cut = Some((recorded.frames.len() + 2, why));
    }
    Ok(recorded)
}

fn parse_lines(bytes: &[u8]) -> Result<Recorded, RecordingError> {
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate().map(|(at, line)| (at + 1, line));
    let settings = match lines.next() {
        Some((_, line)) if !line.is_empty() => head(line)?,
        _ => return Err(RecordingError::Empty),
    };
    let mut recorded = Recorded { settings, ..Recorded::default() };
    let mut before = None;
    for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
        match frame(line, &mut before) {
            Ok(Some(frame)) => recorded.frames.push(frame),
            Ok(None) => {}
            Err(error) => {
                recorded.cut = Some((at, error));
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

fn head(line: &[u8]) -> Result<WatchSettings, RecordingError> {
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

/// The frame of a line, from that and the frame before, which it replaces; none where the line is about something else.
fn frame(line: &[u8], before: &mut Option<Value>) -> Result<Option<WatchFrame>, String> {
    let said = |error: serde_json::Error| error.to_string();
    let mut line: Value = serde_json::from_slice(line).map_err(said)?;
    let now = match line.get("type").and_then(Value::as_str) {
        Some("interval") => line,
        Some("change") => {
            let old = before.take().ok_or("a change, and no frame before it")?;
            let change = line.get_mut("change").ok_or("missing field `change`")?;
            change::apply(old, change.take())?
        }
        Some(_) => return Ok(None),
        None => return Err("missing field `type`".into()),
    };
    // Whole frames too are read from JSON values: one reader is compiled for a frame, not two.
    let frame = WatchFrame::deserialize(&now).map_err(said)?;
    *before = Some(now);
    Ok(Some(frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{CpuRow, PathStage, StageRow, head_line, tail_line};
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
        let frame = WatchFrame {
            stages: vec![stage],
            cpus: vec![CpuRow::default()],
            ..WatchFrame::default()
        };
        let mut text =
            head_line(&WatchSettings { host: "a".into(), ..WatchSettings::default() }).unwrap();
        for number in 1..=3 {
            text += &format!("\n{}", tail_line(&WatchFrame { number, ..frame.clone() }).unwrap());
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
    fn a_line_that_is_no_frame_ends_the_recording_with_its_reason() {
        for (line, why) in [
            (r#"{"frame":1}"#, "missing field `type`"),
            (r#"{"type":"change"}"#, "missing field `change`"),
            (r#"{"type":"interval","cpus":7}"#, "invalid type: integer `7`"),
        ] {
            let read = parse(format!("{}{line}\n", whole()).as_bytes()).unwrap();
            assert_eq!(read.frames.len(), 3);
            let (at, said) = read.cut.unwrap();
            assert!(at == 5 && said.contains(why), "{at}: {said}");
        }
    }

    #[test]
    fn what_is_none_is_told() {
        assert_eq!(parse(b"").unwrap_err(), RecordingError::Empty);
        assert!(parse(b"{}").unwrap_err().to_string().contains("no recording"));
        let other = "{\"type\":\"settings\",\"schema\":\"rxpath/trace/1.0\"}\n";
        assert!(parse(other.as_bytes()).unwrap_err().to_string().contains("rxpath/trace/1.0"));
        let newer = "{\"type\":\"settings\",\"schema\":\"rxpath/watch/2.0\"}\n";
        assert!(matches!(parse(newer.as_bytes()), Err(RecordingError::Newer(_))));
        let empty = format!("{}\n", head_line(&WatchSettings::default()).unwrap());
        assert!(matches!(parse(empty.as_bytes()), Err(RecordingError::NoFrame { line: 2, .. })));
    }

    /// Frames of a host whose tables are sorted anew each time, from a seed.
    fn moving(seed: u64, count: u64) -> Vec<WatchFrame> {
        let mut state = seed | 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut frame = |number: u64| {
            let mut row = |cpu| CpuRow {
                cpu,
                // As many digits as are kept.
                user_ratio: next(10_000) as f64 / 1e4,
                net_softirq_ratio: if next(3) == 0 { Fact::absent("?") } else { Fact::ok(0.5) },
                busiest_task: ["a (1)", "b (2)"][next(2) as usize].into(),
                ..CpuRow::default()
            };
            let mut cpus: Vec<CpuRow> = (0..4).map(&mut row).collect();
            cpus.rotate_left(next(4) as usize);
            cpus.truncate(1 + next(4) as usize);
            let gaps = (0..next(3)).map(|gap| (gap.to_string(), "why".to_owned())).collect();
            let at_unix_s = 1.7e9 + number as f64;
            WatchFrame { number, at_unix_s, window_s: 1.0, cpus, gaps, ..WatchFrame::default() }
        };
        (1..=count).map(&mut frame).collect()
    }

    fn packed(frames: &[WatchFrame]) -> Vec<u8> {
        let settings = WatchSettings { host: "a".into(), ..WatchSettings::default() };
        let (mut packer, mut bytes) = packed::Packer::begin(&settings).unwrap();
        for frame in frames {
            bytes.extend(packer.pack(frame).unwrap());
        }
        bytes.extend(packer.end().unwrap());
        bytes
    }

    #[test]
    fn shares_keep_four_digits_and_counts_all_of_theirs() {
        let cpu = CpuRow { user_ratio: 0.123_456_789, cpu: 123_456_789, ..CpuRow::default() };
        let at_unix_s = 1_763_856_000.123_456;
        let frame = WatchFrame { at_unix_s, number: 1, cpus: vec![cpu], ..WatchFrame::default() };
        let read = parse(&packed(&[frame])).unwrap();
        let cpu = &read.frames[0].cpus[0];
        assert_eq!((cpu.user_ratio.to_string(), cpu.cpu), ("0.1235".into(), 123_456_789));
        assert!((read.frames[0].at_unix_s - 1_763_856_000.123).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read_back(seed in any::<u64>(), count in 1u64..12) {
            let frames = moving(seed, count);
            let read = parse(&packed(&frames)).unwrap();
            prop_assert_eq!(&read.settings.host, "a");
            prop_assert_eq!(read.frames, frames);
            prop_assert_eq!(read.cut, None);
        }

        #[test]
        fn a_packed_recording_is_read_up_to_where_it_was_cut(seed in any::<u64>(), cut in 0.0..1.0f64) {
            let frames = moving(seed, 8);
            let (mut packer, mut bytes) = packed::Packer::begin(&WatchSettings::default()).unwrap();
            let mut ends = Vec::new();
            for frame in &frames {
                bytes.extend(packer.pack(frame).unwrap());
                ends.push(bytes.len());
            }
            // Nobody ended it.
            bytes.truncate((bytes.len() as f64 * cut) as usize);
            let whole = ends.iter().filter(|end| **end <= bytes.len()).count();
            if let Ok(read) = parse(&bytes) {
                prop_assert!(read.frames.len() >= whole && read.cut.is_some());
                prop_assert_eq!(&read.frames[..], &frames[..read.frames.len()]);
            } else {
                prop_assert_eq!(whole, 0);
            }
        }

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
