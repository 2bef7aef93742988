//! The endpoint: answers requests from its input until the input ends.
//!
//! It dies with its coordinator, however that ends: at the end of the input, or without a sign of life for the lease.
//! Its programs die with it, even if it is killed, and so do those that they start.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{Pid, getuid};
use rxpath_host::lab::lock::{Holder, LabLock};
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::netdev::QueueKind;
use rxpath_host::read::{environment, identity};
use rxpath_host::write::awake::Awake;
use rxpath_host::{HostError, Root};
use serde_json::Value;

use super::background::HostBackground;
use super::clock::ClockPair;
use super::counting::{Counting, driver_of};
use super::faults::PaceReader;
use super::files;
use super::lease::Lease;
use super::leftovers::{self, Leftover};
use super::links::CarryingLinks;
use super::observing::HostObservers;
use super::outlet::{Outlet, json};
use super::probe::HostProbes;
use super::programs::EndpointPrograms;
use super::route::route;
use super::said::{LONGEST_LINE, Said};
use super::session::control_devices;
use super::settings::{HostSettings, LeftSettings, SettingsAsk, UnreadJournals};
use super::strays;
use super::token::{MachineToken, is_seen};
use super::window::{HostWindow, WindowAsk};
use super::wire::{DeviceFacts, Hello, HostAsk, MARKER, Request, TICK_MS};
use crate::clock::monotonic_ns;
use crate::error::{LabError, cannot};
use crate::hosts::names;
use crate::installed;
use crate::scenario::HostShape;
use crate::testbed::socket_drops;

/// How long to wait for the lab lock: another endpoint of this run may be taking it.
const LOCKED: Duration = Duration::from_millis(200);

/// What an endpoint is started with.
pub struct Endpoint {
    /// This program.
    pub exe: PathBuf,
    /// Its version.
    pub version: &'static str,
}

/// Whatever of an endpoint lives from request to request.
struct Host {
    endpoint: Endpoint,
    lease: Arc<Lease>,
    outlet: Arc<Outlet>,
    programs: EndpointPrograms,
    settings: HostSettings,
    window: HostWindow,
    awake: Option<Awake>,
    background: HostBackground,
    observers: HostObservers,
    probes: HostProbes,
    /// Reads the pace of the clock for the next window.
    paces: Option<PaceReader>,
    lock: Option<LabLock>,
    token: Option<MachineToken>,
    is_swept: bool,
}

impl Endpoint {
    /// Serves until the input ends. To be called by the main thread: programs die with the thread that starts them.
    ///
    /// # Errors
    /// If the input cannot be read, or holds a line that is too long.
    pub fn serve(self, input: impl BufRead, output: Box<dyn Write + Send>) -> Result<(), LabError> {
        let outlet = Arc::new(Outlet::new(output));
        let _guard = strays::start_guard(&self.exe);
        outlet.text(MARKER);
        show_life(Arc::clone(&outlet));
        let lease = Lease::begin();
        let programs = EndpointPrograms::new(self.exe.clone(), Arc::clone(&outlet));
        let settings = HostSettings::new(self.exe.clone());
        let mut host = Host {
            endpoint: self,
            lease: Arc::clone(&lease),
            outlet,
            programs,
            settings,
            window: HostWindow::default(),
            awake: None,
            background: HostBackground::default(),
            observers: HostObservers::default(),
            probes: HostProbes::default(),
            paces: None,
            lock: None,
            token: None,
            is_swept: false,
        };
        let mut input = input;
        while let Some(line) = read_line(&mut input)? {
            let got_ns = monotonic_ns();
            lease.renew(got_ns);
            host.outlet.count_read(line.len());
            host.take(&line, got_ns);
        }
        Ok(())
    }
}

/// The next line; `None` at the end of the input.
fn read_line(input: &mut impl BufRead) -> Result<Option<String>, LabError> {
    let mut line = String::new();
    let read = input.by_ref().take(LONGEST_LINE as u64).read_line(&mut line);
    match read.map_err(|error| LabError::io("read a request", error))? {
        0 => Ok(None),
        LONGEST_LINE => Err(LabError::internal("a request of 16 MiB")),
        _ => Ok(Some(line)),
    }
}

/// A sign of life each second: a coordinator that hears none takes the host for lost.
fn show_life(outlet: Arc<Outlet>) {
    std::thread::spawn(move || {
        loop {
            // why: the pace of the signs of life.
            std::thread::sleep(Duration::from_millis(TICK_MS));
            outlet.say(Said::Tick);
        }
    });
}

impl Host {
    fn take(&mut self, line: &str, got_ns: u64) {
        let (id, answer) = match serde_json::from_str::<Request>(line) {
            Ok(Request { ask: HostAsk::Tick, .. }) => return,
            Ok(Request { id, ask }) => {
                self.sweep_before(&ask);
                (id, self.answer(id, ask, got_ns))
            }
            Err(error) => {
                (id_in(line), Err(cannot(format!("the request is not understood: {error}"), "")))
            }
        };
        if let Some(answer) = answer.transpose() {
            self.outlet.answer(id, answer);
        }
    }

    /// Ends what killed endpoints left, once, unless it is asked for by name: a dry run ends nothing.
    fn sweep_before(&mut self, ask: &HostAsk) {
        let is_of_cleanup = match ask {
            HostAsk::Leftovers | HostAsk::Strays { .. } | HostAsk::RemoveCopy { .. } => true,
            HostAsk::Settings { what } => *what == SettingsAsk::UndoLeft,
            _ => false,
        };
        if !is_of_cleanup && !std::mem::replace(&mut self.is_swept, true) {
            strays::sweep();
            files::sweep();
        }
    }

    /// The answer; `None` if a thread gives it later.
    fn answer(&mut self, id: u64, ask: HostAsk, got_ns: u64) -> Result<Option<Value>, LabError> {
        let answer = match ask {
            HostAsk::Tick => return Ok(None),
            HostAsk::Hello { lock, secret, hops } => {
                self.programs.hops = hops;
                self.token = Some(MachineToken::show(&secret)?);
                json(&self.hello(lock.then_some(secret.as_str()))?)?
            }
            HostAsk::IsOnMachineOf { pid, secret } => json(&is_seen(pid, &secret))?,
            HostAsk::Clock => json(&ClockPair { got_ns, answered_ns: monotonic_ns() })?,
            HostAsk::Route { to } => json(&route(to)?)?,
            HostAsk::Program { program, what } => self.programs.answer(program, &what)?,
            HostAsk::Background { what } => self.background.answer(what)?,
            HostAsk::Settings { what } => self.lease.pause(|| self.settings.answer(what))?,
            HostAsk::Leftovers => json(&self.leftovers()?)?,
            HostAsk::Strays { end } => json(&strays::found(end)?)?,
            HostAsk::RemoveCopy { hash } => {
                json(&leftovers::remove_copy(&self.endpoint.exe, &hash)?)?
            }
            HostAsk::Device { name } => {
                json(&devices()?.into_iter().find(|device| device.name == name))?
            }
            HostAsk::Card { device, driver } => json(&Counting::open(&device)?.card(&driver))?,
            HostAsk::LinkSpeeds { device } => json(&CarryingLinks::now(&device)?.speeds())?,
            HostAsk::HasProgram { name } => installed::found(&name).into(),
            HostAsk::Counters { device } => json(&Counting::open(&device)?.read())?,
            HostAsk::SocketDrops { port } => {
                json(&socket_drops(&mut Netlink::sock_diag()?, port)?)?
            }
            HostAsk::Probe { what } => return self.probes.answer(id, what, &self.outlet),
            HostAsk::Observe { what } => {
                self.observers.answer(id, what, &self.window, &self.outlet)?;
                return Ok(None);
            }
            HostAsk::Rest { device, limit_ms } => {
                let mut counting = Counting::open(&device)?;
                self.outlet.later(id, move |_| Ok(counting.rest(Duration::from_millis(limit_ms))));
                return Ok(None);
            }
            HostAsk::Pace => {
                self.paces = Some(PaceReader::start());
                Value::Null
            }
            HostAsk::Load { until_ns } => self.expect_load(until_ns),
            HostAsk::Window(ask) => {
                self.measure(id, ask);
                return Ok(None);
            }
            HostAsk::Ahead { what } => self.window.answer(what)?,
            HostAsk::Awake { on } => {
                self.awake = on.then(Awake::hold).transpose()?;
                Value::Null
            }
        };
        Ok(Some(answer))
    }

    fn expect_load(&mut self, until_ns: Option<u64>) -> Value {
        if until_ns.is_none() {
            self.window.end();
            self.paces = None;
        }
        self.lease.expect_load(until_ns);
        Value::Null
    }

    fn measure(&mut self, id: u64, mut ask: WindowAsk) {
        ask.others.extend(self.programs.pids());
        let (victim, paces) = (Arc::clone(&self.observers.victim), self.paces.take());
        self.window.arm((id, ask), paces, victim, &self.outlet);
    }

    fn leftovers(&self) -> Result<Vec<Leftover>, LabError> {
        let mut all = leftovers::copies(&self.endpoint.exe);
        let open = self.settings.open()?;
        all.extend(UnreadJournals::among(&open).map(Leftover::Unread));
        let open = open.into_iter().filter(|open| open.unreadable().is_none());
        all.extend(open.map(|open| Leftover::Settings {
            journal: open.journal.into(),
            is_of_killed_run: open.is_orphaned(),
        }));
        Ok(all)
    }

    /// Takes the host's lab lock, unless another endpoint of this run has it: hosts may be logins of one machine. Says who
    /// else has it.
    fn lock(&mut self, secret: &str) -> Option<String> {
        if self.lock.is_some() {
            return None;
        }
        match LabLock::take(LOCKED) {
            Ok(taken) => {
                self.lock = Some(taken);
                None
            }
            Err(error) => {
                let holder = LabLock::holder();
                let pid = holder.as_ref().and_then(|holder| holder.pid);
                let is_of_this_run = pid.is_some_and(|pid| is_seen(pid, secret));
                (!is_of_this_run).then(|| busy(holder).unwrap_or_else(|| error.to_string()))
            }
        }
    }

    /// With the secret of its run the lab lock is taken.
    fn hello(&mut self, to_lock: Option<&str>) -> Result<Hello, LabError> {
        let root = Root::host();
        let not_locked = to_lock.and_then(|secret| self.lock(secret));
        // The holder of the lock may have changed them.
        let left = match not_locked {
            None => self.lease.pause(|| self.settings.settle()),
            Some(_) => LeftSettings::default(),
        };
        Ok(Hello {
            version: self.endpoint.version.into(),
            pid: Pid::this().as_raw(),
            netns: identity::network_namespace().ok().and_then(|inode| inode.try_into().ok()),
            boot_id: identity::boot_id()?,
            clock: rxpath_load::engine::clock::identity(),
            uid: getuid().as_raw(),
            shape: HostShape::here(&root)?,
            facts: environment::collect(&root),
            devices: devices()?,
            control_devices: control_devices(),
            names: names::own(),
            left,
            not_locked,
        })
    }
}

/// Whose experiment runs here, if that is known.
fn busy(holder: Option<Holder>) -> Option<String> {
    let Holder { pid, command } = holder?;
    Some(format!("another experiment runs there (pid {}, {command})", pid?))
}

/// The number of a request that is not understood, so that its sender does not wait.
fn id_in(line: &str) -> u64 {
    let value: Option<Value> = serde_json::from_str(line).ok();
    value.and_then(|value| value.get("id")?.as_u64()).unwrap_or(0)
}

fn devices() -> Result<Vec<DeviceFacts>, HostError> {
    let mut route = Netlink::route()?;
    let addresses = route.addresses()?;
    // Before Linux 6.8 it does not know of queues.
    let mut netdev = Netlink::generic().ok();
    let links = route.links()?.into_iter();
    Ok(links
        .map(|link| {
            let of_device = addresses.iter().filter(|address| address.index == link.index);
            DeviceFacts {
                index: link.index,
                mtu_bytes: link.mtu,
                is_up: link.is_up() && link.carrier != Some(false),
                addresses: of_device.map(|address| address.ip).collect(),
                driver: driver_of(&link),
                rx_queues: rx_queues(netdev.as_mut(), link.index),
                numa_node: numa_node(&link.name),
                name: link.name,
            }
        })
        .collect())
}

fn rx_queues(netdev: Option<&mut Netlink>, index: u32) -> u32 {
    let all = netdev.and_then(|netdev| netdev.device_queues(index).ok()).unwrap_or_default();
    (all.iter().filter(|queue| queue.kind == QueueKind::Rx).count() as u32).max(1)
}

/// The kernel says -1 where there is none.
fn numa_node(name: &str) -> Option<u32> {
    Root::host().number(&format!("/sys/class/net/{name}/device/numa_node")).ok()
}
