//! What a virtual machine's idle CPUs do.

use crate::prelude::*;

use super::power::CPU;

const PARAMETER: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
/// `guest_halt_poll_ns` of drivers/cpuidle/governors/haltpoll.c.
const DEFAULT_NS: u64 = 200_000;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("guest-halt-poll", Check::Host(halt_poll))];

fn halt_poll(ask: &Ask<'_>) -> Checked {
    let governor = ask.facts.text(&format!("{CPU}/cpuidle/current_governor")).known()?;
    if governor != "haltpoll" {
        return Answer::silent(format!("the idle governor is {governor}, not haltpoll"));
    }
    let poll_ns = ask.facts.number(PARAMETER).known()?;
    if poll_ns > 0 {
        return Answer::fine(format!("it polls up to {poll_ns} ns before it halts"));
    }
    Answer::found(
        "guest_halt_poll_ns is 0",
        format!("{DEFAULT_NS}, the kernel's own"),
        "each idle moment returns the CPU to the hypervisor, and the next packet waits to get it back",
    )
    .change(Set::new(Knob::path(PARAMETER), DEFAULT_NS))
}
