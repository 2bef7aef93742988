//! Packet filter rules of a namespace and their counters.

use rxpath_host::HostError;
use rxpath_host::lab::netns::Namespace;

use crate::bed::{Bed, send, until};

const RULES: &str = "table inet t { chain in { type filter hook input priority 0;
    meta l4proto icmp accept
    udp dport 9 numgen inc mod 4 == 0 counter drop
}
}";

/// Waits until a rule has counted so many packets: what was sent may still be in flight, in ksoftirqd.
fn counted(rx: &Namespace, rule: &str, packets: u64) {
    until(rule, || rx.nft_counters().unwrap().get(rule) >= Some(&packets));
    assert_eq!(rx.nft_counters().unwrap()[rule], packets);
}

#[test]
fn nft_rules_count_by_their_place() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    rx.apply_nft(RULES).unwrap();
    send(&tx, 9, 1000);
    counted(&rx, "nft.inet.t.in.2.packets", 250);
    assert_eq!(rx.nft_counters().unwrap().len(), 2);
    assert!(tx.nft_counters().unwrap().is_empty(), "the sender's namespace has no rules");
    let error = rx.apply_nft("table inet t { nonsense }").unwrap_err();
    assert!(
        matches!(&error, HostError::Malformed { why, .. } if why.contains("1:16-23: Error: syntax error")),
        "{error}"
    );
}

#[test]
fn iptables_rules_show_in_the_same_list() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let rule = "-t raw -A PREROUTING -p udp --dport 9 -m statistic --mode nth --every 4 --packet 0 -j DROP";
    let words: Vec<&str> = rule.split(' ').collect();
    rx.apply_iptables(&words).unwrap();
    send(&tx, 9, 1000);
    counted(&rx, "nft.ip.raw.PREROUTING.1.packets", 250);
    assert!(rx.apply_iptables(&["-A", "NOPE"]).is_err());
}
