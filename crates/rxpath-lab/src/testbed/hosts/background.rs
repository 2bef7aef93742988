//! Background load on the receiver's host: its endpoint starts it and ends it.

use std::sync::Arc;

use rxpath_core::Warning;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::endpoint::background::BackgroundAsk;
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::wire::Ask;
use crate::error::LabError;
use crate::scenario::spec;
use crate::trial::background::{Alongside, Background};

/// What runs alongside a trial on another host, which ends it too when the connection ends.
pub struct RemoteBackground {
    client: Arc<Client>,
}

impl RemoteBackground {
    /// Starts it there. Without any load nothing is asked of the host.
    pub fn start(
        client: &Arc<Client>,
        load: &spec::Background,
    ) -> Result<Box<dyn Alongside>, LabError> {
        if load.hogs == 0 {
            return Ok(Box::new(Background::default()));
        }
        let remote = Self { client: Arc::clone(client) };
        remote.ask::<Value>(BackgroundAsk::Start { load: load.clone() })?;
        Ok(Box::new(remote))
    }

    fn ask<T: DeserializeOwned>(&self, what: BackgroundAsk) -> Result<T, LabError> {
        self.client.ask(Ask::Background { what }, PROMPT)
    }
}

impl Alongside for RemoteBackground {
    fn pids(&self) -> Result<Vec<i32>, LabError> {
        self.ask(BackgroundAsk::Pids)
    }

    fn warnings(
        &mut self,
        _: &spec::Background,
        reader: i32,
        nice: i32,
    ) -> Result<Vec<Warning>, LabError> {
        self.ask(BackgroundAsk::Warnings { reader, nice })
    }
}

impl Drop for RemoteBackground {
    fn drop(&mut self) {
        // A host that is lost ends it by itself.
        let _ = self.ask::<Value>(BackgroundAsk::End);
    }
}
