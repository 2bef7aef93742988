//! Background load on each host that a variant chooses for it: its endpoint starts it and ends it.

use std::sync::Arc;

use rxpath_core::{PathSide, Warning};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::endpoint::background::BackgroundAsk;
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;
use crate::hosts::Hosts;
use crate::hosts::placed::background_cpus;
use crate::scenario::spec::{Background, Variant};
use crate::testbed::seat::Seat;
use crate::trial::background::{Alongside, Background as Running};

/// What runs alongside a trial on other hosts, each of which ends it too when the connection ends.
pub struct RemoteBackground {
    /// Of the hosts on which it runs.
    clients: Vec<(Seat, Arc<Client>)>,
    /// The processes as they started, each with its host: nobody asks for them while the load runs.
    pids: Vec<(Seat, i32)>,
}

impl RemoteBackground {
    /// Starts it there. Without any load nothing is asked of the hosts.
    pub fn start(hosts: &Hosts, variant: &Variant) -> Result<Box<dyn Alongside>, LabError> {
        let spec = &variant.background;
        if spec.hogs == 0 {
            return Ok(Box::new(Running::default()));
        }
        // Ended by its drop from now on.
        let mut remote = Self { clients: Vec::new(), pids: Vec::new() };
        for (seat, host) in hosts.on(&spec.on) {
            remote.clients.push((seat, Arc::clone(&host.client)));
            let load = Background { cpus: background_cpus(host, variant), ..spec.clone() };
            let pids: Vec<i32> = ask(&host.client, BackgroundAsk::Start { load })?;
            remote.pids.extend(pids.into_iter().map(|pid| (seat, pid)));
        }
        Ok(Box::new(remote))
    }

    /// Warnings of a host, which of several is named.
    fn named(&self, client: &Client, said: Vec<Warning>) -> Vec<Warning> {
        if self.clients.len() < 2 {
            return said;
        }
        let named =
            |it: Warning| Warning { text: format!("{}: {}", client.alias(), it.text), ..it };
        said.into_iter().map(named).collect()
    }
}

fn ask<T: DeserializeOwned>(client: &Client, what: BackgroundAsk) -> Result<T, LabError> {
    client.ask(HostAsk::Background { what }, PROMPT)
}

impl Alongside for RemoteBackground {
    fn pids(&self) -> Vec<(Seat, i32)> {
        self.pids.clone()
    }

    fn warnings(
        &mut self,
        _: &Background,
        readers: &[i32],
        nice: i32,
    ) -> Result<Vec<Warning>, LabError> {
        let mut all = Vec::new();
        for (seat, client) in &self.clients {
            // Nice acts between it and a reader on the same host.
            let reader = readers.get(seat.index).filter(|_| seat.side == PathSide::Rx).copied();
            all.extend(self.named(client, ask(client, BackgroundAsk::Warnings { reader, nice })?));
        }
        Ok(all)
    }
}

impl Drop for RemoteBackground {
    fn drop(&mut self) {
        for (_, client) in &self.clients {
            // A host that is lost ends it by itself.
            let _ = ask::<Value>(client, BackgroundAsk::End);
        }
    }
}
