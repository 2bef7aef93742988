//! Full rings on one CPU without arrivals: the passes of `net_rx_action`, simulated packet by packet.
//!
//! **Source** `net_rx_action` and `__do_softirq` (net/core/dev.c, kernel/softirq.c): the list of NAPIs is spliced and
//! each is polled once; one that used its whole weight waits on `repoll` for the next pass, behind those that the
//! budget left unpolled; `time_squeeze` counts a budget used up; after 10 passes ksoftirqd goes on.
//! Assumes that no time limit is hit.

use std::collections::VecDeque;

use serde_json::Value;

use crate::inputs::{Code, Inputs, Outputs, Problem, whole};

/// `NAPI_POLL_WEIGHT` (include/linux/netdevice.h).
pub const WEIGHT: u64 = 64;
/// Default of `net.core.netdev_budget`.
pub const BUDGET: u64 = 300;
/// `MAX_SOFTIRQ_RESTART` (kernel/softirq.c).
pub const RESTARTS: usize = 10;
/// As many passes are listed.
const LISTED: usize = 12;
/// Polls beyond which the passes are not walked.
const MOST_POLLS: u64 = 50_000_000;

/// What the passes did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoftirqPasses {
    /// Packets of the first passes.
    pub first: Vec<u64>,
    /// Packets before ksoftirqd was woken; nothing when it was not.
    pub before_ksoftirqd: Option<u64>,
    /// Passes of `net_rx_action`.
    pub passes: u64,
    /// Polls of a NAPI.
    pub polls: u64,
    /// Passes that used up the budget.
    pub time_squeeze: u64,
}

/// Walks the passes over these rings.
pub fn walk(rings: &[u64]) -> SoftirqPasses {
    let mut got = SoftirqPasses::default();
    let mut list: VecDeque<u64> = rings.iter().copied().collect();
    let mut inline = 0;
    while !list.is_empty() {
        let (mut repoll, mut budget, mut packets) = (VecDeque::new(), BUDGET as i64, 0);
        while let Some(left) = list.pop_front() {
            let work = left.min(WEIGHT);
            got.polls += 1;
            packets += work;
            budget -= work as i64;
            if work == WEIGHT {
                repoll.push_back(left - work);
            }
            if budget <= 0 {
                got.time_squeeze += 1;
                break;
            }
        }
        list.append(&mut repoll);
        got.passes += 1;
        if got.first.len() < LISTED {
            got.first.push(packets);
        }
        if got.passes <= RESTARTS as u64 {
            inline += packets;
        }
    }
    got.before_ksoftirqd = (got.passes > RESTARTS as u64).then_some(inline);
    got
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let each = |value: &Value| whole("rings", value, 0..=1_000_000_000_000);
    let rings: Vec<u64> = inputs.list("rings")?.iter().map(each).collect::<Result<_, _>>()?;
    let (poll, packet) = (inputs.not_negative("c_poll_us")?, inputs.not_negative("c_pkt_us")?);
    let polls: u64 = rings.iter().map(|ring| ring / WEIGHT + 1).sum();
    if polls > MOST_POLLS {
        return Err(Problem::new(
            Code::TooLarge,
            format!("{polls} polls are too many to simulate"),
        ));
    }
    let got = walk(&rings);
    let packets: u64 = rings.iter().sum();
    Ok(Outputs::default()
        .value("passes", got.passes)
        .value("packets_first_passes", got.first)
        .value("polls", got.polls)
        .value("time_squeeze", got.time_squeeze)
        .with("total_us", got.polls as f64 * poll + packets as f64 * packet)
        .value("packets_before_ksoftirqd", got.before_ksoftirqd))
}
