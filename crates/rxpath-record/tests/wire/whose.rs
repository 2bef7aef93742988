//! Hosts whose counters do not show whose packets they counted: where the ledger shows a loss, and where it leaves it open.

use rxpath_record::counters::Moved;
use rxpath_record::ledger::{Balance, Drop, Ledger, LedgerInput, PacketBounds, Place};

use super::shared::{drop_at, read_600_of_1000, shared_input};

/// 1,000 datagrams, of which 400 are missing. From the same host 500 datagrams and 200 segments of others came.
fn said() -> LedgerInput {
    let mut said = shared_input();
    said.path.input_rules = None;
    said.receiver = read_600_of_1000();
    said
}

/// What the hosts counted: `arrived` of the 1,700 packets, of which netfilter dropped 400. IP delivered as many as were read.
fn moved(arrived: i64) -> Moved {
    let values = [
        ("tx/Udp.OutDatagrams", 1_500),
        ("tx/Tcp.OutSegs", 200),
        ("tx/link.eth0.tx.packets", 1_700),
        ("tx/ethtool.eth0.tx_packets", 1_700),
        ("rx/ethtool.eth1.rx_packets", arrived),
        ("rx/link.eth1.rx.packets", arrived),
        ("rx/Ip.InReceives", arrived),
        ("rx/IpExt.InNoECTPkts", arrived),
        ("rx/Ip.InDelivers", arrived - 400),
        ("rx/Tcp.InSegs", 200),
        ("rx/Udp.InDatagrams", arrived - 600),
    ];
    let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
    Moved { values, ..Moved::default() }
}

fn range(ledger: &Ledger, place: Place) -> Option<PacketBounds> {
    drop_at(ledger, place).map(Drop::range)
}

const UP_TO_ALL: Option<PacketBounds> =
    Some(PacketBounds { least_packets: 0, most_packets: Some(400) });

#[test]
fn what_a_rule_of_the_receiver_dropped_is_not_shown_at_a_network_whose_cards_agree() {
    let ledger = Ledger::from_counters(&said(), &moved(1_700));
    assert_eq!(ledger.lost_at(Place::Netfilter), 400, "{ledger:#?}");
    assert_eq!(ledger.lost_at(Place::Network), 0, "{ledger:#?}");
    // Packets of others from elsewhere may stand for as many that the network lost.
    assert_eq!(range(&ledger, Place::Netfilter), UP_TO_ALL, "{ledger:#?}");
    assert_eq!(range(&ledger, Place::Network), UP_TO_ALL, "{ledger:#?}");
    assert_eq!(ledger.balance(), Balance::Within(400), "{ledger:#?}");
}

#[test]
fn a_few_frames_that_one_card_alone_counted_decide_nothing() {
    let mut frames = moved(1_700);
    for counter in ["tx/link.eth0.tx.packets", "tx/ethtool.eth0.tx_packets"] {
        *frames.values.get_mut(counter).unwrap() += 5;
    }
    let ledger = Ledger::from_counters(&said(), &frames);
    assert!(ledger.lost_at(Place::Netfilter) >= 395, "{ledger:#?}");
    assert_eq!(ledger.lost_packets(), 400, "{ledger:#?}");
}

#[test]
fn a_loss_that_two_counters_have_is_shown_at_neither_place() {
    // The network lost 400 of the workload, and the rule dropped 400 of others. The same counters can be the other way round.
    let ledger = Ledger::from_counters(&said(), &moved(1_300));
    assert_eq!(ledger.lost_packets(), 0, "{ledger:#?}");
    assert_eq!(range(&ledger, Place::Netfilter), UP_TO_ALL, "{ledger:#?}");
    assert_eq!(range(&ledger, Place::Network), UP_TO_ALL, "{ledger:#?}");
    assert_eq!(ledger.balance(), Balance::Within(400), "{ledger:#?}");
    let note = "400 datagrams were lost at the network between the cards or at netfilter: the counters there also count packets of \
                other programs";
    assert!(ledger.notes.iter().any(|it| it == note), "{:?}", ledger.notes);
}

#[test]
fn a_loss_that_two_counters_have_may_also_be_one_of_a_place_that_only_may_hide_it() {
    // The ring lost 400 frames, and the rule dropped 400 packets: perhaps all of others. Both cards counted as many frames, of
    // which 400 from elsewhere may stand for those of the workload.
    let mut frames = moved(1_300);
    frames.values.insert("rx/ethtool.eth1.rx_missed_errors".into(), 400);
    let ledger = Ledger::from_counters(&said(), &frames);
    assert_eq!(ledger.lost_packets(), 0, "{ledger:#?}");
    let note = ledger.notes.iter().find(|it| it.starts_with("400 datagrams were lost at"));
    for place in [Place::Ring, Place::Network, Place::Netfilter] {
        assert_eq!(range(&ledger, place), UP_TO_ALL, "{ledger:#?}");
        let noun = place.words().noun;
        assert!(note.is_some_and(|note| note.contains(noun)), "{noun}: {:?}", ledger.notes);
    }
}

#[test]
fn what_only_one_of_two_places_can_have_lost_is_shown_there() {
    // The rule dropped 400 packets, and the network lost 100.
    let ledger = Ledger::from_counters(&said(), &moved(1_600));
    assert_eq!(ledger.lost_at(Place::Netfilter), 300, "{ledger:#?}");
    assert_eq!(ledger.lost_at(Place::Network), 0, "{ledger:#?}");
    let note = "100 datagrams were lost at the network between the cards or at netfilter";
    assert!(ledger.notes.iter().any(|it| it.starts_with(note)), "{:?}", ledger.notes);
}
