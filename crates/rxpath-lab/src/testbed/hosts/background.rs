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
        let mut remote = Self { clients: Vec::new() };
        for host in receivers {
            remote.clients.push(Arc::clone(&host.client));
            ask::<Value>(&host.client, BackgroundAsk::Start { load: load.clone() })?;
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
    fn pids(&self) -> Result<Vec<(usize, i32)>, LabError> {
        let mut all = Vec::new();
        for (receiver, client) in self.clients.iter().enumerate() {
            let pids: Vec<i32> = ask(client, BackgroundAsk::Pids)?;
            all.extend(pids.into_iter().map(|pid| (receiver, pid)));
        }
        Ok(all)
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
