//! What the figure of an experiment shows in a book of several.

use serde::{Deserialize, Serialize};

/// The axes of the figure, as others have published them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axes {
    /// The metrics over the setting that a curve of variants differs in, else the main metric of each variant.
    #[default]
    Metrics,
    /// Receive memory of the sockets over time.
    Queues,
    /// Packets in the device's ring over time.
    Ring,
}
