//! One CPU has all of the receive work and is full, while another has time: the load is not spread.

use super::blocked::is_blocked;
use super::nothing::reached;
use crate::rules::prelude::*;
use rxpath_record::evidence::{CpuDistribution, CpuPackets};

/// A load that is not spread.
pub struct Packed {
    stage: Stage,
    /// The full CPU.
    cpu: u32,
    /// Its share of all packets.
    part: f64,
    /// The CPU with most time left, and how much that is.
    spare: (u32, f64),
    flows: Flows,
}

/// How many flows the full CPU has.
#[derive(Clone, Copy)]
enum Flows {
    Unknown,
    /// By the sender.
    Counted(u64),
    /// One, which has this share of the sampled packets.
    One(f64),
}

impl Flows {
    fn of(spread: &CpuDistribution, here: &CpuPackets) -> Self {
        let one = here.one_flow_ratio.map(sound_ratio).filter(|ratio| *ratio >= ONE_FLOW_RATIO);
        match (spread.flows, one) {
            (Some(flows), _) => Self::Counted(flows),
            (None, Some(ratio)) => Self::One(ratio),
            (None, None) => Self::Unknown,
        }
    }

    /// What a CPU took: of how many flows, and the source if it is not the sender.
    fn words(self) -> (String, &'static str) {
        match self {
            Self::Unknown => (", of an unknown number of flows".into(), ""),
            Self::Counted(1) => (", of one flow".into(), ""),
            Self::Counted(flows) => (format!(", of {} flows", count(flows)), ""),
            Self::One(ratio) => (
                format!(", of which one flow had {} (sampled by their hash)", percent(ratio)),
                ", skb->hash at net:netif_receive_skb",
            ),
        }
    }
}

/// The load, if one full CPU has all of it, and distributing it is possible or was tried without effect.
pub fn packed(view: &View) -> Option<Packed> {
    let spread = view.raw.spread.as_ref()?;
    let cpu = view.saturated_softirq()?;
    let all = spread.packets.iter().fold(0u64, |sum, c| sum.saturating_add(c.packets));
    let here = spread.packets.iter().find(|c| c.cpu == cpu)?;
    let part = here.packets as f64 / all as f64;
    let idle = |c: u32| view.busy_ratio(c).map(|busy| (c, 1.0 - busy));
    let others = view.cpus.iter().filter(|c| c.cpu != cpu).filter_map(|c| idle(c.cpu));
    let spare = others.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    if !(part >= ONE_CPU_RATIO && spare.1 >= SPARE_CPU_RATIO) {
        return None;
    }
    let mask = spread.rps_cpus.as_deref().map(<[u32]>::len);
    let flows = Flows::of(spread, here);
    let stage = match (flows, mask) {
        // One flow goes to one CPU, wherever that is: nothing spreads it, and only a wider mask tried to.
        (Flows::Counted(0 | 1) | Flows::One(_), Some(2..)) => Stage::RpsPointless,
        (Flows::Counted(0 | 1) | Flows::One(_), _) => return None,
        (_, Some(0)) if spread.queues.is_none_or(|queues| queues <= 1) => Stage::RpsMissing,
        _ => Stage::OneCpu,
    };
    Some(Packed { stage, cpu, part, spare, flows })
}

/// Why the load is not spread, as a sentence's end.
fn why(view: &View, packed: &Packed) -> String {
    let spread = view.raw.spread.clone().unwrap_or_default();
    match (packed.stage, spread.rps_cpus.as_deref()) {
        (Stage::RpsPointless, Some(mask)) => {
            format!("RPS may use {} and has one flow to spread", cpus(mask))
        }
        (Stage::RpsMissing, _) => "there is one queue, and RPS is off".into(),
        (_, Some([one])) => format!("the RPS mask names CPU {one} alone"),
        (_, Some([])) => format!(
            "the device's hash sends all flows to one of its {} queues, and RPS is off",
            count(spread.queues.unwrap_or_default().into())
        ),
        (_, Some(mask)) => format!("all flows hash to one of {}", cpus(mask)),
        (_, None) => "whether RPS is on was not read".into(),
    }
}

fn spread_line(packed: &Packed) -> EvidenceLine {
    let (of, source) = packed.flows.words();
    let (other, idle) = packed.spare;
    let text = format!(
        "CPU {} took {} of all packets{of}; CPU {other} was idle {} of the window",
        packed.cpu,
        percent(packed.part),
        percent(idle)
    );
    line(text, format!("/proc/net/softnet_stat processed, /proc/stat{source}"))
}

pub fn judge(view: &View) -> Option<Claim> {
    let packed = packed(view)?;
    let (backlog, ring) = (view.lost_at(Place::Backlog), view.lost_at(Place::Ring));
    let (place, lost) =
        if backlog >= ring { (Place::Backlog, backlog) } else { (Place::Ring, ring) };
    // In the sender's own call the work is where the sender is: another question.
    let in_call = matches!(view.raw.softirq, SoftirqPlace::SenderCall);
    let slowed = !view.loses() && !in_call && (is_blocked(view) || !reached(view));
    if !view.is_loss_at(place, lost) && !slowed {
        return None;
    }
    let lost = if slowed { 0 } else { lost };
    let sure = Confidence::strong_if(!matches!(packed.flows, Flows::Unknown));
    let cpu = packed.cpu;
    let what = match packed.stage {
        Stage::RpsPointless => "one flow on one CPU is the limit",
        Stage::RpsMissing => "one queue's CPU is the limit",
        _ => "one CPU has all flows and is the limit",
    };
    let sentence = format!(
        "{what}: receive softirqs fill CPU {cpu} while CPU {} is idle {} of the time; {}",
        packed.spare.0,
        percent(packed.spare.1),
        why(view, &packed)
    );
    let claim = Claim::new(packed.stage, sure, Part::PATH, sentence)
        .on(Some(cpu))
        .because(drops(view, place))
        .because([spread_line(&packed)])
        .because(cpu_use(view, cpu))
        .because((lost == 0).then(|| lossless(view)))
        .because([rates(view)]);
    let claim = if lost > 0 { claim.losing_at(view, place, lost) } else { claim };
    let free = packed.spare.0;
    Some(match packed.stage {
        Stage::RpsPointless => claim
            .remedy(Remedy::MORE_THAN_ONE_FLOW)
            .remedy(format!("make its packets cheaper: fewer netfilter rules on the way in, UDP_GRO, the reader off CPU {cpu}"))
            .remedy("switch RPS off where there is but one flow: it costs an interrupt of another CPU and gains nothing"),
        Stage::RpsMissing => claim
            .remedy(format!("switch RPS on with CPU {free} in its mask (/sys/class/net/IF/queues/rx-0/rps_cpus)"))
            .remedy("more queues, where the device has them: `ethtool -L IF combined N`"),
        _ => claim
            .remedy(format!("add CPU {free} to the mask (/sys/class/net/IF/queues/rx-*/rps_cpus)"))
            .remedy("hash ports as well as addresses: `ethtool -N IF rx-flow-hash udp4 sdfn`, and spread the indirection table evenly: `ethtool -X IF equal N`")
            .remedy("more flows: a few flows may all hash to one CPU"),
    })
}
