//! TCP: no drops at the socket; the window and the reader are the limits.

use rxpath_core::Bytes;
use rxpath_core::number::si;

use super::{Bound, Parameters, seconds, whole_up};

pub(super) fn compute(p: &Parameters) -> Option<Bound> {
    let (Bytes(window), rtt) = (p.window?, p.rtt.filter(|rtt| rtt.0 > 0)?.as_secs_f64());
    let by_window = window as f64 / rtt;
    let by_reader = p
        .service_ns
        .zip(p.size)
        .map(|(cost, size)| p.share.unwrap_or(1.0) * size.0 as f64 / cost.as_secs_f64());
    let rate = by_reader.map_or(by_window, |reader| reader.min(by_window));
    let mut sentence = format!(
        "A window of {} over {} allows {} bytes/s",
        Bytes(window),
        seconds(rtt),
        si(by_window)
    );
    let mut bound = Bound::new(
        "rate <= min(window/RTT, mu3); a stall T is hidden iff the window holds rate T",
        "no loss on the path; the window is about half of sk_rcvbuf (tcp_adv_win_scale, scaling ratio)",
    )
    .with("window_rate_bps", by_window * 8.0)
    .with("rate_bps", rate * 8.0);
    if let Some(reader) = by_reader {
        sentence += &format!("; the reader takes {} bytes/s", si(reader));
        bound = bound.with("reader_rate_bps", reader * 8.0);
    }
    if let Some(stall) = p.stall {
        let needed = whole_up(rate * stall.as_secs_f64());
        let hidden = window as f64 >= needed;
        sentence += &format!(
            "; a stop of {stall} {} behind it ({} needed)",
            if hidden { "is hidden" } else { "shows" },
            Bytes(needed as u64)
        );
        bound = bound.value("min_window_bytes", needed as u64).value("stall_hidden", hidden);
    }
    Some(Bound { sentence: sentence + ".", ..bound })
}
