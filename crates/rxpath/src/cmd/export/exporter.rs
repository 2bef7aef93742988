//! The exporter at work: a window, its pages, and what the next one may cost.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use rxpath_export::deep::WindowLoss;
use rxpath_export::governor::{Course, Governor, WindowCost};
use rxpath_export::listen::Page;
use rxpath_export::recheck::Recheck;
use rxpath_export::shed::Shed;
use rxpath_export::window::{is_late, lost_probes};
use rxpath_export::{ExportedCheck, Families, RenderedPages, textfile};
use rxpath_host::read::procfs;
use rxpath_host::{Root, heap, notify};
use rxpath_live::watch::{ProbeLimit, Unloaded};
use rxpath_record::watch::WatchFrame;
use rxpath_tune::standings::{SEEN_BY_ROOT, standings};
use rxpath_tune::store::STATE_DIR;
use rxpath_tune::suppress::{self, Suppression};
use rxpath_tune::unjudged::Reason;
use rxpath_tune::{Ask, HostFacts, Scope};

use super::deeper::Deeper;
use super::{ExportCommand, status};
use crate::build_id;
use crate::cmd::check::{self, CheckCommand};
use crate::cmd::prelude::*;
use crate::cmd::values::Wait;
use crate::tui::source::{FrameSource, Live};

/// The exporter.
#[derive(Debug)]
pub(super) struct Exporter {
    families: Families,
    live: Live,
    page: Page,
    suppressions: Vec<Suppression>,
    recheck: Recheck,
    file: Written,
    /// Pages that could not be written and are not counted yet.
    unwritten: u64,
    governor: Governor,
    shed: Shed,
    deeper: Deeper,
    /// CPU time of this process at the end of the last window, or of the start.
    cpu_before: Duration,
    /// The longest that a window may have been planned to last: that of now, or of the one before.
    planned: [Duration; 2],
    /// Whether the last window had BPF probes; at first, whether they were loaded.
    has_probes: bool,
}

/// How the textfile was written the last time.
#[derive(Clone, Copy, Debug)]
enum Written {
    Never,
    Well,
    Badly,
}

impl Exporter {
    pub(super) fn new(
        command: &ExportCommand,
        (live, page): (Live, Page),
        deeper: Deeper,
        has_probes: bool,
    ) -> Result<Self, Failure> {
        let families = Families::new(build_id::id(), own_netns()).context("metrics")?;
        families.started(now_unix_s());
        Ok(Self {
            families: families.with_top(command.top),
            live,
            page,
            suppressions: CheckCommand::default().suppressions()?,
            recheck: Recheck::default(),
            file: Written::Never,
            unwritten: 0,
            governor: Governor::new(command.budget),
            shed: Shed::default(),
            deeper,
            cpu_before: process_cpu(),
            planned: [Duration::ZERO; 2],
            has_probes,
        })
    }

    /// What is not measured for as long as it runs.
    pub(super) fn not_loaded(&self, unloaded: &[Unloaded]) {
        for one in unloaded {
            self.families.not_loaded(one.what, one.needs);
        }
    }

    pub(super) fn run(mut self, command: &ExportCommand, interrupt: &Interrupt) -> Outcome {
        let mut wait = Wait::new(interrupt);
        let root = Root::host();
        // Elsewhere another process may have that number; threads then go by their own names.
        let sees_processes = procfs::is_first_pid_namespace(&root);
        let comm = |process: u32| root.value(&format!("/proc/{process}/comm")).ok();
        let name_of = |process: u32| if sees_processes { comm(process) } else { None };
        self.follow(command, self.governor.course());
        // The port is open, and the capabilities are gone.
        notify::ready()?;
        loop {
            wait.until_time(self.live.due())?;
            if let Some(signal) = wait.signal() {
                return Ok(Exit::Signal(signal));
            }
            let Some(mut frame) = self.live.advance()? else { continue };
            self.warn_of_lost_probes(&frame);
            // Taken from the probes in any case: they begin the next window.
            let totals = self.live.watcher.totals(&frame);
            // A page that is made once has nothing else to show, and is not there when a deep look ends.
            let is_late = is_late(frame.window_s, self.planned) && !command.once;
            if !command.once {
                let loss = WindowLoss {
                    loses: (!is_late).then(|| self.live.watcher.loses()),
                    has_dear_list: self.live.watcher.has_dear_list(),
                };
                self.deeper.window(&mut frame, loss, &self.governor, &self.families);
            }
            if is_late {
                self.families.late(&frame);
            } else {
                self.families.frame(&frame, totals.as_ref(), name_of);
            }
            self.check(command.check_every.as_duration(), &root);
            self.govern(command, &frame, &root);
            self.families.collect_errors(std::mem::take(&mut self.unwritten), self.page.errors());
            let text = self.families.text().context("metrics")?;
            match &command.textfile {
                Some(path) => self.write(path, &text)?,
                None if command.once => output::text(&text)?,
                None => {}
            }
            if command.once {
                return Ok(Exit::Done);
            }
            let interval_s = command.interval.as_duration().as_secs_f64();
            let status = status::page(&frame, &self.governor, interval_s).context("status")?;
            self.page.set(RenderedPages { metrics: text, status });
            // A window on a host with many short tasks takes some MB, which would stay with the C library in pieces.
            drop((frame, totals));
            heap::release();
        }
    }

    /// Not of probes that the governor leaves out: those are said by `Shed`.
    fn warn_of_lost_probes(&mut self, frame: &WatchFrame) {
        if !self.governor.course().with_probes {
            return;
        }
        if let Some(why) = lost_probes(&mut self.has_probes, frame) {
            let text = format!("counters only: {why}");
            output::warning(&Warning::new("counters-only", text));
        }
    }

    /// What the window cost, and what follows from that.
    fn govern(&mut self, command: &ExportCommand, frame: &WatchFrame, root: &Root) {
        let (cpu, (looks, looks_bpf)) = (process_cpu(), self.deeper.charge());
        let programs = frame.probe_cost.as_ref();
        self.governor.looked((looks + looks_bpf.whole()).as_secs_f64());
        let looks_bpf_s = [looks_bpf.runs, looks_bpf.entries].map(|cpu| cpu.as_secs_f64());
        self.families.own_programs(looks_bpf_s, self.deeper.map_bytes);
        self.governor.window(WindowCost {
            window_s: frame.window_s,
            threads_s: cpu.saturating_sub(self.cpu_before + looks).as_secs_f64(),
            programs_s: programs.map_or(0.0, |cost| cost.cpu_s().iter().sum::<f64>()),
        });
        self.cpu_before = cpu;
        self.families.own_process(cpu.as_secs_f64(), rss_bytes(root));
        self.families.governed(&self.governor);
        let change = self.shed.change(&self.governor);
        change.warning(self.governor.budget()).iter().for_each(output::warning);
        if !change.back.is_empty() {
            crate::note!("rxpath: within the budget again: {}", change.back.join(", "));
        }
        self.follow(command, self.governor.course());
    }

    fn follow(&mut self, command: &ExportCommand, course: Course) {
        let interval = command.interval.as_duration() * course.stretch;
        self.planned = [self.planned[1], interval];
        self.live.interval = interval;
        self.live.watcher.limit(ProbeLimit {
            cpu_ratio: course.probes_cpu_ratio,
            with_latency: course.with_latency,
            with_any: course.with_probes,
        });
    }

    /// A path that is wrong from the start ends the exporter; a disk that is full for a while does not.
    fn write(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        if matches!(self.file, Written::Never) {
            textfile::remove_left(path);
        }
        let Err(error) = textfile::write(path, text) else {
            self.file = Written::Well;
            return Ok(());
        };
        let what = format!("cannot write {}", path.display());
        match self.file {
            Written::Never => {
                return Err(error).or_usage(|| what);
            }
            Written::Well => {
                let text = format!("{what}: {error}; the old page stays");
                output::warning(&Warning::new("textfile", text));
            }
            Written::Badly => {}
        }
        self.file = Written::Badly;
        self.unwritten += 1;
        Ok(())
    }

    /// Judges the settings when it is time for that. It reads some hundred files.
    fn check(&mut self, every: Duration, root: &Root) {
        if !self.recheck.is_due(Instant::now(), every, self.live.watcher.link_changes()) {
            return;
        }
        let mut facts = HostFacts::collect(root, &Scope::default());
        check::watch(&mut facts, None);
        let mut report = rxpath_tune::check(&Ask { facts: &facts, goal: None });
        let today = jiff::Zoned::now().date();
        suppress::apply(&mut report, &self.suppressions, today).iter().for_each(output::warning);
        let unjudged = report.unjudged_rules();
        let finding = |of: &rxpath_tune::Finding| {
            (of.id.clone(), of.severity.as_str(), of.device.clone().unwrap_or_default())
        };
        self.families.check(&ExportedCheck {
            findings: report.findings.iter().map(finding).collect(),
            unjudged: Reason::ALL.map(|why| (why.word(), unjudged.of_reason(why))).into(),
            tuned: standings(Path::new(STATE_DIR), Path::new(SEEN_BY_ROOT)),
            fingerprint: facts.fingerprint().digest,
            at_unix_s: now_unix_s(),
        });
    }
}

fn now_unix_s() -> f64 {
    jiff::Timestamp::now().as_duration().as_secs_f64()
}

/// Inode of the network namespace of this process; 0 where it cannot be read.
pub(super) fn own_netns() -> u32 {
    std::fs::metadata("/proc/self/ns/net").map_or(0, |meta| meta.ino() as u32)
}

/// Resident memory of this process. **Source** proc_pid_statm(5), second field, in pages.
fn rss_bytes(root: &Root) -> u64 {
    let pages = root.value("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as u64;
    pages.unwrap_or(0) * page_bytes
}

/// CPU time of all threads of this process, up to this moment.
fn process_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
