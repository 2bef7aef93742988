//! Which end of a lab a number was read at.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The end of the path that a counter, a sample or a setting belongs to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The sender's namespace or host.
    Tx,
    /// The receiver's namespace or host.
    Rx,
    /// The whole machine: what no namespace separates, such as `softnet_stat` and CPU time.
    Machine,
}

impl Side {
    /// The word used in counter names: `tx/Udp.OutDatagrams`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tx => "tx",
            Self::Rx => "rx",
            Self::Machine => "machine",
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
