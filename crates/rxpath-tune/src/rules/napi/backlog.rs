//! The per-CPU backlog for packets without their own NAPI, and its settings.

use crate::prelude::*;

/// A backlog for a burst of some ms; the kernel's default is 1000. A longer backlog only hides a CPU that cannot keep
/// up.
const WANTED: i64 = 4000;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("backlog-max", Check::Host(backlog)),
    ("dev-weight", Check::Host(weight)),
    ("skb-defer", Check::Host(|ask| recorded(ask, "net.core.skb_defer_max", ""))),
    ("tstamp-prequeue", Check::Host(prequeue)),
];

fn backlog(ask: &Ask<'_>) -> Checked {
    let (dropped, processed) = ask.facts.backlog_drops().known()?;
    // If packets were dropped, the backlog is in use, if only by loopback.
    if dropped.total == 0 && !ask.facts.uses_backlog()? {
        return Answer::silent(
            "nothing was dropped, and only loopback passes the backlog: no RPS, no other device without NAPI",
        );
    }
    let now = ask.facts.sysctl_number("net.core.netdev_max_backlog").known()?;
    if dropped.total == 0 {
        return Answer::fine(format!("{now} packets, none was dropped"));
    }
    let told = ask.facts.watched.tell(dropped, "packets dropped", "boot");
    if dropped.ratio_of(processed).is_some_and(|ratio| ratio < RARE_RATIO) {
        return Answer::fine(format!("{now} packets; {told}: less than one in a million"));
    }
    let observed = format!("{told}; the backlog is {now} now");
    if now >= WANTED {
        return Answer::found(
            observed,
            "no drops",
            "the receiving CPU cannot keep up",
        )
        .advice(
            "a longer queue will not help: spread the load over more CPUs, or reduce the work per packet",
        )
        .rests_on(dropped, &ask.facts.watched);
    }
    Answer::found(
        observed,
        format!("{WANTED}, and no drops"),
        "packets that find the backlog full are lost",
    )
    .change(Set::new(Knob::sysctl("net.core.netdev_max_backlog"), WANTED as u64))
    .rests_on(dropped, &ask.facts.watched)
}

fn weight(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.dev_weight").known()?;
    if now == 64 {
        return Answer::fine("64");
    }
    if ask.facts.uses_backlog()? {
        return Answer::silent(
            "the backlog is in use: its batch may have been chosen by measurement",
        );
    }
    Answer::observed(now.to_string()).change(Set::new(Knob::sysctl("net.core.dev_weight"), 64))
}

fn prequeue(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.netdev_tstamp_prequeue").known()?;
    Answer::recorded(if now == 0 { "after RPS (0)" } else { "before RPS (1)" })
}
