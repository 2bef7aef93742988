//! Hooks that do nothing: they show the cost of the call, whatever a program does.
//!
//! The kernel's run-time statistics cover only the program. Every probe also pays for the call, and these hooks measure
//! its cost (`bench/observe.sh`).

use rxpath_host::{HostError, Root};

use crate::object::{Loaded, ObjectSpec, compiled, program};

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    programs: &[
        program("irq/softirq_entry", "the price of a hook", true),
        program("irq/softirq_exit", "the price of a hook", true),
        program("napi/napi_poll", "the price of a hook", true),
    ],
    ..compiled!("empty")
};

/// Three hooks of each softirq that polls once: where it begins and ends, and its poll. They stay until it is dropped.
///
/// **Errors** as every probe.
pub fn hooks() -> Result<Loaded, HostError> {
    crate::can_run(&Root::host()).require("attach programs that do nothing")?;
    let mut loaded = Loaded::load(&SPEC, &[], &[])?;
    loaded.attach()?;
    Ok(loaded)
}
