//! Observers of a trial on its hosts: reasons of drops on all, the rest on the receiver's.

use std::sync::Arc;

use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_core::{Nanos, PathSide};
use rxpath_host::lab::owner::Owner;
use serde_json::Value;

use super::AFTER_WINDOW;
use crate::clock::HostClock;
use crate::endpoint::client::{Client, PROMPT, PendingAnswer};
use crate::endpoint::observing::{ObserveAsk, ObserveStart};
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;
use crate::hosts::observe::ask;
use crate::hosts::{ConnectedHost, Hosts};
use crate::scenario::spec::{Background, Variant};
use crate::trial::observers::{Observed, Observers, Observing};
use crate::trial::sides::Sides;

/// What observes a trial on other hosts, which end it too when the connection ends.
pub struct RemoteObservers {
    /// Of the receivers; the first one's of hosts with one kernel, which sees all.
    receivers: Vec<Arc<Client>>,
    /// The first receiver's.
    clock: HostClock,
    /// Where only reasons of drops are observed.
    senders: Vec<Arc<Client>>,
    window: Option<PendingAnswer>,
    is_over: bool,
}

impl RemoteObservers {
    /// Starts those that the variant wants. Without any nothing is asked of the hosts.
    pub fn start(
        hosts: &Hosts,
        clock: HostClock,
        variant: &Variant,
        calibration: Option<&IrqCalibration>,
    ) -> Result<Box<dyn Observing>, LabError> {
        let wanted = &variant.observe;
        if wanted.observers().is_empty() {
            return Ok(Box::new(Observers::default()));
        }
        let all = hosts.receivers.as_slice();
        let seeing = if hosts.share_a_clock { &all[..1] } else { all };
        let of_sender = hosts.of_sender(wanted);
        let senders = hosts.senders.iter().filter(|_| of_sender.is_some());
        // Ended by its drop from now on.
        let started = Self {
            receivers: seeing.iter().map(|receiver| Arc::clone(&receiver.client)).collect(),
            clock,
            senders: senders.map(|sender| Arc::clone(&sender.client)).collect(),
            window: None,
            is_over: false,
        };
        for receiver in seeing {
            let start = ObserveStart {
                observe: wanted.clone(),
                background: variant.background.clone(),
                calibration: calibration.cloned(),
                netns: receiver.hello.netns,
                sides: seen_by(hosts, receiver),
            };
            ask::<Value>(&receiver.client, ObserveAsk::Start(Box::new(start)), PROMPT)?;
        }
        for (sender, observe) in hosts.senders.iter().zip(of_sender.iter().cycle()) {
            let netns = sender.hello.netns;
            let start = ObserveStart {
                observe: observe.clone(),
                background: Background::default(),
                calibration: None,
                netns,
                sides: netns.map(|netns| (netns, PathSide::Tx)).into_iter().collect(),
            };
            ask::<Value>(&sender.client, ObserveAsk::Start(Box::new(start)), PROMPT)?;
        }
        Ok(Box::new(started))
    }

    fn clients(&self) -> impl Iterator<Item = &Arc<Client>> {
        self.receivers.iter().chain(&self.senders)
    }

    /// Instants of the host on the clock of the testbed.
    fn here(&self, mut seen: Observed) -> Observed {
        for stage in seen.traced.iter_mut().flat_map(|traced| &mut traced.stages) {
            for outlier in &mut stage.outliers {
                outlier.t_ns = self.clock.from_host_ns(outlier.t_ns);
            }
        }
        seen
    }
}

/// The sides of the namespaces whose packets a receiver's endpoint sees: its own, and of hosts with one kernel all.
fn seen_by(hosts: &Hosts, receiver: &ConnectedHost) -> Vec<(u32, PathSide)> {
    if !hosts.share_a_clock {
        return sides(receiver.hello.netns.as_slice(), &[]);
    }
    let [tx, rx] = [PathSide::Tx, PathSide::Rx].map(|side| -> Vec<u32> {
        hosts.of(side).iter().filter_map(|host| host.hello.netns).collect()
    });
    sides(&rx, &tx)
}

/// The side of each namespace.
fn sides(rx: &[u32], tx: &[u32]) -> Vec<(u32, PathSide)> {
    let of_receiver =
        |rx: &u32| (*rx, if tx.contains(rx) { PathSide::Machine } else { PathSide::Rx });
    rx.iter().map(of_receiver).chain(tx.iter().map(|netns| (*netns, PathSide::Tx))).collect()
}

impl Observing for RemoteObservers {
    fn announce(&mut self) -> Result<(), LabError> {
        // Stolen time and stages are those of one receiver.
        let first = self.receivers.first();
        let what = ObserveAsk::Window;
        self.window = first.map(|first| first.begin(HostAsk::Observe { what })).transpose()?;
        Ok(())
    }

    fn open(&mut self, _: Nanos, _: Option<&Owner>) -> Result<(), LabError> {
        Ok(())
    }

    fn close(&mut self, _: Sides<'_>, seen: &mut Observed) -> Result<(), LabError> {
        if let Some(window) = self.window.take() {
            let found = self.here(window.wait(AFTER_WINDOW)?);
            let Observed { reasons: _, stolen, traced, warnings, faults, by_receiver: _ } = found;
            (seen.stolen, seen.traced) = (stolen, traced);
            seen.warnings.extend(warnings);
            let alias = self.receivers.first().map_or("", |first| first.alias());
            seen.faults.extend(faults.iter().map(|fault| format!("{alias}: {fault}")));
        }
        Ok(())
    }

    fn end(&mut self, _: Sides<'_>, seen: &mut Observed) -> Result<(), LabError> {
        self.is_over = true;
        for (index, client) in self.clients().enumerate() {
            let found: Observed = ask(client, ObserveAsk::End, PROMPT)?;
            if index < self.receivers.len() {
                seen.by_receiver.push(found.reasons.clone());
            }
            seen.reasons.extend(found.reasons);
            seen.warnings.extend(found.warnings);
        }
        Ok(())
    }
}

impl Drop for RemoteObservers {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        for client in self.clients() {
            // A host that is lost ends them by itself.
            let _ = ask::<Value>(client, ObserveAsk::End, PROMPT);
        }
    }
}
