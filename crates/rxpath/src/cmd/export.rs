//! `rxpath export`: metrics of the live receive path for Prometheus, on a port or as a file.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::unistd::{SysconfVar, sysconf};
use rxpath_core::{Nanos, Warning};
use rxpath_export::listen::{Address, Page, Port};
use rxpath_export::{Checked, Families, METRICS, textfile};
use rxpath_host::Root;
use rxpath_lab::watch::{Options, Watcher};
use rxpath_record::watch::Settings;
use rxpath_tune::suppress::{self, Suppression};
use rxpath_tune::{Ask, HostFacts, Scope};

use crate::cmd::check::{self, CheckCommand};
use crate::cmd::values::Wait;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::output::table::hanging;
use crate::tui::source::{Live, Source};

/// Where Prometheus finds it unless told otherwise.
const ADDRESS: &str = "127.0.0.1:10077";
const SHORTEST: Nanos = Nanos::from_millis(100);
const LONGEST: Nanos = Nanos::from_secs(3600);

/// `rxpath export`
#[derive(Debug, clap::Args)]
pub struct ExportCommand {
    /// Where to answer: IP:PORT or unix:PATH (default: 127.0.0.1:10077, with --textfile or --once nowhere)
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    listen: Option<Address>,
    /// Answer on an address that is not loopback: the page has no password and no encryption
    #[arg(long, requires = "listen")]
    allow_remote: bool,
    /// Write the page into this file as well, for node_exporter's textfile collector (its name should end with .prom)
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// One window, then write the page (to standard output without --textfile) and end
    #[arg(long, conflicts_with = "listen")]
    once: bool,
    /// Length of a window
    #[arg(long, value_name = "TIME", default_value = "10s")]
    interval: Nanos,
    /// Time between two checks of the settings (as rxpath check); 0s = none
    #[arg(long, value_name = "TIME", default_value = "1h")]
    check_every: Nanos,
    /// Use counters only, even if BPF is available
    #[arg(long)]
    no_bpf: bool,
    /// Print the metrics with their labels and meanings, and end
    #[arg(long, exclusive = true)]
    names: bool,
}

/// What the command line may name as an address.
fn listen(text: &str) -> Result<Address, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.is_empty() {
            Err("unix: needs a path".into())
        } else {
            Ok(Address::Unix(path.into()))
        };
    }
    text.parse::<SocketAddr>()
        .map(Address::Tcp)
        .map_err(|_| format!("IP:PORT such as {ADDRESS}, or unix:PATH"))
}

impl ExportCommand {
    /// Exports until it is interrupted.
    pub fn run(self) -> Outcome {
        if self.names {
            output::text(&names())?;
            return Ok(Exit::Done);
        }
        if !(SHORTEST..=LONGEST).contains(&self.interval) {
            let what = format!("--interval {}: {SHORTEST} to {LONGEST}", self.interval);
            return Err(Failure::usage(what));
        }
        let address = self.address()?;
        let interrupt = Interrupt::catch()?;
        let page = Page::default();
        // Before anything is loaded: a second exporter has nothing to undo.
        let port = match &address {
            Some(address) => Some(open(address, page.clone())?),
            None => None,
        };
        let options = Options { counters_only: self.no_bpf, only: None };
        let watcher = Watcher::start(options).map_err(|error| Failure::new(Exit::Cannot, error))?;
        self.begun(port.as_ref(), &watcher);
        let families = Families::new(env!("CARGO_PKG_VERSION"), own_netns()).context("metrics")?;
        let live = Live::new(watcher, Settings::default(), self.interval.as_duration());
        let suppressions = CheckCommand::default().suppressions()?;
        Exporter { families, live, page, suppressions, checked_at: None, file: Written::Never }
            .run(&self, &interrupt)
    }

    fn address(&self) -> Result<Option<Address>, Failure> {
        let is_elsewhere = self.textfile.is_some() || self.once;
        let Some(address) = &self.listen else {
            return Ok(if is_elsewhere { None } else { listen(ADDRESS).ok() });
        };
        match address {
            Address::Tcp(tcp) if !tcp.ip().is_loopback() && !self.allow_remote => {
                Err(Failure::usage(format!(
                    "--listen {tcp}: anyone who reaches it can read the page"
                ))
                .hint("--allow-remote permits it; a proxy with TLS in front of loopback is safer"))
            }
            address => Ok(Some(address.clone())),
        }
    }

    /// Says where the page is, and what it will not have.
    fn begun(&self, port: Option<&Port>, watcher: &Watcher) {
        if let Some(why) = watcher.without_probes().filter(|_| !self.no_bpf) {
            let text = format!("counters only: {why}");
            output::warning(&Warning::new("counters-only", text));
        }
        if let Some(port) = port {
            crate::note!("rxpath: metrics on {}, the first after {}", port.address, self.interval);
        }
    }
}

fn open(address: &Address, page: Page) -> Result<Port, Failure> {
    Port::open(address, page).map_err(|error| {
        let taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let error = anyhow::Error::new(error).context(format!("listen on {address}"));
        let failure = Failure::usage_of(error);
        if taken {
            failure.hint("another exporter runs there: --listen names another address")
        } else {
            failure
        }
    })
}

/// The exporter at work.
struct Exporter {
    families: Families,
    live: Live,
    page: Page,
    suppressions: Vec<Suppression>,
    checked_at: Option<Instant>,
    file: Written,
}

/// How the textfile was written the last time.
#[derive(Clone, Copy, Debug)]
enum Written {
    Never,
    Well,
    Badly,
}

impl Exporter {
    fn run(mut self, command: &ExportCommand, interrupt: &Interrupt) -> Outcome {
        let mut wait = Wait::new(interrupt);
        let root = Root::host();
        let name_of = |process: u32| root.value(&format!("/proc/{process}/comm")).ok();
        loop {
            wait.until_time(self.live.due())?;
            if let Some(signal) = wait.signal() {
                return Ok(Exit::Signal(signal));
            }
            let Some(frame) = self.live.advance()? else { continue };
            self.families.frame(&frame, name_of);
            self.check(command.check_every.as_duration(), &root);
            self.families.own_memory(rss_bytes(&root));
            let text = self.families.text().context("metrics")?;
            match &command.textfile {
                Some(path) => self.write(path, &text)?,
                None if command.once => output::text(&text)?,
                None => {}
            }
            if command.once {
                return Ok(Exit::Done);
            }
            self.page.set(text);
        }
    }

    /// A path that is wrong from the start ends the exporter; a disk that is full for a while does not.
    fn write(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        let Err(error) = textfile::write(path, text) else {
            self.file = Written::Well;
            return Ok(());
        };
        let what = format!("cannot write {}", path.display());
        match self.file {
            Written::Never => {
                return Err(Failure::usage_of(anyhow::Error::new(error).context(what)));
            }
            Written::Well => {
                let text = format!("{what}: {error}; the old page stays");
                output::warning(&Warning::new("textfile", text));
            }
            Written::Badly => {}
        }
        self.file = Written::Badly;
        Ok(())
    }

    /// Judges the settings when it is time for that. It reads some hundred files.
    fn check(&mut self, every: Duration, root: &Root) {
        let is_due = self.checked_at.is_none_or(|at| at.elapsed() >= every);
        if every.is_zero() || !is_due {
            return;
        }
        self.checked_at = Some(Instant::now());
        let mut facts = HostFacts::collect(root, &Scope::default());
        check::watch(&mut facts, None);
        let mut report = rxpath_tune::check(&Ask { facts: &facts, goal: None });
        let today = jiff::Zoned::now().date();
        suppress::apply(&mut report, &self.suppressions, today).iter().for_each(output::warning);
        let finding = |of: &rxpath_tune::Finding| {
            (of.id.clone(), of.severity.as_str(), of.device.clone().unwrap_or_default())
        };
        self.families.check(&Checked {
            findings: report.findings.iter().map(finding).collect(),
            unjudged_count: report.unjudged.len(),
            fingerprint: facts.fingerprint().digest,
            at_unix_s: jiff::Timestamp::now().as_duration().as_secs_f64(),
        });
    }
}

/// Inode of the network namespace of this process; 0 where it cannot be read.
fn own_netns() -> u32 {
    std::fs::metadata("/proc/self/ns/net").map_or(0, |meta| meta.ino() as u32)
}

/// Resident memory of this process. **Source** proc_pid_statm(5), second field, in pages.
fn rss_bytes(root: &Root) -> u64 {
    let pages = root.value("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as u64;
    pages.unwrap_or(0) * page_bytes
}

fn names() -> String {
    let mut out = String::new();
    for metric in METRICS {
        let labels = if metric.labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", metric.labels.join(","))
        };
        out += &format!("{}{labels}\n", metric.name);
        out += &hanging("   ", 3, metric.what, crate::output::width());
    }
    out
}
