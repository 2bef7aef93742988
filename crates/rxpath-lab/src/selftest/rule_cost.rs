//! What a datagram and a firewall rule cost on this host: how many rules make a datagram cost a drawn time.
//!
//! Datagrams go over the loopback device of a network namespace that has no name and ends with its thread: the whole way,
//! from the system call to the socket's queue, runs inside `send` (kernel/softirq.c `__local_bh_enable_ip` runs the softirq
//! that loopback raised). By their port they are dropped on the way out, or come in past no rules, few or many, in turns.
//! What the way in costs is the difference to those that do not take it.
//!
//! Time is that of short batches by the clock, of which the median counts. It is not the CPU time of the thread: a kernel
//! with `CONFIG_IRQ_TIME_ACCOUNTING` keeps what softirqs take out of that; and a batch is over before another task gets the
//! CPU mostly.
//!
//! **Caveat** It is measured on whichever CPU the thread runs: on a host with unlike cores a trial's CPU can differ.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use rxpath_host::HostError;
use rxpath_host::lab::{netns, nft};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{LabError, cannot};
use crate::run::admission;

/// Rules of the lower count.
const FEW: u32 = 300;
/// Rules of the higher count, about as many as most cases have: they leave the CPU's first cache.
const MANY: u32 = 1800;
/// The port of datagrams that are dropped on output.
const DROPPED: u16 = 10_000;
/// Ports of those that meet no rules, [`FEW`] and [`MANY`].
const ARRIVING: [u16; 3] = [10_001, 10_002, 10_003];
/// Datagrams of a batch: some 0.5 ms with many rules, and far fewer than a socket holds.
const BATCH: u32 = 16;
/// Batches of each kind at least.
const ROUNDS: usize = 25;
/// How long is measured, where so many rounds take less.
const TIME: Duration = Duration::from_millis(300);
/// What a rule can cost: outside of it something else was measured.
const PLAUSIBLE_NS: std::ops::RangeInclusive<f64> = 2.0..=500.0;
/// The most rules that are loaded; nft takes about a second for them.
const MOST: u32 = 20_000;
/// As small as the datagrams of the cases.
const PAYLOAD: [u8; 32] = [0; 32];

/// What a datagram costs the receive softirq of this host, and a firewall rule that never matches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RuleCost {
    /// A datagram without rules, from the device to the socket's queue, in ns.
    pub datagram_ns: f64,
    /// Each of the first 300 rules that it meets, in ns.
    pub first_rule_ns: f64,
    /// Each rule after those, in ns: they leave the first cache.
    pub later_rule_ns: f64,
}

impl RuleCost {
    /// Measures it, under the machine's lab lock: waits at most `patience` for another lab to end, and `waiting` says so.
    ///
    /// **Cost** half a second of one CPU.
    ///
    /// # Errors
    /// `CannotRun` without the right to make a namespace, while another lab runs, or when what was measured is no cost of a
    /// rule; `Host` without nft.
    pub fn measure(patience: Duration, waiting: &mut dyn FnMut(&str)) -> Result<Self, LabError> {
        admission::can_run(None)?;
        let _lock = admission::lock(&AtomicBool::new(false), patience, waiting)?;
        // A thread of its own: the namespace ends with it.
        let measured = thread::scope(|scope| scope.spawn(apart).join());
        let medians = measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Self::of(medians)
    }

    /// From the times of a datagram that does not come in, and of those that meet no rules, few and many.
    fn of([dropped, none, few, many]: [f64; 4]) -> Result<Self, LabError> {
        let cost = Self {
            datagram_ns: none - dropped,
            first_rule_ns: (few - none) / f64::from(FEW),
            later_rule_ns: (many - few) / f64::from(MANY - FEW),
        };
        let rules = [cost.first_rule_ns, cost.later_rule_ns];
        if cost.datagram_ns > 0.0 && rules.iter().all(|ns| PLAUSIBLE_NS.contains(ns)) {
            return Ok(cost);
        }
        let (least, most) = (PLAUSIBLE_NS.start(), PLAUSIBLE_NS.end());
        let what = format!(
            "{cost}: a rule costs {least} to {most} ns, so this was measured wrongly, and limits that need \
             datagrams of a known cost cannot be made"
        );
        Err(cannot(what, "run it again on a quieter machine, or name other cases with --case"))
    }

    /// How many rules make a datagram cost so much in all: one at least, and 20,000 at most.
    pub(super) fn rules_for(&self, datagram_ns: f64) -> u32 {
        let missing_ns = datagram_ns - self.datagram_ns;
        let first = missing_ns / self.first_rule_ns;
        let later = (missing_ns - f64::from(FEW) * self.first_rule_ns) / self.later_rule_ns;
        let count = if later > 0.0 { f64::from(FEW) + later } else { first };
        // A negative count becomes 0.
        (count.round() as u32).clamp(1, MOST)
    }
}

impl std::fmt::Display for RuleCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a datagram costs the receive softirq {:.0} ns, each of the first {FEW} firewall rules {:.1} ns more, each \
             further one {:.1} ns",
            self.datagram_ns, self.first_rule_ns, self.later_rule_ns
        )
    }
}

/// `count` rules that never match, in nft's language.
pub(super) fn rules(count: u32) -> String {
    "udp dport 1 drop; ".repeat(count as usize)
}

/// Moves into a namespace and measures; medians in ns a datagram, in the order of [`RuleCost::of`].
fn apart() -> Result<[f64; 4], LabError> {
    netns::move_apart()?;
    nft::apply(&ruleset())?;
    let [none, few, many] = ARRIVING;
    let ways =
        [Way::to(DROPPED, false)?, Way::to(none, true)?, Way::to(few, true)?, Way::to(many, true)?];
    let mut batches = [const { Vec::new() }; 4];
    let begun = Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS || begun.elapsed() < TIME {
        for (way, batches) in ways.iter().zip(&mut batches) {
            batches.extend(way.batch()?);
        }
        rounds += 1;
    }
    match batches.map(|batches| rxpath_stats::quantile::median(&batches)) {
        [Some(dropped), Some(none), Some(few), Some(many)] => Ok([dropped, none, few, many]),
        _ => Err(cannot(
            "datagrams over loopback do not arrive while they are sent: what a firewall rule costs cannot be measured",
            "name other cases with --case",
        )),
    }
}

fn ruleset() -> String {
    let [_, few, many] = ARRIVING;
    let (few_rules, many_rules) = (rules(FEW), rules(MANY));
    format!(
        "table inet t {{
 chain few {{ {few_rules} }}
 chain many {{ {many_rules} }}
 chain in {{
  type filter hook input priority 0; policy accept;
  udp dport {few} jump few;
  udp dport {many} jump many;
 }}
 chain out {{
  type filter hook output priority 0; policy accept;
  udp dport {DROPPED} drop;
 }}
}}
"
    )
}

/// A pair of sockets.
struct Way {
    sender: UdpSocket,
    sink: UdpSocket,
    /// Whether what is sent comes in.
    arrives: bool,
}

impl Way {
    fn to(port: u16, arrives: bool) -> Result<Self, HostError> {
        let open = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
        let make = || {
            let way = Self { sender: open(0)?, sink: open(port)?, arrives };
            way.sender.connect(way.sink.local_addr()?)?;
            way.sink.set_nonblocking(true)?;
            Ok(way)
        };
        make().map_err(|error| failed("open", &error))
    }

    /// Sends one. A send call reports what its own firewall drops.
    fn send(&self) -> Result<(), HostError> {
        match self.sender.send(&PAYLOAD) {
            Err(error) if !self.arrives && error.kind() == ErrorKind::PermissionDenied => Ok(()),
            sent => sent.map(drop).map_err(|error| failed("send on", &error)),
        }
    }

    /// Time of each datagram of a batch, in ns; `None` where not all arrived while they were sent.
    fn batch(&self) -> Result<Option<f64>, HostError> {
        // The first one brings the rules back into the caches.
        self.send()?;
        let begun = Instant::now();
        for _ in 0..BATCH {
            self.send()?;
        }
        let each_ns = begun.elapsed().as_nanos() as f64 / f64::from(BATCH);
        let mut arrived = 0;
        while self.sink.recv(&mut [0; PAYLOAD.len()]).is_ok() {
            arrived += 1;
        }
        let all = if self.arrives { BATCH + 1 } else { 0 };
        Ok((arrived == all).then_some(each_ns))
    }
}

fn failed(what: &str, error: &std::io::Error) -> HostError {
    let op = format!("{what} a socket that measures firewall rules");
    HostError::kernel(op, error.raw_os_error().unwrap_or(Errno::EIO as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is measured on a host where sending costs 1 us.
    fn cost(datagram: f64, first: f64, later: f64) -> RuleCost {
        let none = 1_000.0 + datagram;
        let few = none + first * f64::from(FEW);
        RuleCost::of([1_000.0, none, few, few + later * f64::from(MANY - FEW)]).unwrap()
    }

    #[test]
    fn the_number_of_rules_makes_the_time_on_any_host() {
        for (datagram, first, later) in
            [(400.0, 4.0, 5.0), (1_000.0, 15.0, 20.0), (3_000.0, 60.0, 55.0)]
        {
            let cost = cost(datagram, first, later);
            for total in [6_000.0, 12_000.0, 40_000.0] {
                let count = f64::from(cost.rules_for(total));
                let few = count.min(f64::from(FEW));
                let made = datagram + few * first + (count - few) * later;
                assert!((made - total).abs() <= first.max(later), "{made} for {total}: {cost:?}");
            }
        }
    }

    #[test]
    fn there_is_a_rule_at_least_and_no_more_than_nft_takes() {
        let cost = cost(2_000.0, 15.0, 20.0);
        assert_eq!(cost.rules_for(1_000.0), 1);
        assert_eq!(cost.rules_for(1e9), MOST);
    }

    #[test]
    fn what_is_no_cost_of_a_rule_is_refused_with_the_numbers() {
        let told = |medians| RuleCost::of(medians).unwrap_err().to_string();
        // No difference; less with more rules; a machine that was stopped meanwhile; a way in that costs nothing.
        let told_of = [
            ([1_000.0, 2_000.0, 2_000.0, 32_000.0], "rules 0.0 ns more, each further one 20.0 ns:"),
            ([1_000.0, 2_000.0, 9_500.0, 6_500.0], "rules 25.0 ns more, each further one -2.0 ns:"),
            (
                [1_000.0, 2_000.0, 8_000.0, 908_000.0],
                "each further one 600.0 ns: a rule costs 2 to 500 ns",
            ),
            ([2_000.0, 2_000.0, 8_000.0, 38_000.0], "softirq 0 ns,"),
            ([1_000.0, f64::NAN, 8_000.0, 38_000.0], "NaN"),
        ];
        for (medians, words) in told_of {
            let told = told(medians);
            assert!(told.contains(words) && !told.contains('\n'), "{told}");
        }
    }
}
