//! How much one run of the receive softirq may do.

use rxpath_core::number::grouped;

use crate::facts::SoftnetCount;
use crate::prelude::*;

/// The kernel's default budget (net/core/hotdata.c, `netdev_budget`).
const BUDGET: i64 = 300;
/// Above this multiple of the default the softirq monopolises the CPU.
const MUCH: i64 = 8;
/// Squeezes per packet: below this a squeeze comes from a single burst.
const SQUEEZE_RATIO: f64 = 1e-4;

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("napi-budget", Check::Host(budget)), ("napi-budget-usecs", Check::Host(usecs))];

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
    let queues =
        ask.facts.nics().map(|device| device.sysfs.steering.rx_queues.len()).max().unwrap_or(0);
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
    let squeezes = Count::sum(lines.iter().map(|(_, line)| line.time_squeeze));
    let Some(recent) = squeezes.recent else {
        return Err(Gap::Absent(
            "softnet_stat was read once: its 32-bit columns may have wrapped since boot".into(),
        ));
    };
    let told = ask.facts.watched.tell(squeezes, "times out of budget", "boot");
    let ratio = |line: &SoftnetCount| line.time_squeeze.ratio_of(line.processed).unwrap_or(0.0);
    let moving = lines.iter().filter(|(_, line)| line.time_squeeze.evidence() == Evidence::Now);
    let worst = moving.max_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)));
    let Some((cpu, line)) = worst.filter(|_| recent > 0) else { return Answer::fine(told) };
    if ratio(line) < SQUEEZE_RATIO || now >= 2 * BUDGET {
        return Answer::fine(told);
    }
    let [times, packets] =
        [line.time_squeeze, line.processed].map(|count| grouped(count.recent.unwrap_or(0)));
    Answer::found(
        format!("CPU {cpu} ran out of budget {times} times in the last {packets} packets; {told}"),
        "less than once in 10,000 packets".to_owned(),
        "packets wait in the ring for the next round",
    )
    .change(Set::new(Knob::sysctl("net.core.netdev_budget"), (2 * BUDGET) as u64))
    .rests_on(line.time_squeeze, &ask.facts.watched)
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
