//! `rxpath watch`: the live path in a terminal, as text, as JSON Lines, from this host or from a recording.

use std::time::Instant;

use rxpath_core::number::grouped;
use rxpath_host::Root;
use rxpath_live::watch::{EntryCost, LiveWatcher, NOT_ASKED, WatcherOptions};
use rxpath_record::watch::{Recorded, WatchFrame, WatchSettings, head_line, parse, tail_line};

use crate::cmd::on_host::OnHost;
use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;
use crate::cmd::values::{Wait, check_window, seconds};
use crate::output::color::{Stream, is_on};
use crate::output::{json, line};
use crate::tui::recorder::Recorder;
use crate::tui::source::{FrameSource, Live, Replay};
use crate::tui::{screen, text};

const SHORTEST: Nanos = Nanos::from_millis(20);
/// A larger recording was not made by this program.
const LARGEST_BYTES: u64 = 4 << 30;

/// `rxpath watch`
#[derive(Debug, clap::Args)]
pub struct WatchCommand {
    /// Time between two samples
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "1s")]
    interval: Nanos,
    /// End after this time
    #[arg(short, long, value_name = "TIME", value_parser = seconds)]
    duration: Option<Nanos>,
    /// Print one sample and end
    #[arg(long, conflicts_with_all = ["duration", "record"])]
    once: bool,
    /// Most rows of each table with --once; the path is always complete
    #[arg(long, value_name = "N", default_value_t = 10, requires = "once")]
    top: usize,
    /// Write each sample into this new file, for --replay
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show a recording, made here or elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "duration", "no_bpf", "interval"])]
    replay: Option<PathBuf>,
    /// Use counters only, even if BPF is available
    #[arg(long)]
    no_bpf: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    pub on: OnHost,
}

impl WatchCommand {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        check_window("--interval", self.interval, SHORTEST)?;
        match &self.replay {
            Some(_) if self.scope.is_given() => Err(Failure::usage(
                "--netns, --pid and --cgroup work on this host only, not with --replay",
            )),
            Some(path) => self.replayed(path),
            None => self.live(),
        }
    }

    fn live(&self) -> Outcome {
        let (prints, missing) = (self.once || self.format.is_json(), screen::missing());
        if let Some(why) = missing.filter(|_| !prints && self.record.is_none()) {
            return Err(Failure::usage(why)
                .hint("--once prints one sample, --json all samples, --record FILE saves them"));
        }
        // Before other threads exist.
        let only = self.scope.enter()?.only;
        let interrupt = Interrupt::catch()?;
        let options = WatcherOptions {
            counters_only: self.no_bpf.then_some(NOT_ASKED),
            only,
            irq_entry: EntryCost::Measured { pause: Duration::ZERO },
        };
        let watcher = LiveWatcher::start(options)?;
        let settings = self.settings(&watcher);
        let recorder = self.record.as_ref().map(|path| Recorder::create(path, &settings));
        let recorder = recorder.transpose().map_err(|error| {
            let cause = error.downcast_ref::<std::io::Error>();
            let is_there = cause.is_some_and(|it| it.kind() == std::io::ErrorKind::AlreadyExists);
            let hint = "an existing recording is not overwritten: choose another name";
            Failure::usage_of(error).maybe_hint(is_there.then_some(hint))
        })?;
        let mut source = Live::new(watcher, settings, self.interval.as_duration());
        source.end = self.duration.map(|time| Instant::now() + time.as_duration());
        if prints || missing.is_some() {
            return self.printed(source, recorder, &interrupt);
        }
        screen::show(Box::new(source), recorder, &interrupt, is_on(Stream::Out))
    }

    fn settings(&self, watcher: &LiveWatcher) -> WatchSettings {
        let root = Root::host();
        let word = |path: &str| root.value(path).unwrap_or_else(|_| "?".into());
        WatchSettings {
            host: word("/proc/sys/kernel/hostname"),
            kernel: word("/proc/sys/kernel/osrelease"),
            rxpath: env!("CARGO_PKG_VERSION").into(),
            interval_s: self.interval.0 as f64 / 1e9,
            probes: watcher
                .without_probes()
                .map_or_else(|| "counters and BPF".into(), |why| format!("counters only: {why}")),
        }
    }

    /// Without a terminal: one sample, or lines until the end.
    fn printed(
        &self,
        mut source: Live,
        mut recorder: Option<Recorder>,
        interrupt: &Interrupt,
    ) -> Outcome {
        let settings = source.settings().clone();
        if self.format.is_json() && !self.once {
            line(&head_line(&settings)?)?;
        }
        let mut wait = Wait::new(interrupt);
        loop {
            wait.until_time(source.due())?;
            if let Some(signal) = wait.signal() {
                told(recorder);
                return Ok(Exit::Signal(signal));
            }
            if let Some(frame) = source.advance()? {
                if let Some(open) = &mut recorder {
                    open.write(&frame).with_context(|| format!("cannot write {}", open.name()))?;
                }
                if self.once {
                    return self.look(&frame, &settings);
                }
                if self.format.is_json() {
                    line(&tail_line(&frame)?)?;
                }
            }
            if source.ends_view() {
                told(recorder);
                return Ok(Exit::Done);
            }
        }
    }

    fn look(&self, frame: &WatchFrame, settings: &WatchSettings) -> Outcome {
        if self.format.is_json() {
            let gap = |(what, why): (&String, &String)| {
                Warning::new("not-known", format!("{what}: {why}"))
            };
            let warnings = frame.gaps.iter().map(gap).collect();
            json(&Envelope::new("watch", settings, frame, warnings))?;
        } else {
            output::text(&text::text(frame, settings, self.top))?;
        }
        Ok(Exit::Done)
    }

    fn replayed(&self, path: &Path) -> Outcome {
        let recorded = read(path)?;
        // Parts missing from a recording are missing from the answer.
        let ended = if recorded.cut.is_some() { Exit::Partial } else { Exit::Done };
        if let Some((cut, why)) = &recorded.cut {
            let text = format!("{} is cut at line {cut}: {why}", path.display());
            output::warning(&Warning::new("recording-cut", text));
        }
        if self.once {
            let Some(last) = recorded.frames.last() else { return Ok(ended) };
            return self.look(last, &recorded.settings).map(|_| ended);
        }
        if self.format.is_json() {
            line(&head_line(&recorded.settings)?)?;
            for frame in &recorded.frames {
                line(&tail_line(frame)?)?;
            }
            return Ok(ended);
        }
        if let Some(why) = screen::missing() {
            return Err(Failure::usage(why)
                .hint("--replay FILE --once prints the last sample, --json all samples"));
        }
        let interrupt = Interrupt::catch()?;
        screen::show(Box::new(Replay::new(recorded)), None, &interrupt, is_on(Stream::Out))
    }
}

fn told(recorder: Option<Recorder>) {
    if let Some(recorder) = recorder {
        crate::note!("{}", recorder.finish());
    }
}

fn read(path: &Path) -> Result<Recorded, Failure> {
    let named = || format!("--replay {}", path.display());
    let about = std::fs::metadata(path).or_usage(named)?;
    if !about.is_file() {
        let what = format!("{}: no regular file", named());
        return Err(Failure::usage(what).hint("name a file that `rxpath watch --record` wrote"));
    }
    if about.len() > LARGEST_BYTES {
        let [size, most] = [about.len(), LARGEST_BYTES].map(grouped);
        let what = format!("{}: {size} bytes, and at most {most} can be read", named());
        return Err(Failure::usage(what).hint("record a shorter time, or with a longer --interval"));
    }
    let bytes = std::fs::read(path).or_usage(named)?;
    parse(&bytes).or_usage(named)
}
