//! Interrupts of devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Log2;

/// One interrupt line on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IrqLine {
    /// Number, as in `/proc/interrupts`.
    pub irq: u32,
    /// CPU on which it was handled.
    pub cpu: u32,
    /// Name of its handler.
    pub name: String,
    /// Interrupts.
    pub interrupts_count: u64,
    /// From one to the next, in ns.
    pub interval_ns: Log2,
}
