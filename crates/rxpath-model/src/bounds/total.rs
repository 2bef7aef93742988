//! All stages together: what arrives at the application.

use rxpath_core::number::si;

use super::{Bound, Parameters, percent};

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let (arrivals, reader) = (p.arrivals()?, p.reader_rate()?);
    let stages = [
        ("the ring", p.ring_rate()),
        ("the RPS backlog", p.backlog_rate()),
        ("the socket", Some(reader)),
    ];
    let (mut left, mut worst, mut most) = (arrivals, "no stage", 0.0);
    for (stage, rate) in stages {
        let Some(rate) = rate else { continue };
        let lost = (left - rate).max(0.0);
        if lost > most {
            (worst, most) = (stage, lost);
        }
        left -= lost;
    }
    let dropped = (1.0 - left / arrivals).max(0.0);
    let sentence = format!(
        "Of {} datagrams/s offered, {} reach the application ({} lost); {worst} limits.",
        si(arrivals),
        si(left),
        percent(dropped)
    );
    let assumes = "a fluid in steady state: overflowing queues are full; stages without a given cost lose nothing";
    let bound = Bound::new("p = 1 - (1-p1)(1-p1b)(1-p3); g = lambda (1-p)", assumes)
        .with("goodput_pps", left)
        .with("drop_ratio", dropped);
    Some(Bound { sentence, ..bound })
}
