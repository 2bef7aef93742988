//! A full backlog: one of the counters of its drops is that of the whole machine.

use rxpath_record::ledger::{Drop, Place};

use crate::losses::{each, has_check};

#[test]
fn a_full_backlog_is_one_drop_in_five_counters() {
    each("loss-backlog", &[], |trial| {
        // A reader that others keep from its CPU may lose at its socket, too: what that is belongs to another counter.
        let others = |drop: &&Drop| drop.place != Place::Backlog;
        assert!(
            trial.ledger.drops.iter().filter(others).all(|drop| drop.place == Place::SocketBuffer)
        );
        let drop =
            trial.ledger.drops.iter().find(|drop| !others(drop)).expect("lost at the backlog");
        assert_eq!((drop.counter.as_str(), drop.derived), ("rx/link.veth.rx.dropped", false));
        for counter in
            ["machine/softnet.*.dropped", "tx/link.veth.tx.dropped", "tx/Udp.SndbufErrors"]
        {
            has_check(drop, counter);
        }
    });
}
