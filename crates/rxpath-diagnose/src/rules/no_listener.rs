//! Nobody listens on the port.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let lost = view.loss_at(Place::NoListener)?;
    let share = percent(view.of_offered(lost));
    let some_read = view.raw.ledger.delivered_packets > 0;
    let why = if some_read {
        "the rest was read: the receiver was not running for part of the time, or listens on other addresses or ports"
    } else {
        "none was read"
    };
    let sentence = format!(
        "nobody listens: {share} of the offered datagrams found no socket on their port; {why}"
    );
    Some(
        Claim::new(Stage::NoListener, Confidence::Strong, &[Part::Ledger], sentence)
            .dropped_at(view, Place::NoListener, lost)
            .because([rates(view)])
            .remedy("start the receiver before the sender, on the same address and port (`ss -uln` shows the sockets of a namespace)")
            .remedy("a socket bound to one address takes no datagrams for another: listen on 0.0.0.0 or [::], or on each address"),
    )
}
