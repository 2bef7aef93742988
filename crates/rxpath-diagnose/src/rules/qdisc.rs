//! The sender's own host refuses or drops: its queueing discipline, its card's driver, or the send call itself.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let (place, lost) = [Place::Qdisc, Place::SendingDevice, Place::SendCall]
        .map(|place| (place, view.lost_at(place)))
        .into_iter()
        .max_by_key(|(place, lost)| (*lost, *place))?;
    if !view.is_loss(lost) {
        return None;
    }
    let share = percent(view.of_offered(lost));
    // Of several senders the counters are added.
    let of = match view.raw.sender_hosts.as_slice() {
        [one] if view.sends_from_elsewhere() => format!("the sender {}'s", one.name),
        _ => "the sender's".to_owned(),
    };
    let (sentence, remedy) = match place {
        Place::Qdisc => (
            format!(
                "{of} queueing discipline is the limit: it dropped {share} of the offered datagrams"
            ),
            "raise the rate or the queue of the sender's qdisc (`tc qdisc show dev IF`), or replace it with `noqueue` or `fq`",
        ),
        Place::SendingDevice => (
            format!(
                "{of} network card is the limit: its driver dropped {share} of the offered datagrams"
            ),
            "a longer transmit ring (`ethtool -G IF tx N`) or more transmit queues (`ethtool -L IF tx N`) at the sender",
        ),
        _ => (
            format!(
                "{of} kernel is the limit: it refused {share} of the offered datagrams at the send call"
            ),
            "look at the sender's errno counts: EPERM = a netfilter OUTPUT rule, EMSGSIZE = --size over the MTU",
        ),
    };
    Some(
        Claim::new(Stage::Sender, Confidence::Strong, &[Part::Ledger], sentence)
            .dropped_at(view, place, lost)
            .because([rates(view)])
            .remedy(remedy)
            .remedy(Remedy::LOWER_RATE),
    )
}
