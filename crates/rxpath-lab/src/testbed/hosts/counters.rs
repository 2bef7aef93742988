//! The counters of several hosts as those of two sides: what the hosts of a side counted is added.

use rxpath_core::PathSide;
use rxpath_record::counters::Snapshot;
use rxpath_record::counters::name::{self, of_host, side_on_receiver};

use crate::error::LabError;

/// What one host counted.
pub struct HostCounters {
    /// Its side.
    pub side: PathSide,
    /// Its name.
    pub alias: String,
    /// Its device.
    pub device: String,
    /// The driver of that.
    pub driver: String,
    /// No earlier host of the side is on its machine, whose softnet counters and energy it reads.
    pub counts_machine: bool,
    /// The counters.
    pub snapshot: Snapshot,
}

/// Sources whose names go on with a device.
const OF_DEVICES: [&str; 7] =
    ["link", "ethtool", "standard", "queue", "qdisc", "tc", name::OTHER_DEVICES];

/// Sources of which the driver decides what a name means.
const OF_DRIVERS: [&str; 3] = ["ethtool", "standard", "queue"];

/// Under which device the counters of a side stand that has several hosts.
#[derive(Clone, Copy)]
pub struct SideDevice<'a> {
    /// The first one's.
    device: &'a str,
    /// Whether the devices of all hosts have one driver.
    has_one_driver: bool,
}

/// Readings of hosts as those of two sides. Counters of a side's devices stand under the name of the first one's, as
/// [`on_side`] says; softnet counters and energy of receivers are their machines': those on which packets arrive. Of several
/// receivers each also stands alone, as [`of_host`] names it. So do the kernel's counters of the devices of several senders: their
/// sum does not show that one of them began again.
pub fn of_sides(readings: &[HostCounters], t_ns: u64) -> Snapshot {
    let mut all = Snapshot { t_ns: t_ns as i64, ..Snapshot::default() };
    for side in [PathSide::Tx, PathSide::Rx] {
        let of_side = readings.iter().filter(|it| it.side == side);
        let shown = shown(of_side.clone().map(|it| (it.device.as_str(), it.driver.as_str())));
        of_side.for_each(|reading| add(&mut all, reading, shown));
    }
    all
}

/// A reading of all hosts that could not be had: each counter is a gap with this reason.
pub fn unread(error: &LabError) -> Snapshot {
    let sides = [PathSide::Tx, PathSide::Rx, PathSide::Machine];
    let gaps = sides.map(|side| (format!("{side}/"), error.to_string()));
    Snapshot { gaps: gaps.into(), ..Snapshot::default() }
}

fn add(all: &mut Snapshot, reading: &HostCounters, shown: Option<SideDevice<'_>>) {
    let host = (reading.alias.as_str(), reading.device.as_str());
    let is_apart =
        |name: &str| shown.is_some() && (reading.side == PathSide::Rx || name.starts_with("link."));
    let side_of = |name: &str| {
        if reading.side == PathSide::Rx { side_on_receiver(name) } else { reading.side }
    };
    let counts = |side: PathSide| side != PathSide::Machine || reading.counts_machine;
    for (name, value) in &reading.snapshot.values {
        let side = side_of(name);
        let (of_side, of_card) = (on_side(name, host, shown), of_card(name, host, shown));
        let of_card = (of_card != of_side).then_some(of_card);
        for name in [of_side].into_iter().chain(of_card) {
            if is_apart(&name) {
                all.values.insert(of_host(side, &reading.alias, &name), *value);
            }
            if counts(side) {
                let sum = all.values.entry(format!("{side}/{name}")).or_default();
                *sum = sum.wrapping_add(*value);
            }
        }
    }
    for (source, why) in &reading.snapshot.gaps {
        let side = side_of(source);
        let source = on_side(source, host, shown);
        if is_apart(&source) {
            all.gaps.insert(of_host(side, &reading.alias, &source), why.clone());
        }
        if counts(side) {
            all.gaps.insert(format!("{side}/{source}"), why.clone());
        }
    }
}

/// How the counters of a side's devices are named, of which each is given with its driver; `None` of a single one.
pub fn shown<'a>(mut devices: impl Iterator<Item = (&'a str, &'a str)>) -> Option<SideDevice<'a>> {
    let (device, driver) = devices.next()?;
    let others: Vec<bool> = devices.map(|(_, other)| other == driver).collect();
    let has_one_driver = others.iter().all(|is_same| *is_same);
    (!others.is_empty()).then_some(SideDevice { device, has_one_driver })
}

/// The name of a host's counter among those of its side: `link.eth1.rx.packets` of its device eth1 as
/// `link.eth0.rx.packets`, if that is the device that is `shown`. A device below is this host's alone, whatever others call
/// theirs: `link.sut2:ens1.rx.packets`. So are the counters of drivers, if they differ: `ethtool.sut2:eth1.rx_packets`.
pub fn on_side(name: &str, (alias, device): (&str, &str), shown: Option<SideDevice<'_>>) -> String {
    let parts = name.split_once('.').filter(|(source, _)| OF_DEVICES.contains(source));
    let Some((shown, (source, rest))) = shown.zip(parts) else { return name.to_owned() };
    let is_added = shown.has_one_driver || !OF_DRIVERS.contains(&source);
    match rest.strip_prefix(device) {
        Some(counter) if is_added && (counter.is_empty() || counter.starts_with('.')) => {
            format!("{source}.{}{counter}", shown.device)
        }
        _ => format!("{source}.{alias}:{rest}"),
    }
}

/// The same of a counter that the row of its card's driver names: where drivers differ, also the kernel's counters of a device
/// stand alone a second time, because another row does not count them.
pub fn of_card(name: &str, host: (&str, &str), shown: Option<SideDevice<'_>>) -> String {
    let rest = name.strip_prefix("link.").filter(|_| shown.is_some_and(|it| !it.has_one_driver));
    rest.map_or_else(|| on_side(name, host, shown), |rest| format!("link.{}:{rest}", host.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(
        side: PathSide,
        (alias, device): (&str, &str),
        values: &[(&str, u64)],
    ) -> HostCounters {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        HostCounters {
            side,
            alias: alias.into(),
            device: device.into(),
            driver: "igb".into(),
            counts_machine: true,
            snapshot: Snapshot { values, ..Snapshot::default() },
        }
    }

    #[test]
    fn senders_are_added_under_the_first_one_s_device() {
        let hosts = [
            reading(
                PathSide::Tx,
                ("gen1", "eth0"),
                &[
                    ("link.eth0.tx.packets", 3),
                    ("Udp.OutDatagrams", 2),
                    ("energy.package-0.uj", 70),
                ],
            ),
            reading(
                PathSide::Tx,
                ("gen2", "eth0.5"),
                &[("link.eth0.5.tx.packets", 4), ("Udp.OutDatagrams", 5)],
            ),
            reading(
                PathSide::Rx,
                ("sut", "ens1"),
                &[
                    ("link.ens1.rx.packets", 7),
                    ("softnet.cpu0.processed", 9),
                    ("energy.package-0.uj", 8),
                ],
            ),
        ];
        let all = of_sides(&hosts, 0);
        let get = |name: &str| all.values.get(name).copied();
        assert_eq!(get("tx/link.eth0.tx.packets"), Some(7));
        assert_eq!(get("tx/Udp.OutDatagrams"), Some(7));
        assert_eq!(get("rx/link.ens1.rx.packets"), Some(7));
        assert_eq!(get("machine/softnet.cpu0.processed"), Some(9));
        assert_eq!(get("machine/energy.package-0.uj"), Some(8), "the receiver's alone");
        assert_eq!(get("tx@gen1/link.eth0.tx.packets"), Some(3));
        assert_eq!(get("tx@gen2/link.eth0.tx.packets"), Some(4));
        assert_eq!(all.values.len(), 8, "{all:?}");
    }

    #[test]
    fn receivers_are_added_and_each_stands_alone() {
        let mut hosts = [
            reading(
                PathSide::Rx,
                ("sut", "ens1"),
                &[("link.ens1.rx.packets", 7), ("softnet.cpu0.dropped", 1)],
            ),
            reading(
                PathSide::Rx,
                ("sut2", "eth0"),
                &[("link.eth0.rx.packets", 5), ("softnet.cpu0.dropped", 2)],
            ),
        ];
        hosts[1].snapshot.gaps.insert("snmp".into(), "denied".into());
        let mut all = of_sides(&hosts, 0);
        assert_eq!(all.values.remove("rx/link.ens1.rx.packets"), Some(12));
        assert_eq!(all.values.remove("rx@sut/link.ens1.rx.packets"), Some(7));
        assert_eq!(all.values.remove("rx@sut2/link.ens1.rx.packets"), Some(5));
        assert_eq!(all.values.remove("machine/softnet.cpu0.dropped"), Some(3));
        assert_eq!(all.values.remove("machine@sut2/softnet.cpu0.dropped"), Some(2));
        assert_eq!(all.gaps.keys().collect::<Vec<_>>(), ["rx/snmp", "rx@sut2/snmp"]);
    }

    #[test]
    fn devices_below_are_those_of_their_host_alone() {
        let bond = |alias, member: &str| {
            let counted = [
                ("link.bond0.rx.packets".to_owned(), 9),
                (format!("ethtool.{member}.rx_missed_errors"), 2),
            ];
            let counted = counted.each_ref().map(|(name, value)| (name.as_str(), *value));
            reading(PathSide::Rx, (alias, "bond0"), &counted)
        };
        let plain = reading(PathSide::Rx, ("sut", "eth0"), &[("link.eth0.rx.packets", 7)]);
        // A member of the second one's bond is called as the first one's device.
        let all = of_sides(&[plain, bond("sut2", "eth0")], 0).values;
        assert_eq!(all["rx/link.eth0.rx.packets"], 16);
        assert_eq!(all["rx/ethtool.sut2:eth0.rx_missed_errors"], 2);
        assert_eq!(all["rx@sut2/ethtool.sut2:eth0.rx_missed_errors"], 2);
        assert!(!all.contains_key("rx/ethtool.eth0.rx_missed_errors"), "{all:?}");
        let alone = of_sides(&[bond("sut", "ens1")], 0).values;
        assert_eq!(alone["rx/ethtool.ens1.rx_missed_errors"], 2);
        // What could not be read of a device is a gap of the name that it has there.
        let shown = SideDevice { device: "eth0", has_one_driver: true };
        let of = |name| on_side(name, ("sut2", "eth1"), Some(shown));
        assert_eq!(of("standard.eth1"), "standard.eth0");
        assert_eq!(of("queue.eth1.0.rx-hw-drop-overruns"), "queue.eth0.0.rx-hw-drop-overruns");
        assert_eq!(of("qdisc.eth1.root.drops"), "qdisc.eth0.root.drops");
        assert_eq!(of("other-devices.eno1.rx.packets"), "other-devices.sut2:eno1.rx.packets");
        for other in ["link", "Udp.InErrors"] {
            assert_eq!(of(other), other);
        }
    }

    #[test]
    fn a_reading_that_failed_leaves_every_counter_unknown_with_its_reason() {
        let values = [("Udp.InErrors", 3), ("softnet.cpu0.dropped", 1)];
        let before = of_sides(&[reading(PathSide::Rx, ("sut", "eth0"), &values)], 0);
        let (host, why) = ("sut".to_owned(), "no answer within 10 s".to_owned());
        let after = unread(&LabError::Lost { host, why, last_words: String::new() });
        let why = Some("sut was lost: no answer within 10 s");
        let names = ["rx/Udp.InErrors", "machine/softnet.cpu0.dropped", "tx/link.eth0.tx.packets"];
        for name in names {
            // Both readings may have failed.
            for moved in [after.since(&before), after.since(&after)] {
                assert_eq!(moved.gap(name), why, "{name}");
            }
        }
    }

    #[test]
    fn a_reading_that_failed_leaves_those_of_each_receiver_unknown_with_its_reason() {
        let of = |alias| reading(PathSide::Rx, (alias, "eth0"), &[("Udp.InErrors", 3)]);
        let both = of_sides(&[of("sut"), of("sut2")], 0);
        let failed = unread(&LabError::internal("no answer"));
        let why = failed.gaps.values().next().map(String::as_str);
        for moved in [failed.since(&both), both.since(&failed)] {
            let alone = moved.of_receiver("sut2").unwrap();
            assert_eq!((alone.gap("rx/Udp.InErrors"), alone.values.len()), (why, 0), "{moved:?}");
        }
    }

    #[test]
    fn the_counters_of_one_machine_count_once() {
        let of = |alias| reading(PathSide::Rx, (alias, "eth0"), &[("softnet.cpu0.dropped", 4)]);
        let second = HostCounters { counts_machine: false, ..of("sut2") };
        let all = of_sides(&[of("sut"), second], 0);
        assert_eq!(all.values.get("machine/softnet.cpu0.dropped"), Some(&4));
        assert_eq!(all.values.get("machine@sut2/softnet.cpu0.dropped"), Some(&4));
    }
}
