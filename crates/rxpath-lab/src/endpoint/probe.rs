//! Probes of the path between two hosts: an endpoint sends them, another one answers.
//!
//! They use the workload's own port before the workload does. Only probes with the secret of the moment are answered, and
//! the port is open only until the coordinator has what it wanted to know.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rxpath_host::lab::probe::{ProbeSocket, ReceivedDatagram, connect_from, limit_hops};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::arrivals::ArrivalClock;
use self::connections::answer_connections;
use super::clock::{ClockPair, Exchange};
use super::outlet::{Outlet, json};
use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::stoppable::Stoppable;

mod arrivals;
mod connections;
mod rules;

/// How long an answer may take: more than any network that is worth measuring in.
const ANSWER_LIMIT: Duration = Duration::from_millis(300);
/// A connection may take this long, and the secret on it: a packet that is lost is sent again after a second.
const CONNECT_LIMIT: Duration = Duration::from_millis(2_500);
/// A probe is sent again if it is not answered: the first one may wait for the neighbour's address.
const ATTEMPTS: u32 = 3;
/// Time between two checks for the order to end.
const GLANCE: Duration = Duration::from_millis(20);
/// The longest datagram.
const LONGEST: usize = 1 << 16;
/// An instant in a probe. **Unit** bytes.
const STAMP: usize = 8;
/// How long the clocks are compared: over a long path with fewer exchanges.
const COMPARED: Duration = Duration::from_secs(1);
/// Probes that are remembered.
const MOST_HEARD: usize = 1_000;

/// What a coordinator may want.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeAsk {
    /// Answers probes at an address, until [`ProbeAsk::Heard`].
    Listen {
        /// The address.
        at: SocketAddr,
        /// Connections instead of datagrams.
        tcp: bool,
        /// What probes begin with.
        nonce: String,
        /// Hops that answers may take.
        hops: u8,
    },
    /// Ends that: a list of [`HeardProbe`].
    Heard,
    /// Sends probes: a [`SentProbes`].
    Send(ProbeSend),
    /// Sends as many probes as there are sizes, one after the other, and compares the clocks: a list of [`Exchange`], of those
    /// that were answered.
    Compare(ProbeSend),
    /// How many rules of nftables are on input: a number, or null where they cannot be counted.
    InputRules {
        /// Of IPv6 instead of IPv4.
        v6: bool,
    },
}

/// Probes to be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeSend {
    /// The own address; any of its family, where the route tells it.
    pub from: IpAddr,
    /// Where they go.
    pub to: SocketAddr,
    /// A connection instead of datagrams.
    pub tcp: bool,
    /// What they begin with.
    pub nonce: String,
    /// Hops that they may take.
    pub hops: u8,
    /// The payload of each. **Unit** bytes.
    pub sizes: Vec<u32>,
    /// Whether each is sent again until it is answered; else all are sent once, at once.
    pub waits: bool,
}

/// A probe that came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardProbe {
    /// Its payload. **Unit** bytes.
    pub bytes: u32,
    /// Index of the device on which it came; unknown of connections.
    pub device: Option<u32>,
    /// Hops that it had left; unknown of connections.
    pub hops_left: Option<u8>,
}

/// What became of probes at their sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentProbes {
    /// The sizes that were answered.
    pub answered: Vec<u32>,
    /// Why the host would not send one, or had no connection.
    pub refused: Option<String>,
}

/// The open port of an endpoint, if there is one.
#[derive(Default)]
pub struct HostProbes(Option<Stoppable<Vec<HeardProbe>>>);

impl HostProbes {
    /// Does what is wanted; `None` if a thread answers later.
    pub fn answer(
        &mut self,
        id: u64,
        ask: ProbeAsk,
        outlet: &Arc<Outlet>,
    ) -> Result<Option<Value>, LabError> {
        match ask {
            ProbeAsk::Listen { at, tcp, nonce, hops } => {
                self.end();
                self.0 = Some(listen(at, (tcp, hops), nonce)?);
                Ok(Some(Value::Null))
            }
            ProbeAsk::Heard => json(&self.end()).map(Some),
            ProbeAsk::Send(ask) => {
                outlet.later(
                    id,
                    move |_| if ask.tcp { Ok(connection(&ask)) } else { datagrams(&ask) },
                );
                Ok(None)
            }
            ProbeAsk::Compare(ask) => {
                outlet.later(id, move |_| exchanges(&ask));
                Ok(None)
            }
            ProbeAsk::InputRules { v6 } => json(&rules::on_input(v6)).map(Some),
        }
    }

    fn end(&mut self) -> Vec<HeardProbe> {
        self.0.take().and_then(|mut listening| listening.end()).unwrap_or_default()
    }
}

/// Answers probes in a thread.
fn listen(
    at: SocketAddr,
    (tcp, hops): (bool, u8),
    nonce: String,
) -> Result<Stoppable<Vec<HeardProbe>>, LabError> {
    let name = if tcp { "tcp" } else { "udp" };
    let refused = |error| LabError::io(format!("open {name}/{} for probes", at.port()), error);
    if tcp {
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        limit_hops(&listener, at.is_ipv6(), hops).map_err(refused)?;
        return Ok(Stoppable::start(move |stop| {
            answer_connections(&listener, nonce.as_bytes(), stop)
        }));
    }
    let socket = ProbeSocket::bind(at).map_err(refused)?;
    socket.limit(hops).map_err(refused)?;
    let arrivals = ArrivalClock::start();
    Ok(Stoppable::start(move |stop| answer_datagrams(&socket, nonce.as_bytes(), arrivals, stop)))
}

/// An answer begins with the secret and the size of what is answered.
fn answer_to(nonce: &[u8], bytes: u32) -> Vec<u8> {
    [nonce, &bytes.to_be_bytes()].concat()
}

fn answer_datagrams(
    socket: &ProbeSocket,
    nonce: &[u8],
    mut arrivals: ArrivalClock,
    stop: &AtomicBool,
) -> Vec<HeardProbe> {
    let mut heard = Vec::new();
    let mut bytes = vec![0; LONGEST];
    while !stop.load(Ordering::Relaxed) {
        let Ok(arrival) = socket.receive(&mut bytes, GLANCE) else { return heard };
        let got_ns = arrivals.latest_ns(arrival.as_ref().and_then(|it| it.stamp_ns));
        let Some(ReceivedDatagram { bytes: length, from, device, hops_left, .. }) = arrival else {
            continue;
        };
        if !bytes[..length].starts_with(nonce) {
            continue;
        }
        let asked = bytes[..length].get(nonce.len()..nonce.len() + STAMP);
        let asked = asked.map(<[u8]>::to_vec).unwrap_or_default();
        let length = length as u32;
        if heard.len() < MOST_HEARD {
            heard.push(HeardProbe { bytes: length, device, hops_left });
        }
        // An answer that cannot be sent is one that does not come.
        let mut answer = [answer_to(nonce, length), asked, got_ns.to_be_bytes().to_vec()].concat();
        answer.extend(monotonic_ns().to_be_bytes());
        let _ = socket.send(&answer, from);
    }
    heard
}

fn sending(ask: &ProbeSend) -> Result<ProbeSocket, LabError> {
    let failed = |error| LabError::io("send probes", error);
    let socket = ProbeSocket::bind(SocketAddr::new(ask.from, 0)).map_err(failed)?;
    socket.limit(ask.hops).map_err(failed)?;
    Ok(socket)
}

/// The clock here and the answering host's, by datagrams on the path between them. One that is not answered is left out; after
/// some of them it ends.
fn exchanges(ask: &ProbeSend) -> Result<Vec<Exchange>, LabError> {
    let socket = sending(ask)?;
    let until = Instant::now() + COMPARED;
    let mut made = Vec::with_capacity(ask.sizes.len());
    let (mut missing, mut refused) = (0, None);
    while made.len() < ask.sizes.len() && missing < ATTEMPTS && Instant::now() < until {
        match exchange(&socket, ask) {
            Ok(Some(one)) => made.push(one),
            Ok(None) => missing += 1,
            Err(error) => {
                missing += 1;
                refused = Some(error);
            }
        }
    }
    match refused.filter(|_| made.is_empty()) {
        Some(error) => Err(LabError::io("send probes", error)),
        None => Ok(made),
    }
}

/// One of them; `None` without an answer.
fn exchange(socket: &ProbeSocket, ask: &ProbeSend) -> io::Result<Option<Exchange>> {
    let nonce = ask.nonce.as_bytes();
    let mut arrivals = ArrivalClock::start();
    let asked_ns = monotonic_ns();
    let probe = [nonce, &asked_ns.to_be_bytes()].concat();
    socket.send(&probe, ask.to)?;
    // The instant in it shows that the answer is to this one.
    let begin = [answer_to(nonce, probe.len() as u32), probe[nonce.len()..].to_vec()].concat();
    let answer = answered(socket, &begin);
    let back_ns = arrivals.latest_ns(answer.as_ref().and_then(|answer| answer.stamp_ns));
    let there = answer.and_then(|answer| clock_pair(&answer.rest));
    Ok(there.map(|there| Exchange { asked_ns, there, back_ns }))
}

/// The two instants at the end of an answer.
fn clock_pair(stamps: &[u8]) -> Option<ClockPair> {
    let (got, answered) = stamps.split_at_checked(STAMP)?;
    let of = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).ok();
    Some(ClockPair { got_ns: of(got)?, answered_ns: of(answered)? })
}

fn datagrams(ask: &ProbeSend) -> Result<SentProbes, LabError> {
    let socket = sending(ask)?;
    let nonce = ask.nonce.as_bytes();
    let mut sent = SentProbes::default();
    for size in &ask.sizes {
        let mut datagram = nonce.to_vec();
        datagram.resize((*size as usize).max(nonce.len()), 0);
        for _ in 0..if ask.waits { ATTEMPTS } else { 1 } {
            if let Err(error) = socket.send(&datagram, ask.to) {
                sent.refused.get_or_insert(error.to_string());
            }
            let answer = answer_to(nonce, datagram.len() as u32);
            if ask.waits && answered(&socket, &answer).is_some() {
                sent.answered.push(*size);
                break;
            }
        }
    }
    Ok(sent)
}

/// An answer to a probe.
struct Answer {
    /// What follows its begin.
    rest: Vec<u8>,
    /// The kernel's stamp.
    stamp_ns: Option<u64>,
}

/// The answer that begins so, if it comes.
fn answered(socket: &ProbeSocket, begin: &[u8]) -> Option<Answer> {
    let deadline = Instant::now() + ANSWER_LIMIT;
    let mut bytes = [0; 256];
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        // A late answer to an earlier probe is passed over, and so is the refusal that a host sent back.
        if let Ok(Some(arrival)) = socket.receive(&mut bytes, left)
            && let Some(rest) = bytes[..arrival.bytes].strip_prefix(begin)
        {
            return Some(Answer { rest: rest.to_vec(), stamp_ns: arrival.stamp_ns });
        }
    }
    None
}

fn connection(ask: &ProbeSend) -> SentProbes {
    let nonce = ask.nonce.as_bytes();
    let exchanged =
        connect_from(ask.from, ask.to, (ask.hops, CONNECT_LIMIT)).and_then(|mut made| {
            // There is one try: a busy host may be slow.
            made.set_read_timeout(Some(CONNECT_LIMIT))?;
            made.write_all(nonce)?;
            let mut said = vec![0; nonce.len()];
            made.read_exact(&mut said)?;
            Ok(said == nonce)
        });
    match exchanged {
        Ok(true) => SentProbes { answered: ask.sizes.clone(), refused: None },
        Ok(false) => SentProbes::default(),
        Err(error) => SentProbes { answered: Vec::new(), refused: Some(error.to_string()) },
    }
}

#[cfg(test)]
mod tests;
