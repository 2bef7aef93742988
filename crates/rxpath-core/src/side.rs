//! The end of a lab at which a number was read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::named! {
    /// The end of the path that a counter, a sample or a setting belongs to.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum PathSide {
        /// The sender's namespace or host.
        Tx => "tx",
        /// The receiver's namespace or host.
        Rx => "rx",
        /// The whole machine: values that are not per namespace, such as `softnet_stat` and CPU time.
        #[default]
        Machine => "machine",
    }
    /// The word used in counter names: `tx/Udp.OutDatagrams`.
    pub fn as_str(self) -> &'static str
}

impl std::fmt::Display for PathSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
