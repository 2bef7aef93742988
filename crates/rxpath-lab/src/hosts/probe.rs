//! Probes of the path before anything is measured on it: whether each receiver's port is open, on which device packets come,
//! over how many hops, and how large they may be.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use rand::RngExt;
use rxpath_core::IntoMap;
use rxpath_host::lab::probe::ORDINARY_HOPS;
use rxpath_record::counters::Snapshot;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::words::{Ends, Found, Hops, Reach, SMALL, refusal};
use super::connect::joined;
use super::fault::{HostFault, refuse};
use super::pairs::HostPairs;
use super::{ConnectedHost, Hosts};
use crate::endpoint::client::PROMPT;
use crate::endpoint::clock::{ClockBounds, EXCHANGES, Exchange};
use crate::endpoint::probe::{HeardProbe, ProbeAsk, ProbeSend, SentProbes};
use crate::endpoint::wire::HostAsk;
use crate::error::{LabError, cannot};
use crate::scenario::spec::Resolved;
use crate::testbed::any_of;

mod again;
mod words;

/// MTUs of links that are common on a path, least first. **Unit** bytes.
const COMMON_MTUS: [u32; 6] = [576, 1_280, 1_400, 1_450, 1_500, 4_000];
/// Probes that are sent to see by the devices' counters how far they get.
const BURST: u32 = 100;
/// What else may pass the devices meanwhile is counted for as long before it.
const BURST_TIME: Duration = Duration::from_millis(300);

/// A port that a workload listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbedPort {
    /// Of TCP instead of UDP.
    pub tcp: bool,
    /// Its number.
    pub port: u16,
}

impl fmt::Display for ProbedPort {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", if self.tcp { "tcp" } else { "udp" }, self.port)
    }
}

/// How far a sender's clock is ahead of a receiver's by datagrams on their path; nothing where the two have one clock.
pub type PathClock = Result<Option<ClockBounds>, PathFault>;

/// Why datagrams on a path do not show how far two clocks are apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathFault {
    /// A clock jumped between the first datagram and the last one.
    Jumped,
    /// None was answered, or none could be sent: why.
    Missing(String),
}

/// The ports on which the variants listen that can run here.
pub fn ports(resolved: &Resolved) -> BTreeSet<ProbedPort> {
    let listening = resolved.available().filter(|it| it.serve.own().is_none_or(|own| !own.absent));
    listening
        .map(|it| ProbedPort { tcp: it.protocol().over_tcp(), port: it.serve.port() })
        .collect()
}

impl Hosts {
    /// Probes the path from each sender to each address and port of its receivers.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] with what is wrong with each; that of a host that no longer answers.
    pub fn probe(&self, ports: &BTreeSet<ProbedPort>) -> Result<(), LabError> {
        refuse(self.probed(ports))
    }

    /// Does the same, and says what is wrong: of a pair the first fault. Pairs that have no host in common are probed at the
    /// same time.
    pub fn probed(&self, ports: &BTreeSet<ProbedPort>) -> Vec<HostFault> {
        let found = self.in_rounds(|pair| self.probe_pair(pair, ports));
        let failed: Vec<_> =
            found.filter_map(|(pair, one)| Some((pair, joined(one).err()?))).collect();
        let pairs: Vec<(usize, usize)> = failed.iter().map(|(pair, _)| *pair).collect();
        let mut faults: Vec<HostFault> = Vec::new();
        for ((sender, receiver), error) in failed {
            let senders = self.pairs.senders_of(receiver).len();
            let host = if is_unreached(receiver, &pairs, senders) {
                &self.receivers[receiver]
            } else {
                &self.senders[sender]
            };
            let fault = HostFault::of(host.client.alias(), error);
            // A port that cannot be opened is no path's fault: each sender meets it.
            if !faults.iter().any(|known| known.text() == fault.text()) {
                faults.push(fault);
            }
        }
        faults
    }

    /// Compares the clocks of each pair by datagrams on the path between them, over a port that is free: how far the sender's
    /// clock is ahead, at an instant of the sender's.
    pub fn clocks_over_path(&self, port: u16) -> Vec<PathClock> {
        let port = ProbedPort { tcp: false, port };
        let found = self.in_rounds(|pair| self.clock_over_path(pair, port));
        let panicked = |_| Err(PathFault::Missing("its thread panicked".into()));
        // In the order of the pairs.
        let all = found.map(|(pair, one)| (pair, one.unwrap_or_else(panicked))).into_map();
        all.into_values().collect()
    }

    /// Does the work for each pair, at the same time for those that have no host in common. A round of pairs begins when the
    /// results of the one before are taken.
    fn in_rounds<T: Send>(
        &self,
        work: impl Fn((usize, usize)) -> T + Sync,
    ) -> impl Iterator<Item = ((usize, usize), thread::Result<T>)> {
        rounds(&self.pairs).into_iter().flat_map(move |round| {
            thread::scope(|scope| {
                let work = &work;
                let start = |pair: (usize, usize)| (pair, scope.spawn(move || work(pair)));
                let threads: Vec<_> = round.into_iter().map(start).collect();
                threads.into_iter().map(|(pair, thread)| (pair, thread.join())).collect::<Vec<_>>()
            })
        })
    }

    fn clock_over_path(&self, (sender, receiver): (usize, usize), port: ProbedPort) -> PathClock {
        let (sender, receiver) = (&self.senders[sender], &self.receivers[receiver]);
        if sender.has_clock_of(receiver) {
            return Ok(None);
        }
        let Some(to) = receiver.addresses.first() else { return Ok(None) };
        path_clock(Path::new((sender, receiver), (*to, port), self.hops).compare())
    }

    fn probe_pair(
        &self,
        (sender, receiver): (usize, usize),
        ports: &BTreeSet<ProbedPort>,
    ) -> Result<(), LabError> {
        let (sender, receiver) = (&self.senders[sender], &self.receivers[receiver]);
        for port in ports {
            for to in &receiver.addresses {
                Path::new((sender, receiver), (*to, *port), self.hops).check()?;
            }
        }
        Ok(())
    }
}

/// The sender's clock by exchanges of datagrams. A port that others have, or a path that loses all datagrams, leaves what the
/// control connections show.
fn path_clock(made: Result<Vec<Exchange>, LabError>) -> PathClock {
    let made = made.map_err(|error| PathFault::Missing(error.to_string()))?;
    if made.is_empty() {
        return Err(PathFault::Missing("no datagram was answered".into()));
    }
    Ok(Some(ClockBounds::of(&made).ok_or(PathFault::Jumped)?.reversed()))
}

/// All pairs, in rounds in which no host is in two of them.
fn rounds(pairs: &HostPairs) -> Vec<Vec<(usize, usize)>> {
    let [senders, receivers] = pairs.hosts();
    let count = senders.max(receivers);
    let round = |shift: usize| -> Vec<(usize, usize)> {
        let is_in = |(sender, receiver): &(usize, usize)| (sender + shift) % count == *receiver;
        pairs.each().filter(is_in).collect()
    };
    (0..count).map(round).filter(|round| !round.is_empty()).collect()
}

/// Whether none of its senders reaches a receiver: then the receiver is not ready. Else the sender is not that does not reach it.
fn is_unreached(receiver: usize, failed: &[(usize, usize)], senders: usize) -> bool {
    failed.iter().filter(|(_, other)| *other == receiver).count() == senders
}

/// From a sender to an address and port of a receiver.
struct Path<'a> {
    sender: &'a ConnectedHost,
    receiver: &'a ConnectedHost,
    ends: Ends<'a>,
}

impl<'a> Path<'a> {
    fn new(
        (sender, receiver): (&'a ConnectedHost, &'a ConnectedHost),
        (to, port): (IpAddr, ProbedPort),
        hops: u8,
    ) -> Self {
        let ends = Ends {
            sender: sender.client.alias(),
            receiver: receiver.client.alias(),
            devices: [&sender.device.name, &receiver.device.name],
            mtus: [sender.device.mtu_bytes, receiver.device.mtu_bytes],
            payload: None,
            port,
            to,
            hops,
        };
        Self { sender, receiver, ends }
    }

    /// Probes it, or says what is wrong with it.
    fn check(&self) -> Result<(), LabError> {
        let Self { sender, receiver, ends } = self;
        // Nothing lies between two ends of one loopback.
        let is_loopback = sender.device.addresses.iter().any(IpAddr::is_loopback);
        let sizes = if is_loopback || ends.port.tcp { vec![SMALL] } else { ends.sizes() };
        let mut found = self.exchange(ends.hops, &sizes)?;
        if found.heard.is_empty() {
            self.look_for(&mut found)?;
        } else if sizes.iter().any(|size| !found.sent.answered.contains(size)) {
            found.sizes = self.largest()?;
        }
        let other = |probe: &HeardProbe| {
            probe.device.filter(|at| *at != receiver.device.index && !is_loopback)
        };
        let other = found.heard.iter().find_map(other).map(|index| {
            let mut devices = receiver.hello.devices.iter();
            let named = devices.find(|device| device.index == index);
            named.map_or_else(|| format!("device {index}"), |device| device.name.clone())
        });
        match refusal(ends, &found, other.as_deref()) {
            Some((what, hint)) => Err(cannot(what, hint)),
            None => Ok(()),
        }
    }

    /// Why no probe came.
    fn look_for(&self, found: &mut Found) -> Result<(), LabError> {
        let allowed = self.ends.hops;
        if allowed < ORDINARY_HOPS {
            let farther = self.exchange(ORDINARY_HOPS, &[SMALL])?;
            let taken = |left: u8| ORDINARY_HOPS.saturating_sub(left) + 1;
            match farther.heard.first().map(|probe| probe.hops_left.map(taken)) {
                // The first ones were lost: the next time all is well.
                Some(Some(taken)) if taken <= allowed => {
                    *found = farther;
                    return Ok(());
                }
                Some(Some(taken)) => found.hops = Some(Hops::Exactly(taken)),
                Some(None) => found.hops = Some(Hops::More),
                None => {}
            }
        }
        if found.hops.is_none() {
            if !self.ends.port.tcp {
                found.reach = self.reach()?;
            }
            let rules = ProbeAsk::InputRules { v6: self.ends.to.is_ipv6() };
            found.input_rules = ask(self.receiver, rules)?;
        }
        Ok(())
    }

    /// Sends probes of these sizes over at most so many hops.
    fn exchange(&self, hops: u8, sizes: &[u32]) -> Result<Found, LabError> {
        let nonce = self.listen(hops)?;
        let probes = self.probes((nonce, hops), sizes.to_vec(), true);
        let sent = ask(self.sender, ProbeAsk::Send(probes));
        let heard = ask(self.receiver, ProbeAsk::Heard)?;
        Ok(Found { sent: sent?, heard, ..Found::default() })
    }

    /// Compares the clocks.
    fn compare(&self) -> Result<Vec<Exchange>, LabError> {
        let hops = self.ends.hops;
        let nonce = self.listen(hops)?;
        let probes = self.probes((nonce, hops), vec![SMALL; EXCHANGES as usize], true);
        let made = ask(self.sender, ProbeAsk::Compare(probes));
        let _: Vec<HeardProbe> = ask(self.receiver, ProbeAsk::Heard)?;
        made
    }

    /// Lets the receiver answer probes with a secret.
    fn listen(&self, hops: u8) -> Result<String, LabError> {
        let nonce = format!("{:016x}", rand::rng().random::<u64>());
        let ProbedPort { tcp, port } = self.ends.port;
        // Not any address: the answer must come from the one that was asked.
        let at = SocketAddr::new(self.ends.to, port);
        let listen = ProbeAsk::Listen { at, tcp, nonce: nonce.clone(), hops };
        ask::<Value>(self.receiver, listen).map_err(not_opened)?;
        Ok(nonce)
    }

    fn probes(&self, (nonce, hops): (String, u8), sizes: Vec<u32>, waits: bool) -> ProbeSend {
        let ProbedPort { tcp, port } = self.ends.port;
        let to = self.ends.to;
        ProbeSend {
            // As the workload: the route has the source address.
            from: any_of(&[to]),
            to: SocketAddr::new(to, port),
            tcp,
            nonce,
            hops,
            sizes,
            waits,
        }
    }

    /// How large datagrams may be: the size that failed, and the largest that passed.
    fn largest(&self) -> Result<Option<[u32; 2]>, LabError> {
        let full = self.ends.full();
        let steps = COMMON_MTUS.map(|mtu| mtu - self.ends.headers());
        let sizes: Vec<u32> = steps.into_iter().filter(|size| *size < full).chain([full]).collect();
        let found = self.exchange(self.ends.hops, &sizes)?;
        let passed = found.sent.answered.iter().max().copied();
        Ok(passed.filter(|passed| *passed < full).map(|passed| [full, passed]))
    }

    /// How far probes of datagrams get; `None` where other traffic hides them.
    fn reach(&self) -> Result<Option<Reach>, LabError> {
        let counted = || -> Result<[i64; 2], LabError> {
            let of = |host: &ConnectedHost, way: &str| -> Result<i64, LabError> {
                let device = host.device.name.clone();
                let name = format!("link.{device}.{way}.packets");
                let now: Snapshot = host.client.ask(HostAsk::Counters { device }, PROMPT)?;
                Ok(now.values.get(&name).copied().unwrap_or_default() as i64)
            };
            Ok([of(self.sender, "tx")?, of(self.receiver, "rx")?])
        };
        let before = counted()?;
        // why: counts what else passes in the time that the probes will take.
        thread::sleep(BURST_TIME);
        let idle = counted()?;
        let sizes = vec![SMALL; BURST as usize];
        let burst = self.probes((String::new(), self.ends.hops), sizes, false);
        let _: SentProbes = ask(self.sender, ProbeAsk::Send(burst))?;
        // why: the probes need time to pass, and drivers to count them.
        thread::sleep(BURST_TIME);
        let after = counted()?;
        let more = |at: usize| (after[at] - idle[at]) - (idle[at] - before[at]);
        let quiet = (0..2).all(|at| idle[at] - before[at] < i64::from(BURST) / 2);
        Ok(quiet.then(|| reached([more(0), more(1)])))
    }
}

/// How far a burst got that moved the two counters by this much.
fn reached([left, came]: [i64; 2]) -> Reach {
    let most = i64::from(BURST) / 2;
    match (left > most, came > most) {
        (_, true) => Reach::Came,
        (true, false) => Reach::Sent,
        (false, false) => Reach::NotSent,
    }
}

fn ask<T: DeserializeOwned>(host: &ConnectedHost, what: ProbeAsk) -> Result<T, LabError> {
    host.client.ask(HostAsk::Probe { what }, PROMPT)
}

/// A port that cannot be opened can't be measured on.
fn not_opened(error: LabError) -> LabError {
    match error {
        LabError::OnHost { host, text, .. } => cannot(
            format!("{host}: {text}"),
            "another program may have the port (ss -lnp there shows it); serve.port and load.port take another",
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::clock::ClockPair;

    #[test]
    fn each_sender_meets_each_receiver_once_and_no_host_is_in_two_pairs_of_a_round() {
        for (senders, receivers) in [(1, 1), (4, 1), (1, 5), (3, 3), (2, 5), (32, 8)] {
            let all = rounds(&HostPairs::all(senders, receivers));
            assert_eq!(all.len(), senders.max(receivers));
            for round in &all {
                let of: BTreeSet<usize> = round.iter().map(|pair| pair.0).collect();
                let to: BTreeSet<usize> = round.iter().map(|pair| pair.1).collect();
                assert_eq!((of.len(), to.len()), (round.len(), round.len()), "{round:?}");
            }
            let pairs: BTreeSet<(usize, usize)> = all.iter().flatten().copied().collect();
            let count: usize = all.iter().map(Vec::len).sum();
            assert_eq!((pairs.len(), count), (senders * receivers, senders * receivers));
        }
    }

    #[test]
    fn chosen_pairs_alone_are_in_rounds() {
        let diagonal = HostPairs::of(2, 2, |sender, receiver| sender == receiver);
        assert_eq!(rounds(&diagonal), [[(0, 0), (1, 1)]]);
        let chosen = HostPairs::of(2, 3, |sender, receiver| sender == 0 || receiver == 0);
        let mut all = rounds(&chosen).concat();
        all.sort_unstable();
        assert_eq!(all, [(0, 0), (0, 1), (0, 2), (1, 0)]);
    }

    #[test]
    fn a_clock_that_jumps_between_datagrams_is_no_path_that_loses_them() {
        let exchange = |asked_ns: u64, there_ns: u64| {
            let there = ClockPair { got_ns: there_ns, answered_ns: there_ns };
            Exchange { asked_ns, there, back_ns: asked_ns + 10 }
        };
        let steady = [exchange(100, 1_105), exchange(200, 1_205)];
        let found = path_clock(Ok(steady.to_vec())).unwrap().unwrap();
        assert_eq!((found.least_ns, found.most_ns), (-1_005, -995));
        let jumped = [exchange(100, 1_105), exchange(200, 9_205)];
        assert_eq!(path_clock(Ok(jumped.to_vec())), Err(PathFault::Jumped));
        let missing = |why: &str| -> PathClock { Err(PathFault::Missing(why.into())) };
        assert_eq!(path_clock(Ok(Vec::new())), missing("no datagram was answered"));
        let taken = LabError::OnHost {
            host: "sut".into(),
            text: "the port is taken".into(),
            hint: String::new(),
        };
        assert_eq!(path_clock(Err(taken)), missing("sut: the port is taken"));
    }

    #[test]
    fn a_receiver_that_nobody_reaches_is_not_ready_and_else_the_sender_is_not() {
        let failed = [(0, 1), (1, 1), (1, 0)];
        assert!(is_unreached(1, &failed, 2));
        assert!(!is_unreached(0, &failed, 2));
    }

    #[test]
    fn a_burst_shows_how_far_it_got_although_a_few_other_packets_pass() {
        assert_eq!(reached([103, 100]), Reach::Came);
        assert_eq!(reached([101, 4]), Reach::Sent);
        assert_eq!(reached([3, 2]), Reach::NotSent);
    }
}
