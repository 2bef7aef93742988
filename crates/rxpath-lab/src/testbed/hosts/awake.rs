//! `lab.awake` between hosts.

use std::sync::Arc;

use serde_json::Value;

use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::wire::HostAsk;

/// Holds the CPUs of all hosts awake.
pub(super) struct KeptAwake {
    pub(super) clients: Vec<Arc<Client>>,
}

impl Drop for KeptAwake {
    fn drop(&mut self) {
        for client in &self.clients {
            // A host that is lost lets its CPUs sleep by itself.
            let _ = client.ask::<Value>(HostAsk::Awake { on: false }, PROMPT);
        }
    }
}
