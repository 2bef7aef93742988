//! Runs a workload, sender or receiver: orders, signals, intervals, the end, the result.

mod quiet;

use std::os::fd::AsFd;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rxpath_core::envelope::{Envelope, StreamLine, line_schema_id};
use rxpath_load::LoadError;
use rxpath_load::control::ControlCommand;
use rxpath_load::engine::clock;
use rxpath_load::workload::{CounterReading, Finished, WorkloadHandle};

use crate::cmd::prelude::*;
use crate::cmd::values::duration;
use crate::output::rates::Rows;

/// Length of a slice of times: short against what disturbs a machine, long against a request.
const SLICE_NS: u64 = 100_000_000;

/// Options that `serve` and `load` share.
#[derive(Clone, Debug, clap::Args)]
pub struct ConductArgs {
    /// Stop after this long, for example 10s (a plain number is of seconds); a receiver counts from the first datagram,
    /// and ends after this long without one, too
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Nanos>,
    /// Exclude this long at the start from the rates; counts still cover the whole run
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<Nanos>,
    /// Print cumulative counters this often; with --json as JSON Lines
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Nanos>,
    /// Also print the rates of each thread and socket
    #[arg(long)]
    pub split: bool,
    /// Take `start T [until U]`, `stop` and `close` from standard input; implies JSON Lines
    #[arg(long)]
    pub control: bool,
    /// Output format.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Options of the receiving side: when it ends.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct EndArgs {
    /// End after this long without traffic
    #[arg(long, value_name = "TIME")]
    idle_exit: Option<Nanos>,
    /// With --duration: wait without limit for traffic to begin
    #[arg(long, requires = "duration")]
    wait: bool,
}

/// Default duration of a load. **Source** iperf3, wrk.
const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);

impl ConductArgs {
    /// The duration of a load: a parent or a count ends it, otherwise the time does. **Unit** ns.
    pub fn load_ns(&self, has_count: bool) -> Option<u64> {
        let default = (!self.control && !has_count).then_some(DEFAULT_DURATION);
        self.duration.or(default).map(|duration| duration.0)
    }

    /// When a workload ends; a client has no [`EndArgs`] of its own.
    pub fn ends(&self, end: EndArgs) -> EndConditions {
        EndConditions {
            after_first_ns: self.duration.map(|duration| duration.0),
            // A parent process gives the start and the end.
            waits: end.wait || self.control,
            idle_ns: end.idle_exit.map(|idle| idle.0),
            until_ns: None,
        }
    }
}

/// How the text of a workload looks.
pub trait Shown: WorkloadHandle {
    /// The effective settings, for people.
    fn settings_text(&self) -> String;
    /// The result, for people.
    fn result_text(&self, result: &Self::Result) -> String;
    /// Replaces the rate by the rate after the warm-up.
    fn set_rate(result: &mut Self::Result, pps: f64);
    /// The exit status for the result.
    fn exit(&self, _result: &Self::Result) -> Exit {
        Exit::Done
    }
    /// Makes the line per second from the counters; with `split`, also per thread and socket.
    fn rows(&self, split: bool) -> Rows<Self::Interval>;
}

/// When a workload ends by itself, in addition to its own end.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndConditions {
    /// This long after the first datagram; before the first datagram, this long after the start.
    pub after_first_ns: Option<u64>,
    /// Waits for the first datagram.
    pub waits: bool,
    /// After this long without a datagram.
    pub idle_ns: Option<u64>,
    /// At this instant of `CLOCK_MONOTONIC`, as the order to start says.
    pub until_ns: Option<u64>,
}

/// A rejection by the workload, as an exit status with its hint.
fn refuse(error: LoadError) -> Failure {
    let exit = if error.is_usage() { Exit::Usage } else { Exit::Cannot };
    let hint = error.hint();
    Failure::new(exit, error).maybe_hint(hint)
}

/// Runs a workload to its end, if it could be opened, and prints its output.
pub fn conduct<W: Shown>(
    opened: Result<W, LoadError>,
    args: &ConductArgs,
    ends: EndConditions,
) -> Outcome {
    let workload = opened.map_err(refuse)?;
    let interrupt = Interrupt::catch().context("catch signals")?;
    let mut conductor = Conductor::new(workload, args, ends);
    conductor.say_settings()?;
    let is_closed_later = conductor.run(&interrupt)?;
    let finished = conductor.finish()?;
    conductor.say_result(&finished)?;
    if is_closed_later {
        conductor.wait_for_close(&interrupt)?;
    }
    let exit = conductor.workload.exit(&finished.result);
    Ok(interrupt.caught().map_or(exit, Exit::Signal))
}

struct Conductor<'a, W: WorkloadHandle> {
    workload: W,
    args: &'a ConductArgs,
    ends: EndConditions,
    lines: bool,
    orders: Orders,
    rows: Rows<W::Interval>,
    begun_ns: u64,
    next_tick_ns: u64,
    tick_ns: u64,
    /// Where the current slice of times began.
    slice_ns: u64,
    last: (u64, u64),
    warm: Option<(u64, u64)>,
    /// The instant of an order to start, until the parent knows when the work began.
    ordered_ns: Option<u64>,
}

type Done<W> = Finished<<W as WorkloadHandle>::Result>;

impl<'a, W: Shown> Conductor<'a, W> {
    fn new(workload: W, args: &'a ConductArgs, ends: EndConditions) -> Self {
        let tick_ns = args.interval.map_or(1_000_000_000, |interval| interval.0.max(1_000_000));
        let now = clock::now_ns();
        Self {
            rows: workload.rows(args.split),
            workload,
            args,
            ends,
            lines: args.control || (args.interval.is_some() && args.format.is_json()),
            orders: Orders::default(),
            begun_ns: now,
            next_tick_ns: now + tick_ns,
            tick_ns,
            slice_ns: now,
            last: (now, 0),
            warm: None,
            ordered_ns: None,
        }
    }

    fn say_settings(&mut self) -> anyhow::Result<()> {
        if self.lines {
            Self::line(&StreamLine::Settings {
                schema: line_schema_id(W::NAME),
                settings: self.workload.settings(),
            })?;
            for warning in self.workload.warnings() {
                Self::line(&StreamLine::Warning(warning.clone()))?;
            }
            let tids = self.workload.shared().tids();
            Self::line(&StreamLine::Ready { pid: std::process::id(), tids })?;
        } else if !self.args.format.is_json() {
            output::text(&self.workload.settings_text())?;
        }
        if !self.args.control {
            self.workload.start(clock::now_ns());
        }
        Ok(())
    }

    fn line(line: &StreamLine<&W::Settings, &W::Interval, &W::Result>) -> anyhow::Result<()> {
        output::json_line(line)
    }

    /// Waits for the end; prints intervals meanwhile. Returns whether a parent will order the close: not
    /// after a signal, and not one that has ordered it or ended.
    fn run(&mut self, interrupt: &Interrupt) -> anyhow::Result<bool> {
        loop {
            self.wait(interrupt)?;
            if interrupt.caught().is_some() {
                return Ok(false);
            }
            if self.args.control {
                while let Some(order) = self.orders.next()? {
                    match order {
                        ControlCommand::Start { at_ns, until_ns } => {
                            self.ends.until_ns = until_ns;
                            self.ordered_ns = Some(at_ns);
                            self.workload.start(at_ns);
                        }
                        ControlCommand::Stop => return Ok(true),
                        ControlCommand::Close => return Ok(false),
                    }
                }
                if self.orders.ended {
                    return Ok(false);
                }
            }
            self.say_began()?;
            if self.workload.shared().all_done() || self.is_over() {
                return Ok(self.args.control);
            }
            if clock::now_ns() >= self.next_tick_ns {
                self.tick()?;
            }
            if self.args.control && clock::now_ns() >= self.slice_ns + SLICE_NS {
                self.slice()?;
            }
        }
    }

    /// Tells a parent once when the work began: its order may have come late.
    fn say_began(&mut self) -> anyhow::Result<()> {
        let Some((at_ns, t_ns)) = self.ordered_ns.zip(self.workload.shared().began_ns()) else {
            return Ok(());
        };
        self.ordered_ns = None;
        Self::line(&StreamLine::Started { t_ns, late_ns: t_ns.saturating_sub(at_ns) })
    }

    /// Sleeps until something may have happened.
    fn wait(&self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let now = clock::now_ns();
        let until = quiet::outside(self.next_tick_ns.min(now + 20_000_000), self.ordered_ns);
        let until = until.min(self.end_ns().unwrap_or(u64::MAX));
        let stdin = std::io::stdin();
        let mut fds = vec![PollFd::new(interrupt.as_fd(), PollFlags::POLLIN)];
        if self.args.control && !self.orders.ended {
            fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        }
        let left_ms = until.saturating_sub(now).div_ceil(1_000_000) as u16;
        match poll(&mut fds, PollTimeout::from(left_ms)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error).context("poll"),
        }
    }

    /// The time at which the run ends, where it is known.
    fn end_ns(&self) -> Option<u64> {
        let begun = (!self.ends.waits).then_some(self.begun_ns);
        let from = self.workload.shared().first_ns().or(begun);
        let own = from.zip(self.ends.after_first_ns);
        let own = own.map(|(from, length)| from.saturating_add(length));
        own.into_iter().chain(self.ends.until_ns).min()
    }

    fn is_over(&mut self) -> bool {
        let now = clock::now_ns();
        let first = self.workload.shared().first_ns();
        if let (Some(warmup), Some(first), None) = (self.args.warmup, first, self.warm)
            && now >= first + warmup.0
        {
            self.warm = Some((now, self.workload.done()));
        }
        if self.end_ns().is_some_and(|end_ns| now >= end_ns) {
            return true;
        }
        let Some(idle_ns) = self.ends.idle_ns else { return false };
        let seen = self.workload.seen();
        if seen != self.last.1 {
            self.last = (now, seen);
        }
        now - self.last.0 >= idle_ns
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let counters = self.workload.interval();
        // Missed ticks are skipped: each line carries its own time.
        while self.next_tick_ns <= counters.t_ns() {
            self.next_tick_ns += self.tick_ns;
        }
        if self.lines {
            // Without --interval a parent gets only the lines it asked for.
            if self.args.interval.is_some() {
                Self::line(&StreamLine::Interval(&counters))?;
            }
        } else if !self.args.format.is_json()
            && let Some(text) = (self.rows)(&counters)
        {
            output::text(&text)?;
        }
        Ok(())
    }

    /// Gives a parent the times since the last slice.
    fn slice(&mut self) -> anyhow::Result<()> {
        let from_ns = std::mem::replace(&mut self.slice_ns, clock::now_ns());
        if let Some((name, times)) = self.workload.new_times().filter(|(_, it)| it.count() > 0) {
            Self::line(&StreamLine::Slice {
                name: name.into(),
                span_ns: [from_ns, self.slice_ns],
                hdr_v2_base64: BASE64.encode(times.to_v2()?),
            })?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Done<W>, Failure> {
        self.say_began()?;
        let mut finished = self.workload.finish().map_err(refuse)?;
        let Some(warmup) = self.args.warmup else { return Ok(finished) };
        match self.warm.and_then(|warm| self.rate_since(warm)) {
            Some(rate) => W::set_rate(&mut finished.result, rate),
            None => finished.warnings.push(Warning::new(
                "no-warmup",
                format!(
                    "the run ended within the warm-up of {warmup}; the rate covers the whole run"
                ),
            )),
        }
        Ok(finished)
    }

    /// Events per second between the end of the warm-up and the last event. The time after that, until the threads
    /// noticed the end of traffic and ended, does not count.
    fn rate_since(&self, (warm_ns, done): (u64, u64)) -> Option<f64> {
        let span_ns = self.workload.last_ns()?.checked_sub(warm_ns).filter(|ns| *ns > 0)?;
        Some(self.workload.done().saturating_sub(done) as f64 * 1e9 / span_ns as f64)
    }

    fn say_result(&self, finished: &Done<W>) -> anyhow::Result<()> {
        let before = self.workload.warnings();
        let new = finished.warnings.iter().filter(|warning| !before.contains(warning));
        if self.lines {
            for warning in new {
                Self::line(&StreamLine::Warning(warning.clone()))?;
            }
            if self.args.control {
                // A parent merges trials, and quantiles cannot be merged: it gets the times themselves.
                for (name, histogram) in &finished.histograms {
                    let (name, v2) = ((*name).to_owned(), histogram.to_v2()?);
                    Self::line(&StreamLine::Histogram { name, hdr_v2_base64: BASE64.encode(v2) })?;
                }
            }
            return Self::line(&StreamLine::Result(&finished.result));
        }
        let (settings, warnings) = (self.workload.settings(), finished.warnings.clone());
        let answer = Envelope::new(W::NAME, settings, &finished.result, warnings);
        output::answer(self.args.format.is_json(), &answer, |it| self.workload.result_text(it))
    }

    /// The result is printed; the sockets stay open until the parent has read its counters.
    fn wait_for_close(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        // It has ended: no other instant is to be waited for, least of all one that is past.
        self.next_tick_ns = u64::MAX;
        self.ends = EndConditions { waits: true, ..EndConditions::default() };
        loop {
            while let Some(order) = self.orders.next()? {
                if order == ControlCommand::Close {
                    return Ok(());
                }
            }
            if self.orders.ended || interrupt.caught().is_some() {
                return Ok(());
            }
            self.wait(interrupt)?;
        }
    }
}

/// Orders on standard input, read without blocking.
#[derive(Debug, Default)]
struct Orders {
    text: Vec<u8>,
    ended: bool,
}

impl Orders {
    /// The next whole line as an order.
    fn next(&mut self) -> anyhow::Result<Option<ControlCommand>> {
        if !self.ended && !self.text.contains(&b'\n') && readable() {
            let mut chunk = [0; 1024];
            // One read of the descriptor itself: a buffered reader would hide lines from poll.
            match nix::unistd::read(std::io::stdin().as_fd(), &mut chunk) {
                Ok(0) => self.ended = true,
                Ok(n) => self.text.extend_from_slice(&chunk[..n]),
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
                Err(error) => return Err(error).context("read orders from standard input"),
            }
        }
        let Some(end) = self.text.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.text.drain(..=end).collect();
        Ok(Some(String::from_utf8_lossy(&line).parse()?))
    }
}

fn readable() -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// `key  value` lines of a block, keys aligned.
pub fn block(title: &str, rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let rows = rows.iter().map(|(key, value)| format!("  {key:width$}  {value}\n"));
    std::iter::once(format!("{title}\n")).chain(rows).collect()
}
