//! Background load on each receiver's host: its endpoint starts it and ends it.

use std::sync::Arc;

use rxpath_core::Warning;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::endpoint::background::BackgroundAsk;
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::wire::Ask;
use crate::error::LabError;
use crate::hosts::ConnectedHost;
use crate::scenario::spec;
use crate::trial::background::{Alongside, Background};

/// What runs alongside a trial on other hosts, each of which ends it too when the connection ends.
pub struct RemoteBackground {
    /// Of the receivers.
    clients: Vec<Arc<Client>>,
    /// The processes as they started, each with its receiver: nobody asks for them while the load runs.
    pids: Vec<(usize, i32)>,
}

impl RemoteBackground {
    /// Starts it there. Without any load nothing is asked of the hosts.
    pub fn start(
        receivers: &[ConnectedHost],
        load: &spec::Background,
    ) -> Result<Box<dyn Alongside>, LabError> {
        if load.hogs == 0 {
            return Ok(Box::new(Background::default()));
        }
        // Ended by its drop from now on.
        let mut remote = Self { clients: Vec::new(), pids: Vec::new() };
        for (receiver, host) in receivers.iter().enumerate() {
            remote.clients.push(Arc::clone(&host.client));
            let pids: Vec<i32> = ask(&host.client, BackgroundAsk::Start { load: load.clone() })?;
            remote.pids.extend(pids.into_iter().map(|pid| (receiver, pid)));
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
    client.ask(Ask::Background { what }, PROMPT)
}

impl Alongside for RemoteBackground {
    fn pids(&self) -> Vec<(usize, i32)> {
        self.pids.clone()
    }

    fn warnings(
        &mut self,
        _: &spec::Background,
        readers: &[i32],
        nice: i32,
    ) -> Result<Vec<Warning>, LabError> {
        let mut all = Vec::new();
        for (client, reader) in self.clients.iter().zip(readers) {
            let said = ask(client, BackgroundAsk::Warnings { reader: *reader, nice })?;
            all.extend(self.named(client, said));
        }
        Ok(all)
    }
}

impl Drop for RemoteBackground {
    fn drop(&mut self) {
        for client in &self.clients {
            // A host that is lost ends it by itself.
            let _ = ask::<Value>(client, BackgroundAsk::End);
        }
    }
}
