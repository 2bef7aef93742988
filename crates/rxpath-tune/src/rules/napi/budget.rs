//! How much one run of the receive softirq may do.

use crate::facts::SoftnetCount;
use crate::prelude::*;

const ADMIN: &str =
    "kernel: Documentation/admin-guide/sysctl/net.rst, netdev_budget and netdev_budget_usecs";
const ACTION: &str = "kernel: net/core/dev.c net_rx_action";

/// The kernel's default budget (net/core/hotdata.c, `netdev_budget`).
const BUDGET: i64 = 300;
/// Above this multiple of the default the softirq monopolises the CPU.
const MUCH: i64 = 8;
/// Squeezes per packet: below this a squeeze comes from a single burst.
const SQUEEZE_RATIO: f64 = 1e-4;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "napi-budget",
        what: "Is the softirq budget large enough, without keeping the CPU for too long?",
        applies: "hosts with two or more CPUs and a NIC with two or more receive queues; the upper bound: every host",
        weight: Weight::by_goal()
            .when(Throughput, Warn)
            .when(Fairness, Warn)
            .when(Latency, Warn)
            .when(Benchmark, Info),
        size: Percents,
        effect: "each squeeze defers the remaining packets to the next round or to ksoftirqd; each larger budget \
                 makes other softirqs and tasks wait longer",
        check: Check::Host(budget),
        why: "A softirq that runs out of budget leaves packets in the ring for later. A softirq with a huge \
              budget starves all other work on the CPU.",
        mechanism: "net_rx_action (net/core/dev.c) polls until netdev_budget packets or netdev_budget_usecs are \
                    used up. It then counts a time_squeeze and raises the softirq again.",
        not_when: "a saturated CPU that serves only one queue is squeezed at any budget; threaded NAPI does not \
                   use this budget",
        side_effects: "other softirqs and tasks of that CPU wait longer: an automatic tuner raised it until \
                       softirqs ran for 300 ms without a break",
        set_now: "sysctl -w net.core.netdev_budget=600",
        persist: "/etc/sysctl.d/",
        verify: "column 3 of /proc/net/softnet_stat does not rise under the same load",
        since: "2.6.13",
        sources: &[ADMIN, ACTION, "oracle/bpftune issue 178"],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "napi-budget-usecs",
        what: "Is the time limit of a receive softirq near the kernel's default of two ticks?",
        applies: "hosts whose tick is known (config or clock)",
        weight: Weight::by_goal().when(Latency, Warn).when(Fairness, Warn).when(Benchmark, Info),
        size: Percents,
        effect: "a task on that CPU waits at most this long for one softirq",
        check: Check::Host(usecs),
        why: "Guides give 2000 as the default of all kernels. Since 5.7 the default is two ticks: 2000 us at \
              HZ=1000, 8000 us at HZ=250, 20000 us at HZ=100. From 4.12 to 5.6 it was 2000 us at every HZ.",
        mechanism: "netdev_budget_usecs is 2 * USEC_PER_SEC / HZ (net/core/hotdata.c); net_rx_action rounds it \
                    up to whole ticks.",
        not_when: "a router whose CPUs do nothing else",
        side_effects: "more time_squeeze with less time, longer waits with more",
        set_now: "sysctl -w net.core.netdev_budget_usecs=8000 (two ticks at HZ=250)",
        persist: "/etc/sysctl.d/",
        verify: "column 3 of /proc/net/softnet_stat; latency of a pinned task on that CPU",
        since: "4.12; two ticks 5.7",
        sources: &[
            ADMIN,
            ACTION,
            "kernel commit 7acf8a1e8a28 (netdev_budget_usecs)",
            "kernel commit a4837980fd9f (its default in ticks)",
        ],
        ..Rule::judge(Area::Napi)
    },
];

fn budget(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.netdev_budget").known()?;
    if now > BUDGET * MUCH {
        let why = "a softirq with this budget makes tasks and other softirqs wait";
        return Answer::found(now.to_string(), format!("{BUDGET} to {}", BUDGET * MUCH), why)
            .change(Set::new(Knob::sysctl("net.core.netdev_budget"), BUDGET as u64));
    }
    if !matches!(ask.goal, Some(Throughput)) {
        return Answer::fine(format!("{now} packets a round"));
    }
    let queues = ask.facts.nics().map(|device| device.sysfs.rx_queues.len()).max().unwrap_or(0);
    let online = (&ask.facts.topology).known()?.online.as_slice().len();
    if queues < 2 || online < 2 {
        return Answer::silent(
            "one queue or one CPU: a squeeze there means that the CPU is saturated",
        );
    }
    squeezed(ask, now)
}

/// Uses the squeezes between two readings. Both columns are 32 bits wide: once the packet count has wrapped, their
/// ratio since boot means nothing.
fn squeezed(ask: &Ask<'_>, now: i64) -> Checked {
    let lines = ask.facts.softnet_counts().known()?;
    if lines.iter().all(|(_, line)| line.processed.total == 0) {
        return Answer::silent("no packet came yet");
    }
    let watched = &ask.facts.watched;
    let squeezes = Count::sum(lines.iter().map(|(_, line)| line.time_squeeze));
    let Some(recent) = squeezes.recent else {
        return Err(Gap::Absent(
            "softnet_stat was read once: its 32-bit columns may have wrapped since boot".into(),
        ));
    };
    let told = watched.tell(squeezes, "times out of budget", "boot");
    let ratio = |line: &SoftnetCount| line.time_squeeze.ratio_of(line.processed).unwrap_or(0.0);
    let moving = lines.iter().filter(|(_, line)| line.time_squeeze.evidence() == Evidence::Now);
    let worst = moving.max_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)));
    let Some((cpu, line)) = worst.filter(|_| recent > 0) else { return Answer::fine(told) };
    if ratio(line) < SQUEEZE_RATIO || now >= 2 * BUDGET {
        return Answer::fine(told);
    }
    let (times, packets) =
        (line.time_squeeze.recent.unwrap_or(0), line.processed.recent.unwrap_or(0));
    Answer::found(
        format!("CPU {cpu} ran out of budget {times} times in the last {packets} packets; {told}"),
        "less than once in 10,000 packets".to_owned(),
        "packets wait in the ring for the next round",
    )
    .change(Set::new(Knob::sysctl("net.core.netdev_budget"), (2 * BUDGET) as u64))
    .rests_on(line.time_squeeze, watched)
}

fn usecs(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.netdev_budget_usecs").known()?;
    let hz = i64::from(*(&ask.facts.kernel.hz).known()?).max(1);
    let default = 2_000_000 / hz;
    if now <= default * 2 {
        return Answer::fine(format!("{now} us, two ticks are {default} us"));
    }
    Answer::found(
        format!("{now} us"),
        format!("{default} us: two ticks at HZ={hz}"),
        "one softirq may hold its CPU that long",
    )
    .change(Set::new(Knob::sysctl("net.core.netdev_budget_usecs"), default as u64))
}
