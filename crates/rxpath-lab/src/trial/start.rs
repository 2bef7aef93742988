//! Starts the two programs of a trial: ours with their options, or a third-party command.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use rxpath_core::{Nanos, Side};
use serde_json::Value;

use super::external::{External, Ready, Starter};
use super::peer::Peer;
use super::program::Program;
use super::runner::{TrialConfig, whole};
use super::several::{self, Several};
use crate::error::LabError;
use crate::scenario::spec::{External as Foreign, LoadOptions, Options, Own, Protocol, Workload};
use crate::testbed::foreign::{ForeignProgram, piped};
use crate::testbed::{Seat, Testbed};

/// Time from interval line to interval line: twenty a second are enough for a settle test of half a second.
const INTERVAL: Duration = Duration::from_millis(50);
/// Lines in a shorter window, about: a rate needs two of them inside.
const LINES_IN_WINDOW: u32 = 8;
/// The shortest time between two lines.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(5);

fn interval(measure: Nanos) -> Duration {
    (measure.as_duration() / LINES_IN_WINDOW).clamp(SHORTEST_INTERVAL, INTERVAL)
}

/// Stands for the seconds that a foreign generator is to send.
const DURATION: &str = "{duration_s}";

/// Starts the sending side. A foreign generator only starts at the order to start.
pub fn load<'a>(
    config: &'a TrialConfig<'a>,
    testbed: &'a dyn Testbed,
) -> Result<Box<dyn Peer + 'a>, LabError> {
    match &config.variant.load {
        Workload::Own(own) => {
            let start = |own: &Own<LoadOptions>, index| {
                let seat = Seat { side: Side::Tx, index };
                steered(config, own, destinations(own, testbed), (testbed, seat))
            };
            let hosts = testbed.hosts(Side::Tx);
            if hosts.len() < 2 {
                return Ok(Box::new(start(own, 0)?));
            }
            let mut programs = Vec::new();
            for (index, host) in hosts.iter().enumerate() {
                let program = start(&several::share(own, index, hosts.len()), index)?;
                programs.push((host.clone(), program));
            }
            Ok(Box::new(Several::new(programs)))
        }
        Workload::External(external) => {
            let bounded = external.command.iter().any(|word| word.contains(DURATION));
            let starter = foreign(config, testbed, external, Side::Tx);
            let parser = external.parser.clone();
            Ok(Box::new(External::generator("load", parser, bounded, starter)))
        }
    }
}

/// Starts the receiving side; `None` when nobody is to listen.
pub fn serve<'a>(
    config: &'a TrialConfig<'a>,
    testbed: &'a dyn Testbed,
) -> Result<Option<Box<dyn Peer + 'a>>, LabError> {
    match &config.variant.serve {
        Workload::Own(own) if own.absent => Ok(None),
        Workload::Own(own) => {
            let mut address = vec![SocketAddr::new(testbed.listens_on(0), own.port).to_string()];
            // An XDP program hangs on a device.
            let of_frames = own.options.engine.as_deref().is_some_and(|it| it.starts_with("xdp"));
            if let Some(device) = testbed.path().rx_device.filter(|_| of_frames) {
                address.extend(["--dev".to_owned(), device]);
            }
            Ok(Some(Box::new(steered(config, own, address, (testbed, Side::Rx.into()))?)))
        }
        Workload::External(external) => {
            let starter = foreign(config, testbed, external, Side::Rx);
            let ready = match &external.ready {
                Some(line) => Ready::Line(line.clone()),
                None => Ready::Bound(external.port),
            };
            let parser = external.parser.clone();
            Ok(Some(Box::new(External::server("serve", ready, parser, starter))))
        }
    }
}

/// Where our own load sends: every address with UDP, the first one where connections are made.
fn destinations(own: &Own<LoadOptions>, testbed: &dyn Testbed) -> Vec<String> {
    let all = testbed.addresses().iter().map(|addr| SocketAddr::new(*addr, own.port));
    match own.protocol {
        Protocol::Udp => all.map(|addr| addr.to_string()).collect(),
        Protocol::Http => all.take(1).map(|addr| format!("http://{addr}/")).collect(),
        _ => all.take(1).map(|addr| addr.to_string()).collect(),
    }
}

/// The words of a command of this program: subcommand, addresses, options.
pub fn words<O: Options>(own: &Own<O>, addresses: Vec<String>) -> Vec<String> {
    let is_server = O::SIDE == "serve";
    let protocol = if is_server { own.protocol.serve_words() } else { own.protocol.load_words() };
    let mut words = vec![O::SIDE.to_owned()];
    words.extend(protocol.iter().map(|word| (*word).to_owned()));
    words.extend(addresses);
    for (name, value) in own.options.set() {
        let option = format!("--{}", name.replace('_', "-"));
        match value {
            Value::Bool(_) => words.push(option),
            Value::Array(lines) => words.extend(
                lines
                    .iter()
                    .flat_map(|line| [option.clone(), line.as_str().unwrap_or_default().into()]),
            ),
            Value::String(text) => words.extend([option, text]),
            number => words.extend([option, number.to_string()]),
        }
    }
    if let Some(datagrams) = own.datagrams.filter(|_| is_server) {
        words.extend(["--size".to_owned(), datagrams.size_bytes.to_string()]);
    }
    words
}

fn steered<O: Options>(
    config: &TrialConfig<'_>,
    own: &Own<O>,
    addresses: Vec<String>,
    (testbed, seat): (&dyn Testbed, Seat),
) -> Result<Program, LabError> {
    let mut command = Command::new(config.exe);
    command.args(words(own, addresses));
    let interval = format!("{}us", interval(config.trials.measure).as_micros());
    command.args(["--control", "--json", "--interval", &interval]);
    piped(&mut command);
    Program::adopt(O::SIDE, own.protocol, testbed.spawn(seat, command)?)
}

fn foreign<'a>(
    config: &'a TrialConfig<'a>,
    testbed: &'a dyn Testbed,
    external: &'a Foreign,
    side: Side,
) -> Starter<'a> {
    Box::new(move || {
        let name = if side == Side::Tx { "load" } else { "serve" };
        let addr = testbed.addresses().first().map(ToString::to_string).unwrap_or_default();
        let length = whole(config.trials).as_secs_f64() + testbed.window_lead().as_secs_f64();
        let seconds = format!("{:.0}", length.ceil());
        let fill = |text: &String| {
            text.replace("{addr}", &addr)
                .replace("{port}", &external.port.to_string())
                .replace(DURATION, &seconds)
        };
        let mut words: Vec<String> = external.command.iter().map(fill).collect();
        if !external.cpus.is_empty() {
            // util-linux is on every distribution; a third-party program can't be asked to pin itself.
            words.splice(0..0, ["taskset".to_owned(), "-c".into(), external.cpus.to_string()]);
        }
        let files = external.files.iter().map(|(name, text)| (name.clone(), fill(text)));
        let program = ForeignProgram { words, files: files.collect() };
        testbed.spawn_foreign(side.into(), &program, &config.files.join(name))
    })
}
