//! A reader that stops: when the socket overflows, what is lost, which buffer outlasts the stop, how long it drains.

use rxpath_core::number::{grouped, si};

use super::{Bound, Parameters, percent, seconds, whole_up};
use crate::kinds::stall::Stall;

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let (offered, stall) = (p.to_socket()?, p.stall?.as_secs_f64());
    let ((truesize, _), (places, certain)) = (p.truesize()?, p.places()?);
    let needed = whole_up(offered * stall);
    let bytes = whole_up(4.0 / 3.0 * needed * truesize as f64);
    let overflow = places as f64 / offered;
    let mut sentence = format!(
        "At {} datagrams/s the socket queue of {} datagrams overflows {} after the reader stops",
        si(offered),
        grouped(places),
        seconds(overflow)
    );
    let mut bound = Bound::new(
        "N >= ceil(lambda T); sk_rcvbuf >= 4/3 N truesize; drain = lambda T/(mu - lambda); worst sojourn <= T + N c_a/s; \
         drop = max(0, lambda T - N)/(lambda P) if the queue empties between stalls, else 1 - mu (P - T)/(lambda P)",
        "regular arrivals into an empty queue; memory of read datagrams is freed in quarters of the buffer",
    )
    .with("overflow_s", overflow)
    .with("certain_overflow_s", certain as f64 / offered)
    .value("min_queue_packets", needed as u64)
    .value("min_rcvbuf_bytes", bytes as u64)
    .value("min_so_rcvbuf_argument_bytes", (bytes / 2.0).ceil() as u64);
    if let (Some(period), Some(rate)) = (p.period, p.reader_rate()) {
        let model = Stall {
            arrivals_pps: offered,
            service_pps: rate,
            places,
            stall_s: stall,
            period_s: period.as_secs_f64(),
        };
        let dropped = model.fluid_drop();
        sentence +=
            &format!("; {} are lost when the reader stops every {period}", percent(dropped));
        bound = bound.with("drop_ratio", dropped);
    }
    if let Some(rate) = p.reader_rate().filter(|rate| *rate > offered) {
        let queued = needed.min(places as f64);
        let (drain, worst) = (queued / (rate - offered), stall + queued / rate);
        sentence += &format!("; the queue has drained {} after the stop", seconds(drain));
        bound = bound.with("drain_s", drain).with("worst_sojourn_s", worst);
    }
    sentence += &format!(
        "; to survive {} the socket needs --rcvbuf {}KiB ({} datagrams)",
        seconds(stall),
        // Not a byte less.
        (bytes / 1024.0).ceil(),
        grouped(needed as u64)
    );
    Some(Bound { sentence: sentence + ".", ..bound })
}
