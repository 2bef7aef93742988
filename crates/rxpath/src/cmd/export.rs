//! `rxpath export`: metrics of the live receive path for Prometheus, on a port or as a file.

mod deeper;
mod exporter;
pub mod status;

use std::net::SocketAddr;

use rxpath_bpf::can::can_time_softirqs;
use rxpath_core::plain_time::irq_entry;
use rxpath_export::families::{MOST_SERIES, MOST_TOP, TOP};
use rxpath_export::listen::{Address, MetricsServer, Page};
use rxpath_export::phase;
use rxpath_export::reserved::Reserved;
use rxpath_export::sole::Sole;
use rxpath_export::{ExportedMetric, METRICS};
use rxpath_host::read::procfs;
use rxpath_host::{Root, caps, heap, inherited};
use rxpath_live::deep::Programs;
use rxpath_live::watch::{EntryCost, LiveWatcher, NOT_ASKED, Unloaded, WatcherOptions};
use rxpath_record::watch::WatchSettings;
use rxpath_tune::plan::HostMark;

use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;
use crate::cmd::values::{check_window, seconds};
use crate::output::table::hanging;
use crate::tui::source::Live;
use deeper::Deeper;
use exporter::Exporter;

/// Where Prometheus finds it unless told otherwise.
const ADDRESS: &str = "127.0.0.1:10077";
const SHORTEST: Nanos = Nanos::from_millis(100);
/// Counters alone, seldom read, cost about that.
const LEAST_BUDGET: f64 = 0.001;
/// So that the unit's CPUQuota= is kept in each of its periods of 100 ms. One window has no such unit.
const BETWEEN_SPINS: Duration = Duration::from_millis(100);
/// Why a second exporter has no probes.
const TAKEN: &str = "another exporter measures this network namespace with BPF probes, or a program has taken its name \
                     @rxpath-export; --no-bpf asks for counters only";
/// The name is taken, and the lock is not.
const NAME_TAKEN: &str = "a program without the lock in /run/rxpath-export has the name @rxpath-export: if it is an exporter (in a \
                          container, or of another user), both measure";

/// `rxpath export`
#[derive(Debug, clap::Args)]
pub struct ExportCommand {
    /// Where to answer: IP:PORT, unix:PATH, or fd:NUMBER for a socket that systemd passed on (default: the socket that systemd passed on; else 127.0.0.1:10077, with --textfile or --once nowhere)
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    listen: Option<Address>,
    /// Answer on an address that is not loopback: the page has no password and no encryption
    #[arg(long)]
    allow_remote: bool,
    /// Write the page into this file as well, for node_exporter's textfile collector (its name should end with .prom)
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// One window, then write the page (to standard output without --textfile) and end. The calibration at the
    /// start does not pause to keep a limit of CPU time (CPUQuota=)
    #[arg(long, conflicts_with = "listen")]
    once: bool,
    /// Length of a window. The first is up to twice as long, by the machine's id: hosts that start together do not end
    /// their windows together
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    interval: Nanos,
    /// CPU time that it may take together with its BPF programs, of one CPU: 1% or 0.01. Above it windows get longer, and less
    /// is measured
    #[arg(long, value_name = "RATIO", default_value = "1%", value_parser = budget)]
    budget: f64,
    /// Cost of entering and leaving an interrupt, in us or with a unit (500ns), as `rxpath steal` shows it; otherwise it is
    /// measured at the start, in spins of 4 ms on two CPUs
    #[arg(long, value_name = "US", value_parser = irq_entry)]
    irq_entry: Option<f64>,
    /// The path of this network namespace: a name of `ip netns`, a path, or a process id. The port stays in the namespace
    /// that the program was started in
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
    /// Time between two checks of the settings (as rxpath check); 0s = none. They are also checked when a device comes, goes
    /// or changes its state, at most once a minute
    #[arg(long, value_name = "TIME", default_value = "1h")]
    check_every: Nanos,
    /// Programs, and as many victims, that have series of their own; all others together are `other`. Above 16, each more leaves
    /// four drop reasons and four findings without a series
    #[arg(long, value_name = "N", value_parser = top, default_value_t = TOP)]
    top: usize,
    /// Use counters only, even if BPF is available
    #[arg(long)]
    no_bpf: bool,
    /// Print the metrics with their labels and meanings, and end
    #[arg(long, exclusive = true)]
    names: bool,
}

/// What the command line may name as an address.
fn listen(text: &str) -> Result<Address, String> {
    match text.strip_prefix("unix:") {
        Some("") => return Err("unix: needs a path".into()),
        Some(path) => return Ok(Address::Unix(path.into())),
        None => {}
    }
    let number = text.strip_prefix("fd:").and_then(|number| number.parse().ok());
    if let Some(number) = number.filter(|number| *number > 2) {
        return Ok(Address::Inherited(number));
    }
    text.parse::<SocketAddr>()
        .map(Address::Tcp)
        .map_err(|_| format!("IP:PORT such as {ADDRESS}, unix:PATH, or fd:3"))
}

/// A share of one CPU: `1%`, `0.01`.
fn budget(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let ratio = number.trim().parse::<f64>().ok().map(|number| number * unit);
    ratio
        .filter(|ratio| (LEAST_BUDGET..=1.0).contains(ratio))
        .ok_or_else(|| "0.1% to 100% of one CPU, such as 1% or 0.01".into())
}

/// How many programs and victims have series of their own.
fn top(text: &str) -> Result<usize, String> {
    let top = text.parse::<usize>().ok().filter(|top| (1..=MOST_TOP).contains(top));
    top.ok_or_else(|| {
        format!("1 to {MOST_TOP}: more do not fit into the {MOST_SERIES} series of a page")
    })
}

impl ExportCommand {
    /// Exports until it is interrupted.
    pub fn run(self) -> Outcome {
        if self.names {
            output::text(&names())?;
            return Ok(Exit::Done);
        }
        check_window("--interval", self.interval, SHORTEST)?;
        // Before anything is loaded: a second exporter has nothing to undo. And before the namespace is entered.
        let reserved = self.reserved()?;
        let scope = ScopeArgs { netns: self.netns.clone(), ..ScopeArgs::default() };
        scope.enter()?;
        // One window is no second exporter, and counters cost little: these leave the place to one whose probes can run.
        let may_probe = !self.no_bpf && !self.once && can_time_softirqs(&Root::host()).is_ok();
        let sole = if may_probe { sole()? } else { None };
        let is_taken = may_probe && sole.is_none();
        let counters_only = if self.no_bpf { Some(NOT_ASKED) } else { is_taken.then_some(TAKEN) };
        let pause = if self.once { Duration::ZERO } else { BETWEEN_SPINS };
        let measured = EntryCost::Measured { pause };
        let irq_entry = self.irq_entry.map_or(measured, |us| EntryCost::Given { us });
        let options = WatcherOptions { counters_only, only: None, irq_entry };
        let watcher = LiveWatcher::start(options)?;
        let _sole = sole.filter(|_| watcher.without_probes().is_none());
        let one_window = self.once.then_some("one window has no deep look");
        let (programs, of_looks) = watcher
            .without_probes()
            .or(one_window)
            .map_or_else(Programs::load, |why| (Programs::none(why), Vec::new()));
        // What is not measured until another start; all of it where another exporter has the place.
        let taken = is_taken.then(|| Unloaded::taken(TAKEN));
        let mut unloaded: Vec<_> = taken.into_iter().chain(watcher.unloaded()).collect();
        unloaded.extend_from_slice(&of_looks);
        // What loading took, most of it the kernel's types.
        heap::release();
        // Before any thread is started, and before anybody can connect.
        caps::drop_all()?;
        let interrupt = Interrupt::catch()?;
        let page = Page::default();
        let open = |reserved: Reserved| {
            let address = reserved.address().clone();
            reserved.open(page.clone()).map_err(|error| refused(&address, error))
        };
        let port = reserved.map(open).transpose()?;
        let window = self.interval.as_duration();
        // A timer that starts `--once` has a random delay of its own.
        let delay = match HostMark::here() {
            Ok(mark) if !self.once => phase::delay(mark.id(), window),
            _ => Duration::ZERO,
        };
        self.begun(port.as_ref(), &watcher, &unloaded, window + delay);
        let has_probes = watcher.without_probes().is_none();
        let mut live = Live::new(watcher, WatchSettings::default(), window);
        live.frame_at += delay;
        let deeper = Deeper::new(programs, &of_looks);
        let exporter = Exporter::new(&self, (live, page), deeper, has_probes)?;
        exporter.not_loaded(&unloaded);
        exporter.run(&self, &interrupt)
    }

    /// The socket, on which nobody is answered yet.
    fn reserved(&self) -> Result<Option<Reserved>, Failure> {
        let Some(address) = self.address()? else { return Ok(None) };
        let reserved = match &address {
            Address::Inherited(number) => {
                let hint = "systemd passes sockets on to a service that has a .socket unit";
                let socket =
                    inherited::descriptor(*number).or_usage(|| format!("--listen {address}"));
                Reserved::inherited(socket.map_err(|failure| failure.hint(hint))?)
            }
            address => Reserved::new(address),
        };
        let reserved = reserved.map_err(|error| refused(&address, error))?;
        self.check_reach(reserved.address())?;
        Ok(Some(reserved))
    }

    fn address(&self) -> Result<Option<Address>, Failure> {
        let Some(address) = &self.listen else { return self.default_address(inherited::sockets()) };
        self.check_reach(address)?;
        Ok(Some(address.clone()))
    }

    /// Where to answer when no option says it, with so many sockets of systemd.
    fn default_address(&self, sockets: u16) -> Result<Option<Address>, Failure> {
        match sockets {
            0 if self.allow_remote => {
                let what = "--allow-remote permits an address of --listen, or a socket of systemd";
                Err(Failure::usage(what))
            }
            _ if self.once => Ok(None),
            0 if self.textfile.is_some() => Ok(None),
            0 => Ok(listen(ADDRESS).ok()),
            1 => Ok(Some(Address::Inherited(inherited::FIRST_SOCKET))),
            // Clients of the others would wait forever.
            _ => {
                let what = format!("systemd passed on {sockets} sockets, and one can be served");
                let hint = "one ListenStream= in the .socket unit, or --listen fd:NUMBER";
                Err(Failure::usage(what).hint(hint))
            }
        }
    }

    /// Refuses what anyone could reach, unless that is asked for.
    fn check_reach(&self, address: &Address) -> Result<(), Failure> {
        let Some(tcp) = remote(address).filter(|_| !self.allow_remote) else { return Ok(()) };
        let what = format!("--listen {tcp}: anyone who reaches it can read the page");
        let hint = "--allow-remote permits it; a proxy with TLS in front of loopback is safer";
        Err(Failure::usage(what).hint(hint))
    }

    /// Says where the page is, and what it will not have: once, because nobody tries to load a probe again.
    fn begun(
        &self,
        port: Option<&MetricsServer>,
        watcher: &LiveWatcher,
        unloaded: &[Unloaded],
        first: Duration,
    ) {
        if let Some(why) = watcher.without_probes().filter(|_| !self.no_bpf) {
            let warning = Warning::new("counters-only", format!("counters only: {why}"));
            output::warning(&match unloaded.first() {
                Some(all) => warning.cure(all.remedy()),
                None => warning,
            });
        } else {
            unloaded.iter().map(Unloaded::warning).for_each(|one| output::warning(&one));
        }
        if let Some(port) = port {
            let first = Nanos::from_millis(first.as_millis() as u64);
            crate::note!("rxpath: metrics on {}, the first after {first}", port.address);
            exposed(&port.address).iter().for_each(output::warning);
        }
    }
}

/// The address at which other hosts may reach the page.
fn remote(address: &Address) -> Option<SocketAddr> {
    match address {
        Address::Tcp(tcp) if !tcp.ip().is_loopback() => Some(*tcp),
        _ => None,
    }
}

/// What others get to know there.
fn exposed(address: &Address) -> Option<Warning> {
    let tcp = remote(address)?;
    let text = format!(
        "anyone who reaches {tcp} can read the page: it names programs, units and users of this host, without a password and \
         without TLS"
    );
    let cure = "docs/how-to/export-to-prometheus.md has safer ways";
    Some(Warning::new("remote-page", text).cure(cure))
}

/// The place of the only exporter with probes in this network namespace; none when it is taken. Without root anybody can take it,
/// and must not keep the exporter from counting.
fn sole() -> Result<Option<Sole>, Failure> {
    let is_on_host = procfs::is_first_pid_namespace(&Root::host());
    match Sole::claim(exporter::own_netns(), is_on_host) {
        Ok(sole) => {
            if sole.is_contested() {
                output::warning(&Warning::new("name-taken", NAME_TAKEN));
            }
            Ok(Some(sole))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(anyhow::Error::new(error).context("claim the namespace").into()),
    }
}

fn refused(address: &Address, error: std::io::Error) -> Failure {
    let taken = error.kind() == std::io::ErrorKind::AddrInUse;
    let hint = "another exporter runs there: --listen names another address";
    let error = anyhow::Error::new(error).context(format!("listen on {address}"));
    Failure::usage_of(error).maybe_hint(taken.then_some(hint))
}

fn names() -> String {
    let named = |metric: &ExportedMetric| {
        let labels = metric.labels.join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let what = hanging("   ", 3, metric.what, output::width());
        format!("{}{labels}\n{what}", metric.name)
    };
    METRICS.iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_share_of_one_cpu() {
        assert_eq!((budget("1%"), budget("0.02")), (Ok(0.01), Ok(0.02)));
        for wrong in ["", "%", "0", "0.01%", "200%", "-1%", "nan", "inf", "1 CPU"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn as_many_victims_as_fit_into_a_page_have_series() {
        assert_eq!((top("1"), top(&MOST_TOP.to_string())), (Ok(1), Ok(MOST_TOP)));
        for wrong in ["0", "32", "-1", "", "16.0"] {
            let why = top(wrong).unwrap_err();
            assert!(why.starts_with("1 to 22") && why.contains("600 series"), "{wrong}: {why}");
        }
    }

    #[test]
    fn an_address_is_one_of_three_kinds() {
        assert_eq!(listen("fd:3"), Ok(Address::Inherited(3)));
        assert_eq!(listen("unix:/a"), Ok(Address::Unix("/a".into())));
        assert!(listen("[::1]:1").is_ok());
        for wrong in ["fd:", "fd:2", "fd:x", "fd:-1", "unix:", "80", "localhost:80"] {
            assert!(listen(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_an_address_that_others_reach_is_warned_of() {
        for harmless in ["127.0.0.1:1", "127.3.2.1:1", "[::1]:1", "unix:/a", "fd:3"] {
            assert_eq!(exposed(&listen(harmless).unwrap()), None, "{harmless}");
        }
        for open in ["0.0.0.0:1", "192.0.2.7:1", "[::]:1"] {
            let text = exposed(&listen(open).unwrap()).unwrap().to_string();
            for part in [open, "programs, units", "TLS", "docs/how-to/export-to-prometheus.md"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}
