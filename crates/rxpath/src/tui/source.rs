//! Where frames come from: this host, or a recording.

use std::time::{Duration, Instant};

use rxpath_host::HostError;
use rxpath_live::watch::LiveWatcher;
use rxpath_record::watch::{Recorded, WatchFrame, WatchSettings};

/// Socket samples in one window: queues fill and empty in between.
const LOOKS: u32 = 10;
/// Frames of a recording are never shown further apart than this.
const LONGEST_GAP: Duration = Duration::from_secs(10);

/// Gives frames, one after another.
pub trait FrameSource {
    /// What the frames describe.
    fn settings(&self) -> &WatchSettings;
    /// When the next action is due.
    fn due(&self) -> Instant;
    /// Does what is due; returns the frame when one is complete.
    fn advance(&mut self) -> Result<Option<WatchFrame>, HostError>;
    /// Number of the current frame and of all frames, in a recording.
    fn position(&self) -> Option<(usize, usize)> {
        None
    }
    /// Waits before the next frame, in a recording.
    fn hold(&mut self) {}
    /// The frame this many further on, in a recording.
    fn step(&mut self, _by: i64) -> Option<WatchFrame> {
        None
    }
    /// The time to show it is over.
    fn ends_view(&self) -> bool {
        false
    }
    /// The message when no more frames will follow.
    fn last_words(&self) -> Option<String> {
        None
    }
}

/// This host.
#[derive(Debug)]
pub struct Live {
    pub watcher: LiveWatcher,
    settings: WatchSettings,
    /// The length of the windows after this one.
    pub interval: Duration,
    look_at: Instant,
    /// When the next frame is taken.
    pub frame_at: Instant,
    /// When the view ends, where a time is given.
    pub end: Option<Instant>,
}

impl Live {
    /// Starts now.
    pub fn new(watcher: LiveWatcher, settings: WatchSettings, interval: Duration) -> Self {
        let now = Instant::now();
        Self {
            watcher,
            settings,
            interval,
            look_at: now + interval / LOOKS,
            frame_at: now + interval,
            end: None,
        }
    }
}

impl FrameSource for Live {
    fn settings(&self) -> &WatchSettings {
        &self.settings
    }

    fn due(&self) -> Instant {
        let due = self.look_at.min(self.frame_at);
        self.watcher.due().map_or(due, |turn| turn.min(due))
    }

    fn advance(&mut self) -> Result<Option<WatchFrame>, HostError> {
        let now = Instant::now();
        if now >= self.frame_at {
            // A late window does not shorten the next ones.
            self.frame_at = (self.frame_at + self.interval).max(now + self.interval / 2);
            self.look_at = now + self.interval / LOOKS;
            return Ok(Some(self.watcher.frame()));
        }
        if now >= self.look_at {
            self.look_at = now + self.interval / LOOKS;
            self.watcher.look();
        } else {
            self.watcher.note();
        }
        Ok(None)
    }

    fn ends_view(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// A recording, at its original pace.
#[derive(Debug)]
pub struct Replay {
    recorded: Recorded,
    /// The next frame.
    next: usize,
    due: Instant,
}

impl Replay {
    /// Starts at its first frame.
    pub fn new(recorded: Recorded) -> Self {
        Self { recorded, next: 0, due: Instant::now() }
    }

    /// No more frames will follow.
    pub fn is_over(&self) -> bool {
        self.next >= self.recorded.frames.len()
    }

    /// Recorded time from the previous frame to `next`.
    fn gap(&self) -> Duration {
        let at = |index: usize| self.recorded.frames.get(index).map(|frame| frame.at_unix_s);
        match (self.next.checked_sub(1).and_then(at), at(self.next)) {
            (Some(before), Some(now)) if now > before => {
                Duration::try_from_secs_f64(now - before).unwrap_or(LONGEST_GAP).min(LONGEST_GAP)
            }
            _ => Duration::ZERO,
        }
    }
}

impl FrameSource for Replay {
    fn settings(&self) -> &WatchSettings {
        &self.recorded.settings
    }

    fn due(&self) -> Instant {
        if self.is_over() { Instant::now() + LONGEST_GAP } else { self.due }
    }

    fn advance(&mut self) -> Result<Option<WatchFrame>, HostError> {
        if self.is_over() || Instant::now() < self.due {
            return Ok(None);
        }
        let frame = self.recorded.frames.get(self.next).cloned();
        self.next += 1;
        self.due = Instant::now() + self.gap();
        Ok(frame)
    }

    fn position(&self) -> Option<(usize, usize)> {
        Some((self.next, self.recorded.frames.len()))
    }

    fn hold(&mut self) {
        self.due = Instant::now() + self.gap().max(Duration::from_millis(100));
    }

    fn step(&mut self, by: i64) -> Option<WatchFrame> {
        let last = self.recorded.frames.len().checked_sub(1)?;
        let shown = self.next.saturating_sub(1) as i64;
        let wanted = shown.saturating_add(by).clamp(0, last as i64) as usize;
        self.next = wanted + 1;
        self.hold();
        self.recorded.frames.get(wanted).cloned()
    }

    fn last_words(&self) -> Option<String> {
        self.is_over().then(|| match &self.recorded.cut {
            None => "the recording ends here".into(),
            Some((line, why)) => format!("the recording is cut at line {line}: {why}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(times: &[f64]) -> Recorded {
        let frame = |(at_unix_s, number): (&f64, u64)| WatchFrame {
            number,
            at_unix_s: *at_unix_s,
            ..WatchFrame::default()
        };
        Recorded { frames: times.iter().zip(1..).map(frame).collect(), ..Recorded::default() }
    }

    #[test]
    fn a_recording_is_stepped_both_ways_and_ends() {
        let mut replay = Replay::new(recorded(&[1.0, 1.0, 1.0]));
        assert_eq!(replay.advance().unwrap().unwrap().number, 1);
        assert_eq!(replay.step(5).unwrap().number, 3);
        assert!(replay.is_over());
        assert_eq!(replay.step(-1).unwrap().number, 2);
        assert_eq!(replay.position(), Some((2, 3)));
        assert_eq!(replay.step(-9).unwrap().number, 1);
    }

    #[test]
    fn it_keeps_its_pace_but_for_long_gaps_and_clocks_that_went_back() {
        let mut replay = Replay::new(recorded(&[10.0, 10.5, 5000.0, 20.0]));
        let mut gaps = Vec::new();
        for next in 1..4 {
            replay.next = next;
            gaps.push(replay.gap());
        }
        assert_eq!(gaps, [Duration::from_millis(500), LONGEST_GAP, Duration::ZERO]);
    }
}
