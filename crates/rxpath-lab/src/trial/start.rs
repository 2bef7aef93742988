//! Starts the two programs of a trial: ours with their options, or a third-party command.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use rxpath_core::{IntoMap, Nanos, PathSide};
use serde_json::Value;

use super::config::{TrialConfig, whole};
use super::external::{External, Ready, Starter};
use super::peer::Peer;
use super::program::Program;
use super::several::{self, Several};
use crate::error::LabError;
use crate::hosts::pairs::HostPairs;
use crate::scenario::spec::{
    External as Foreign, LoadOptions, Options, Own, Protocol, Trials, Workload,
};
use crate::testbed::Testbed;
use crate::testbed::foreign::{ForeignProgram, piped};
use crate::testbed::seat::Seat;

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
/// Longer than the trial's phases by this at least: a generator that is started and a window that is opened take a moment each.
const SLACK: Duration = Duration::from_millis(500);

/// Starts the sending side. A foreign generator only starts at the order to start.
pub fn load<'a>(
    config: &'a TrialConfig<'a>,
    testbed: &'a dyn Testbed,
) -> Result<Box<dyn Peer + 'a>, LabError> {
    match &config.variant.load {
        Workload::Own(own) if own.protocol.over_tcp() && testbed.hosts(PathSide::Rx).len() > 1 => {
            of_pairs(config, testbed, own)
        }
        Workload::Own(own) => {
            let hosts = testbed.hosts(PathSide::Tx);
            let pairs = testbed.pairs();
            let start = |index| {
                let seat = Seat { side: PathSide::Tx, index };
                let mut own = own.clone();
                own.options.cpu = testbed.cpus(seat, config.variant);
                // One, which is for all its receivers.
                let (to, share) = sender_programs(&own, index, &pairs).swap_remove(0);
                steered(config, &share, destinations(&own, testbed, &to), (testbed, seat))
            };
            of_side(&hosts, start)
        }
        Workload::External(external) => {
            let is_bounded = external.command.iter().any(|word| word.contains(DURATION));
            let length = is_bounded.then(|| foreign_length(config.trials, testbed.window_lead()));
            let starter = foreign(config, testbed, external, PathSide::Tx);
            Ok(Box::new(External::generator(external.parser.clone(), length, starter)))
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
            let start = |index| {
                let listens_on = SocketAddr::new(testbed.listens_on(index), own.port);
                let mut address = vec![listens_on.to_string()];
                // An XDP program hangs on a device.
                let of_frames = own.options.bypasses_stack();
                if let Some(device) = testbed.path().rx_device.filter(|_| of_frames) {
                    address.extend(["--dev".to_owned(), device]);
                }
                let seat = Seat { side: PathSide::Rx, index };
                let mut own = own.clone();
                own.options.cpu = testbed.cpus(seat, config.variant);
                steered(config, &own, address, (testbed, seat))
            };
            Ok(Some(of_side(&testbed.hosts(PathSide::Rx), start)?))
        }
        Workload::External(external) => {
            let starter = foreign(config, testbed, external, PathSide::Rx);
            let ready = match &external.ready {
                Some(line) => Ready::Line(line.clone()),
                None => Ready::Bound(external.port),
            };
            Ok(Some(Box::new(External::server(ready, external.parser.clone(), starter))))
        }
    }
}

/// The program of each host of a side, as one.
fn of_side(
    hosts: &[String],
    start: impl Fn(usize) -> Result<Program, LabError>,
) -> Result<Box<dyn Peer>, LabError> {
    if hosts.len() < 2 {
        return Ok(Box::new(start(0)?));
    }
    let mut programs: Vec<(String, Box<dyn Peer>)> = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        programs.push((host.clone(), Box::new(start(index)?)));
    }
    Ok(Box::new(Several { programs, are_several: false }))
}

/// Load over connections towards several receivers: a program connects to one address, so that each sender has one for
/// each of its receivers.
fn of_pairs(
    config: &TrialConfig<'_>,
    testbed: &dyn Testbed,
    own: &Own<LoadOptions>,
) -> Result<Box<dyn Peer>, LabError> {
    let [senders, receivers] = [PathSide::Tx, PathSide::Rx].map(|side| testbed.hosts(side));
    let pairs = testbed.pairs();
    let mut all: Vec<(String, Box<dyn Peer>)> = Vec::new();
    for (index, sender) in senders.iter().enumerate() {
        let seat = Seat { side: PathSide::Tx, index };
        let mut programs: Vec<(String, Box<dyn Peer>)> = Vec::new();
        let mut own = own.clone();
        own.options.cpu = testbed.cpus(seat, config.variant);
        for (to, own) in sender_programs(&own, index, &pairs) {
            let program = steered(config, &own, destinations(&own, testbed, &to), (testbed, seat))?;
            let to: Vec<&str> = to.into_iter().map(|it| receivers[it].as_str()).collect();
            programs.push((format!("{sender}->{}", to.join(",")), Box::new(program)));
        }
        all.push((sender.clone(), Box::new(Several { programs, are_several: false })));
    }
    Ok(Box::new(Several { programs: all, are_several: true }))
}

/// The programs of a sender, each with the receivers that it is for: one for all of the sender's with datagrams, one for each
/// over TCP.
pub fn sender_programs(
    own: &Own<LoadOptions>,
    sender: usize,
    pairs: &HostPairs,
) -> Vec<(Vec<usize>, Own<LoadOptions>)> {
    let (receivers, numbers) = (pairs.receivers_of(sender), pairs.numbers_of(sender));
    if !own.protocol.over_tcp() || receivers.len() < 2 {
        let own = to_each_alike(own, receivers.len());
        return vec![(receivers.to_vec(), several::share(&own, numbers, pairs.count()))];
    }
    let program = |(at, to): (usize, &usize)| {
        let own = several::for_receiver(own, at, receivers.len());
        let number = numbers[0] + at;
        (vec![*to], several::share(&own, [number, number + 1], pairs.count()))
    };
    receivers.iter().enumerate().map(program).collect()
}

/// The load towards several receivers: each thread has a flow to each, so that all get the same.
fn to_each_alike(own: &Own<LoadOptions>, receivers: usize) -> Own<LoadOptions> {
    let mut own = own.clone();
    let of_threads = own.options.threads.unwrap_or(own.options.cpu.0.len().max(1) as u64);
    if receivers > 1 && !own.protocol.over_tcp() {
        own.options.flows = own.options.flows.or_else(|| u16::try_from(of_threads).ok());
    }
    own
}

/// Where our own load for these receivers sends.
fn destinations(own: &Own<LoadOptions>, testbed: &dyn Testbed, receivers: &[usize]) -> Vec<String> {
    let is_theirs = |address: &&IpAddr| {
        testbed.receiver_at(**address).is_some_and(|receiver| receivers.contains(&receiver))
    };
    let theirs: Vec<IpAddr> = testbed.addresses().iter().filter(is_theirs).copied().collect();
    destinations_of(own, &theirs)
}

/// The same, of the addresses of these receivers: every one with UDP, the first one where connections are made.
pub fn destinations_of(own: &Own<LoadOptions>, all: &[IpAddr]) -> Vec<String> {
    let count = if own.protocol.over_tcp() { 1 } else { all.len() };
    let at = |address: &IpAddr| own.protocol.destination(SocketAddr::new(*address, own.port));
    all.iter().take(count).map(at).collect()
}

/// The command of one side as it could be typed; ADDR stands for the lab's address.
pub fn command_line<O: Options>(workload: &Workload<O>) -> String {
    match workload {
        Workload::Own(own) if own.absent => "# nothing listens".into(),
        Workload::Own(own) => {
            let addr = format!("ADDR:{}", own.port);
            let addr = if O::SIDE == "load" { own.protocol.destination(addr) } else { addr };
            let mut words = words(own, vec![addr]);
            // In the lab the runner ends a sender; typed, one without a bound has to be meant.
            if own.protocol == Protocol::Udp && own.options.is_unbounded() {
                words.push("--flood".into());
            }
            format!("rxpath {}", words.join(" "))
        }
        Workload::External(external) if external.cpus.is_empty() => external.command.join(" "),
        Workload::External(external) => {
            format!("taskset -c {} {}", external.cpus, external.command.join(" "))
        }
    }
}

/// The words of a command of this program: subcommand, addresses, options.
pub fn words<O: Options>(own: &Own<O>, addresses: Vec<String>) -> Vec<String> {
    let is_server = O::SIDE == "serve";
    let count = if is_server { 1 } else { usize::MAX };
    let mut words = vec![O::SIDE.to_owned()];
    words.extend(own.protocol.word().split('-').take(count).map(str::to_owned));
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

/// What stands for [`DURATION`]: whole seconds.
fn foreign_length(trials: &Trials, window_lead: Duration) -> Duration {
    let length = whole(trials).as_duration() + window_lead + SLACK;
    Duration::from_secs_f64(length.as_secs_f64().ceil())
}

fn foreign<'a>(
    config: &'a TrialConfig<'a>,
    testbed: &'a dyn Testbed,
    external: &'a Foreign,
    side: PathSide,
) -> Starter<'a> {
    Box::new(move |at_ns| {
        let name = if side == PathSide::Tx { "load" } else { "serve" };
        let addr = testbed.addresses().first().map(ToString::to_string).unwrap_or_default();
        let seconds = foreign_length(config.trials, testbed.window_lead()).as_secs().to_string();
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
        let program = ForeignProgram { words, files: files.into_map() };
        testbed.spawn_foreign(side.into(), &program, &config.files.join(name), at_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    #[test]
    fn a_foreign_generator_lasts_longer_than_the_phases_of_its_trial() {
        let seconds = |measure: &str, lead_ms| {
            let phases = format!("ramp = \"500ms\"\nsettle = \"500ms\"\nmeasure = \"{measure}\"");
            let file = parse(&format!("question = \"q\"\n[trials]\n{phases}"), "t", "t").unwrap();
            let resolved = resolve(&file, &[], &HostShape::flat(4)).unwrap();
            foreign_length(&resolved.trials, Duration::from_millis(lead_ms)).as_secs()
        };
        assert_eq!(seconds("2s", 0), 4, "of 3 s in all, the rest would be nothing");
        assert_eq!(seconds("1500ms", 0), 3);
        assert_eq!(seconds("1600ms", 0), 4);
        assert_eq!(seconds("1500ms", 200), 4);
    }

    #[test]
    fn each_thread_has_a_flow_to_each_of_several_receivers() {
        let flows = |load: &str, receivers| {
            let file = parse(&format!("question = \"q\"\n[load]\n{load}"), "t", "t").unwrap();
            let resolved = resolve(&file, &[], &HostShape::flat(4)).unwrap();
            to_each_alike(resolved.variants[0].load.own().unwrap(), receivers).options.flows
        };
        assert_eq!(flows("threads = 3", 2), Some(3));
        assert_eq!(flows("cpu = \"0-1\"", 2), Some(2));
        assert_eq!(flows("", 2), Some(1));
        assert_eq!(flows("threads = 3\nflows = 5", 2), Some(5), "as the scenario wants it");
        assert_eq!(flows("threads = 3", 1), None);
    }

    /// Of each sender: where its programs send, with which rates and connections.
    fn shares(
        scenario: &str,
        pairs: &HostPairs,
    ) -> Vec<Vec<(Vec<String>, Option<u64>, Option<u64>)>> {
        let file = parse(&format!("question = \"q\"\n{scenario}"), "t", "t").unwrap();
        let resolved = resolve(&file, &[], &HostShape::flat(4)).unwrap();
        let own = resolved.variants[0].load.own().unwrap();
        let address = |receiver: usize| IpAddr::from([192, 0, 2, receiver as u8]);
        let program = |(to, own): (Vec<usize>, Own<LoadOptions>)| {
            let all: Vec<IpAddr> = to.into_iter().map(address).collect();
            (destinations_of(&own, &all), own.options.rate, own.options.connections)
        };
        let of_sender = |sender| sender_programs(own, sender, pairs).into_iter().map(program);
        (0..pairs.hosts()[0]).map(|sender| of_sender(sender).collect()).collect()
    }

    #[test]
    fn a_sender_sends_to_its_own_receivers_with_a_share_for_each() {
        let to = |last: &[u8]| -> Vec<String> {
            last.iter().map(|last| format!("192.0.2.{last}:4321")).collect()
        };
        let apart = HostPairs::of(2, 2, |sender, receiver| sender == receiver);
        let udp = "load.rate = 6000";
        let each = [vec![(to(&[0]), Some(3_000), None)], vec![(to(&[1]), Some(3_000), None)]];
        assert_eq!(shares(udp, &apart), each);
        // The first one sends to both.
        let uneven = HostPairs::of(2, 2, |sender, receiver| sender <= receiver);
        let both = [vec![(to(&[0, 1]), Some(4_000), None)], vec![(to(&[1]), Some(2_000), None)]];
        assert_eq!(shares(udp, &uneven), both);
        let tcp = format!("load.protocol = \"tcp-rr\"\nload.connections = 4\n{udp}");
        let first = vec![(to(&[0]), Some(2_000), Some(2)), (to(&[1]), Some(2_000), Some(2))];
        let second = vec![(to(&[1]), Some(2_000), Some(4))];
        assert_eq!(shares(&tcp, &uneven), [first, second]);
    }
}
