//! Probes of the path before anything is measured on it: whether the receiver's port is open, on which device packets come,
//! over how many hops, and how large they may be.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rand::RngExt;
use rxpath_host::probe::ORDINARY_HOPS;
use rxpath_record::counters::Snapshot;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::words::{Ends, Found, Hops, Reach, SMALL, refusal};
use super::{ConnectedHost, Hosts};
use crate::endpoint::client::PROMPT;
use crate::endpoint::probe::{HeardProbe, ProbeAsk, ProbeSend, SentProbes};
use crate::endpoint::wire::Ask;
use crate::error::LabError;
use crate::scenario::spec::Resolved;

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

/// The ports on which the variants listen that can run here.
pub fn ports(resolved: &Resolved) -> BTreeSet<ProbedPort> {
    let here = resolved.variants.iter().filter(|variant| variant.not_available.is_none());
    let listening = here.filter(|variant| variant.serve.own().is_none_or(|own| !own.absent));
    listening
        .map(|it| ProbedPort { tcp: it.protocol().over_tcp(), port: it.serve.port() })
        .collect()
}

impl Hosts {
    /// Probes the path from each sender to each address and port of the receiver.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] with what is wrong with it; that of a host that no longer answers.
    pub fn probe(&self, ports: &BTreeSet<ProbedPort>) -> Result<(), LabError> {
        for port in ports {
            for sender in &self.senders {
                for address in &self.receiver.addresses {
                    self.probe_one(sender, *address, *port)?;
                }
            }
        }
        Ok(())
    }

    fn probe_one(
        &self,
        sender: &ConnectedHost,
        to: IpAddr,
        port: ProbedPort,
    ) -> Result<(), LabError> {
        let ends = Ends {
            sender: sender.client.alias(),
            receiver: self.receiver.client.alias(),
            devices: [&sender.device.name, &self.receiver.device.name],
            mtus: [sender.device.mtu_bytes, self.receiver.device.mtu_bytes],
            port,
            to,
            hops: self.hops,
        };
        // Nothing lies between two ends of one loopback.
        let is_loopback = sender.device.addresses.iter().any(IpAddr::is_loopback);
        let sizes = if is_loopback || port.tcp { vec![SMALL] } else { ends.sizes() };
        let mut found = self.exchange(sender, &ends, (self.hops, &sizes))?;
        if found.heard.is_empty() {
            self.look_for(sender, &ends, &mut found)?;
        } else if sizes.iter().any(|size| !found.sent.answered.contains(size)) {
            found.sizes = self.largest(sender, &ends)?;
        }
        let other = |probe: &HeardProbe| {
            probe.device.filter(|at| *at != self.receiver.device.index && !is_loopback)
        };
        let other = found.heard.iter().find_map(other).map(|index| {
            let mut devices = self.receiver.hello.devices.iter();
            let named = devices.find(|device| device.index == index);
            named.map_or_else(|| format!("device {index}"), |device| device.name.clone())
        });
        match refusal(&ends, &found, other.as_deref()) {
            Some((what, hint)) => Err(LabError::CannotRun { what, hint }),
            None => Ok(()),
        }
    }

    /// Why no probe came.
    fn look_for(
        &self,
        sender: &ConnectedHost,
        ends: &Ends<'_>,
        found: &mut Found,
    ) -> Result<(), LabError> {
        if self.hops < ORDINARY_HOPS {
            let farther = self.exchange(sender, ends, (ORDINARY_HOPS, &[SMALL]))?;
            let taken = |left: u8| ORDINARY_HOPS.saturating_sub(left) + 1;
            match farther.heard.first().map(|probe| probe.hops_left.map(taken)) {
                // The first ones were lost: the next time all is well.
                Some(Some(taken)) if taken <= self.hops => {
                    *found = farther;
                    return Ok(());
                }
                Some(Some(taken)) => found.hops = Some(Hops::Exactly(taken)),
                Some(None) => found.hops = Some(Hops::More),
                None => {}
            }
        }
        if found.hops.is_none() && !ends.port.tcp {
            found.reach = self.reach(sender, ends)?;
        }
        Ok(())
    }

    /// Sends probes of these sizes over at most so many hops.
    fn exchange(
        &self,
        sender: &ConnectedHost,
        ends: &Ends<'_>,
        (hops, sizes): (u8, &[u32]),
    ) -> Result<Found, LabError> {
        let nonce = format!("{:016x}", rand::rng().random::<u64>());
        let ProbedPort { tcp, port } = ends.port;
        // As the workload will: one address, or any of the family.
        let at = match self.receiver.addresses.as_slice() {
            [one] => *one,
            _ if ends.to.is_ipv6() => std::net::Ipv6Addr::UNSPECIFIED.into(),
            _ => std::net::Ipv4Addr::UNSPECIFIED.into(),
        };
        let listen =
            ProbeAsk::Listen { at: SocketAddr::new(at, port), tcp, nonce: nonce.clone(), hops };
        ask::<Value>(&self.receiver, listen).map_err(not_opened)?;
        let from = sender.addresses.first().copied().unwrap_or(at);
        let send = ProbeSend {
            from,
            to: SocketAddr::new(ends.to, port),
            tcp,
            nonce,
            hops,
            sizes: sizes.to_vec(),
            waits: true,
        };
        let sent = ask(sender, ProbeAsk::Send(send));
        let heard = ask(&self.receiver, ProbeAsk::Heard)?;
        Ok(Found { sent: sent?, heard, ..Found::default() })
    }

    /// How large datagrams may be: the size that failed, and the largest that passed.
    fn largest(
        &self,
        sender: &ConnectedHost,
        ends: &Ends<'_>,
    ) -> Result<Option<[u32; 2]>, LabError> {
        let full = ends.full();
        let steps = COMMON_MTUS.map(|mtu| mtu - ends.headers());
        let sizes: Vec<u32> = steps.into_iter().filter(|size| *size < full).chain([full]).collect();
        let found = self.exchange(sender, ends, (self.hops, &sizes))?;
        let passed = found.sent.answered.iter().max().copied();
        Ok(passed.filter(|passed| *passed < full).map(|passed| [full, passed]))
    }

    /// How far probes get; `None` where other traffic hides them.
    fn reach(&self, sender: &ConnectedHost, ends: &Ends<'_>) -> Result<Option<Reach>, LabError> {
        let counted = || -> Result<[i64; 2], LabError> {
            let of = |host: &ConnectedHost, way: &str| -> Result<i64, LabError> {
                let device = host.device.name.clone();
                let name = format!("link.{device}.{way}.packets");
                let now: Snapshot = host.client.ask(Ask::Counters { device }, PROMPT)?;
                Ok(now.values.get(&name).copied().unwrap_or_default() as i64)
            };
            Ok([of(sender, "tx")?, of(&self.receiver, "rx")?])
        };
        let before = counted()?;
        // why: counts what else passes in the time that the probes will take.
        std::thread::sleep(BURST_TIME);
        let idle = counted()?;
        let send = ProbeSend {
            from: sender.addresses.first().copied().unwrap_or(ends.to),
            to: SocketAddr::new(ends.to, ends.port.port),
            tcp: false,
            nonce: String::new(),
            hops: self.hops,
            sizes: vec![SMALL; BURST as usize],
            waits: false,
        };
        let _: SentProbes = ask(sender, ProbeAsk::Send(send))?;
        // why: the probes need time to pass, and drivers to count them.
        std::thread::sleep(BURST_TIME);
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
    host.client.ask(Ask::Probe { what }, PROMPT)
}

/// A port that cannot be opened can't be measured on.
fn not_opened(error: LabError) -> LabError {
    match error {
        LabError::OnHost { host, text } => LabError::CannotRun {
            what: format!("{host}: {text}"),
            hint: "another program may have the port (ss -lnp there shows it); serve.port and load.port take another".into(),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_shows_how_far_it_got_although_a_few_other_packets_pass() {
        assert_eq!(reached([103, 100]), Reach::Came);
        assert_eq!(reached([101, 4]), Reach::Sent);
        assert_eq!(reached([3, 2]), Reach::NotSent);
    }
}
