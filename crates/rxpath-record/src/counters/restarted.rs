//! Devices whose counters began again between two readings: a difference shows nothing then.

use std::collections::BTreeSet;

use super::{Moved, Snapshot, name};

/// Sources that count for one device.
const OF_DEVICE: [&str; 6] = ["link", "ethtool", "standard", "queue", "qdisc", "tc"];

/// Why such a counter is not known.
const WHY: &str = "a counter of the device began again in between: the device was removed and added, its driver was reset, or the \
                   counter wrapped";

/// Leaves out what such devices counted, with the reason.
pub(super) fn leave_out(before: &Snapshot, after: &Snapshot, moved: &mut Moved) {
    for (side, device) in restarted(before, after) {
        for source in OF_DEVICE {
            let gap = format!("{side}/{source}.{device}");
            moved.values.retain(|name, _| !name::covers(&gap, name));
            moved.gaps.insert(gap, WHY.to_owned());
        }
    }
}

/// Side and device of those that have another index, or of which the kernel counts less than before. It counts in 64 bits, but for
/// counters that a card has in 32 bits. What several hosts counted together may have grown all the same: it is left out with each
/// of them.
fn restarted<'a>(before: &Snapshot, after: &'a Snapshot) -> BTreeSet<(&'a str, &'a str)> {
    let began_again = |(name, now): (&'a String, &u64)| {
        let (side, rest) = name.split_once("/link.")?;
        let then = before.values.get(name)?;
        let (device, is_other) = if let Some(device) = rest.strip_suffix(name::INDEX) {
            (device, now != then)
        } else {
            // `eth0.5.rx.packets`
            let fell = now < then && !name::wraps_at_32_bits(name, *then, *now);
            (rest.rsplitn(3, '.').nth(2)?, fell)
        };
        is_other.then_some((side, device))
    };
    let with_sum = |(side, device): (&'a str, &'a str)| {
        [side, side.split('@').next().unwrap_or(side)].map(|side| (side, device))
    };
    after.values.iter().filter_map(began_again).flat_map(with_sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(values: &[(&str, u64)]) -> Snapshot {
        let values = values.iter().map(|(name, value)| ((*name).into(), *value)).collect();
        Snapshot { values, ..Snapshot::default() }
    }

    const OTHERS: [(&str, u64); 3] =
        [("tx/link.eth0.5.tx.packets", 9), ("rx/Udp.NoPorts", 7), ("rx/link.eth1.rx.packets", 70)];

    /// The changes of a device of this index that has these counts.
    fn moved(before: [u64; 3], after: [u64; 3]) -> Moved {
        let of = |[index, packets, frames]: [u64; 3], others: u64| {
            let own = [
                ("rx/link.eth0.5.index", index),
                ("rx/link.eth0.5.rx.packets", packets),
                ("rx/ethtool.eth0.5.rx_packets", frames),
            ];
            let others = OTHERS.map(|(name, value)| (name, value + others));
            snapshot(&[&own[..], &others].concat())
        };
        of(after, 1).since(&of(before, 0))
    }

    #[test]
    fn counters_of_a_device_that_was_made_again_are_gaps_and_no_differences() {
        let steady = moved([4, 100, 100], [4, 150, 160]);
        assert_eq!(steady.get("rx/ethtool.eth0.5.rx_packets"), 60);
        assert!(steady.gaps.is_empty() && !steady.values.contains_key("rx/link.eth0.5.index"));
        // Less than before; or more, on another device.
        for after in [[4, 20, 20], [9, 150, 160]] {
            let again = moved([4, 100, 100], after);
            for own in ["link.eth0.5.rx.packets", "ethtool.eth0.5.rx_packets", "qdisc.eth0.5.drops"]
            {
                let own = format!("rx/{own}");
                assert_eq!((again.get(&own), again.gap(&own)), (0, Some(WHY)), "{again:?}");
            }
            for (other, _) in OTHERS {
                assert_eq!((again.get(other), again.gap(other)), (1, None), "{other}: {again:?}");
            }
        }
    }

    /// Together they counted more than before.
    #[test]
    fn a_sum_is_unknown_if_one_receiver_began_to_count_again() {
        let of = |own: u64, other: u64| {
            snapshot(&[
                ("rx/link.eth0.rx.packets", own + other),
                ("rx@sut/link.eth0.rx.packets", own),
                ("rx@sut2/link.eth0.rx.packets", other),
                ("tx/link.eth0.tx.packets", own + other),
            ])
        };
        let moved = of(20, 900).since(&of(100, 100));
        for lost in ["rx/link.eth0.rx.packets", "rx@sut/link.eth0.rx.packets"] {
            assert_eq!((moved.get(lost), moved.gap(lost)), (0, Some(WHY)), "{moved:?}");
        }
        let (sut2, sender) = ("rx@sut2/link.eth0.rx.packets", "tx/link.eth0.tx.packets");
        assert_eq!((moved.get(sut2), moved.gap(sut2)), (800, None), "{moved:?}");
        assert_eq!((moved.get(sender), moved.gap(sender)), (720, None), "{moved:?}");
    }

    #[test]
    fn a_card_s_counter_of_32_bits_that_wraps_is_no_restart_of_its_device() {
        let packets = "rx/link.eth0.rx.packets";
        let lost = ["rx/link.eth0.rx.missed_errors", "rx/ethtool.eth0.rx_out_of_buffer"];
        let moved = |then: u64, now: u64| {
            let of = |all, value| snapshot(&[(packets, all), (lost[0], value), (lost[1], value)]);
            of(70, now).since(&of(50, then))
        };
        let wrapped = moved(0xffff_fff0, 4);
        assert_eq!(lost.map(|name| wrapped.get(name)), [20, 20], "{wrapped:?}");
        assert_eq!((wrapped.get(packets), wrapped.gaps.len()), (20, 0), "{wrapped:?}");
        // Too little for that.
        assert_eq!(moved(100, 4).gap(lost[1]), Some(WHY));
    }
}
