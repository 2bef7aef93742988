//! What a virtual machine's idle CPUs do.

use crate::prelude::*;

use super::power::CPU;

const PARAMETER: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
/// `guest_halt_poll_ns` of drivers/cpuidle/governors/haltpoll.c.
const DEFAULT_NS: u64 = 200_000;

/// Rules of this file.
pub const RULES: &[Rule] = &[Rule {
    id: "guest-halt-poll",
    what: "Does an idle virtual CPU poll briefly for the next packet before it halts?",
    applies: "KVM guests with the haltpoll idle driver",
    weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Warn),
    size: Multiple,
    effect: "steal was 25 to 38 % on a CPU that datagrams woke 2,000 times a second, and under 3 % while idle CPUs \
             polled",
    figure_from: "rxpath's trials in a KVM guest of two CPUs (docs/reference/scenarios.md)",
    check: Check::Host(halt_poll),
    why: "A halted virtual CPU is given up to the hypervisor's host. The next packet waits until the host \
          schedules the virtual CPU again. The guest counts this wait as stolen time, even if nothing else used \
          the CPU.",
    mechanism: "The governor (drivers/cpuidle/governors/haltpoll.c haltpoll_select) polls up to \
                guest_halt_poll_ns before it halts, and longer after a quick wake-up. With 0 it never polls.",
    not_when: "the hypervisor's host is overcommitted: a guest that polls takes CPU from its neighbours, and a \
               provider may have set 0 on purpose",
    side_effects: "idle CPUs use CPU time and power for up to that long after each wake-up",
    set_now: "echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns",
    persist: "kernel parameter haltpoll.guest_halt_poll_ns=200000",
    verify: "cat /sys/module/haltpoll/parameters/guest_halt_poll_ns; steal of an idle CPU that is woken often \
             goes down (mpstat -P ALL)",
    since: "5.4",
    sources: &["kernel: Documentation/virt/guest-halt-polling.rst"],
    ..Rule::judge(Area::Cpu)
}];

fn halt_poll(ask: &Ask<'_>) -> Checked {
    let governor = format!("{CPU}/cpuidle/current_governor");
    let governor = ask.facts.text(&governor).known()?;
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
    .changes(vec![Set::new(Knob::path(PARAMETER), DEFAULT_NS)])
}
