//! The socket queue: how many datagrams it holds, how fast the reader empties it, what is lost.

use rxpath_core::Bytes;
use rxpath_core::number::{grouped, si};

use super::{Bound, Parameters, percent, seconds};
use crate::queue::fixed_service::limited;

/// From this load on the fluid says "nothing lost" where chance already loses.
const NEAR: f64 = 0.8;

pub(super) fn capacity(p: &Parameters) -> Option<Bound> {
    let ((truesize, estimated), (places, certain)) = (p.truesize()?, p.places()?);
    let sentence = format!(
        "A receive buffer of {} holds {} datagrams of {} bytes of kernel memory each; {} are \
         certain while it is read.",
        Bytes(p.rcvbuf()),
        grouped(places),
        grouped(truesize),
        grouped(certain)
    );
    let assumes = if estimated {
        "the truesize is estimated from the payload for a plain sender on one host: measure it with SO_MEMINFO; \
         older kernels hold one datagram more"
    } else {
        "kernels before 6.18 hold one datagram more"
    };
    let formula =
        "N = floor(sk_rcvbuf/truesize); 3/4 N while reading, because memory is freed in quarters";
    let bound = Bound::new(formula, assumes)
        .value("truesize_bytes", truesize)
        .value("truesize_estimated", estimated)
        .value("rcvbuf_bytes", p.rcvbuf())
        .value("capacity_packets", places)
        .value("certain_packets", certain);
    Some(Bound { sentence, ..bound })
}

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let (offered, rate, (places, _)) = (p.to_socket()?, p.reader_rate()?, p.places()?);
    let dropped = (1.0 - rate / offered).max(0.0);
    let load = offered / rate;
    let mut sentence =
        format!("The reader can take {} datagrams/s, {} arrive", si(rate), si(offered));
    let mut bound = Bound::new(
        "mu3 = s (1 - u)/c_a; drop = max(0, 1 - mu3/lambda2); fill = N/(lambda2 - mu3)",
        "a fluid model: between a load of 0.8 and 1 it underestimates loss; use the M/D/1/K value for Poisson arrivals there",
    )
    .with("capacity_pps", rate)
    .with("load_ratio", load)
    .with("drop_ratio", dropped);
    if dropped > 0.0 {
        let fill = places as f64 / (offered - rate);
        sentence += &format!(
            "; {} are dropped once the queue of {} has filled, {} after the start",
            percent(dropped),
            grouped(places),
            seconds(fill)
        );
        bound = bound.with("fill_s", fill);
        if let Some(duration) = p.duration {
            let lost = ((offered - rate) * duration.as_secs_f64() - places as f64).max(0.0);
            let least = grouped(lost.round() as u64);
            sentence += &format!("; in {duration} at least {least} datagrams");
            bound = bound.with("lost_packets", lost);
        }
    } else {
        let random = limited(load, places).block;
        sentence += ": nothing is lost on average";
        if load > NEAR {
            sentence += &format!(
                ", but with random arrivals at a load of {load:.2} the queue of {} loses {}",
                grouped(places),
                percent(random)
            );
        }
        bound = bound.with("random_arrivals_drop_ratio", random);
    }
    Some(Bound { sentence: sentence + ".", ..bound })
}
