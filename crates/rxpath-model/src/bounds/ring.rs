//! The ring and the RPS backlog: their drain rate and required size.

use rxpath_core::ItemCount;
use rxpath_core::number::{grouped, si};

use super::{Bound, Parameters, percent, seconds, whole_up};

pub(super) fn capacity(p: &Parameters) -> Option<Bound> {
    let (arrivals, rate) = (p.arrivals()?, p.ring_rate()?);
    let dropped = (1.0 - rate / arrivals).max(0.0);
    let mut sentence = format!("One queue's softirq carries at most {} packets/s", si(rate));
    sentence += &if dropped > 0.0 {
        format!(
            "; of {} packets/s offered, {} are dropped at the ring",
            si(arrivals),
            percent(dropped)
        )
    } else {
        format!("; {} packets/s offered are below that limit", si(arrivals))
    };
    let mut bound = Bound::new(
        "mu1 = s W/(c_poll + W c_pkt); drop = max(0, 1 - mu1/lambda)",
        "back-to-back full polls without interrupts; the softirq gets the CPU share s",
    )
    .with("capacity_pps", rate)
    .with("drop_ratio", dropped);
    if let (Some(ItemCount(ring)), true) = (p.ring, dropped > 0.0) {
        let fill = ring as f64 / (arrivals - rate);
        let size = grouped(ring);
        sentence += &format!(", after the ring of {size} has filled in {}", seconds(fill));
        bound = bound.with("ring_fill_s", fill);
    }
    Some(Bound { sentence: sentence + ".", ..bound })
}

pub(super) fn size(p: &Parameters) -> Option<Bound> {
    let (arrivals, timer) = (p.arrivals()?, p.timer().unwrap_or(0.0));
    let longest = timer + p.starvation?.as_secs_f64();
    let needed = whole_up(arrivals * longest);
    let mut sentence = format!(
        "A ring that is not polled for {} needs at least {} descriptors at {} packets/s",
        seconds(longest),
        grouped(needed as u64),
        si(arrivals)
    );
    let mut bound = Bound::new(
        "D >= ceil(R tau), tau = rx-usecs + the longest starvation",
        "a regular stream into a ring with all descriptors ready; for a burst use its peak rate",
    )
    .value("min_ring_packets", needed as u64)
    .with("starvation_s", longest);
    if let Some(ItemCount(ring)) = p.ring {
        let lost = (needed - ring as f64).max(0.0);
        sentence += &if lost > 0.0 {
            let lost = grouped(lost as u64);
            format!("; with {}, {lost} packets are lost each time", grouped(ring))
        } else {
            format!("; {} suffice", grouped(ring))
        };
        bound = bound
            .with("lost_packets", lost)
            .with("time_to_empty_s", ring as f64 / arrivals)
            .value("ring_suffices", lost <= 0.0);
    }
    Some(Bound { sentence: sentence + ".", ..bound })
}

pub(super) fn burst(p: &Parameters) -> Option<Bound> {
    let (arrivals, rate, ItemCount(burst)) = (p.arrivals()?, p.ring_rate()?, p.burst?);
    let needed = whole_up((burst as f64 * (1.0 - rate / arrivals)).max(0.0));
    let sentence = format!(
        "A burst of {} packets at {} packets/s needs {} descriptors while the softirq takes {} packets/s.",
        grouped(burst),
        si(arrivals),
        grouped(needed as u64),
        si(rate)
    );
    let assumes = "the ring is empty before the burst and polled continuously during the burst";
    let bound = Bound::new("D >= B (1 - mu1/R)", assumes);
    Some(Bound { sentence, ..bound.value("min_ring_packets", needed as u64) })
}

pub(super) fn backlog(p: &Parameters) -> Option<Bound> {
    let (rate, places) = (p.backlog_rate()?, p.backlog());
    let offered =
        p.ring_rate().map_or(p.arrivals()?, |ring| ring.min(p.arrivals().unwrap_or(ring)));
    let dropped = (1.0 - rate / offered).max(0.0);
    let sentence = format!(
        "The CPU that RPS steers to takes {} packets/s from its backlog of {}: {} of {} are dropped there.",
        si(rate),
        grouped(places as u64),
        percent(dropped),
        si(offered)
    );
    let assumes = "one target CPU; netdev_max_backlog packets per CPU";
    let mut bound = Bound::new("drop = max(0, 1 - mu_b/lambda')", assumes)
        .with("capacity_pps", rate)
        .with("drop_ratio", dropped);
    if dropped > 0.0 {
        bound = bound.with("backlog_fill_s", places / (offered - rate));
    }
    Some(Bound { sentence, ..bound })
}
