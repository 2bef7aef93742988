//! rxpath-agent has no experiments to explain.

use crate::output::explain::topic::Topic;

#[allow(clippy::unnecessary_wraps, reason = "the full program reads scenario files for it")]
pub(super) fn topics() -> anyhow::Result<Vec<Topic>> {
    Ok(Vec::new())
}
