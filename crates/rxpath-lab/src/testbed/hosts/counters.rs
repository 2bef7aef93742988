//! The counters of several hosts as those of two sides: what the hosts of a side counted is added.

use rxpath_core::Side;
use rxpath_record::counters::Snapshot;
use rxpath_record::counters::name::{of_host, side_on_receiver};

/// What one host counted.
pub struct Reading {
    /// Its side.
    pub side: Side,
    /// Its name.
    pub alias: String,
    /// Its device.
    pub device: String,
    /// No earlier host of the side is on its machine, whose softnet counters and energy it reads.
    pub counts_machine: bool,
    /// The counters.
    pub snapshot: Snapshot,
}

/// Readings of hosts as those of two sides. Counters of a side's devices stand under the name of the first one's; softnet
/// counters and energy of receivers are their machines': those on which packets arrive. Of several receivers each also stands
/// alone, as [`of_host`] names it.
pub fn of_sides(readings: &[Reading], t_ns: u64) -> Snapshot {
    let mut all = Snapshot { t_ns: t_ns as i64, ..Snapshot::default() };
    for side in [Side::Tx, Side::Rx] {
        let of_side: Vec<&Reading> = readings.iter().filter(|it| it.side == side).collect();
        let Some(first) = of_side.first() else { continue };
        let is_apart = side == Side::Rx && of_side.len() > 1;
        for reading in &of_side {
            add(&mut all, reading, (first.device.as_str(), is_apart));
        }
    }
    all
}

fn add(all: &mut Snapshot, reading: &Reading, (shown, is_apart): (&str, bool)) {
    let side_of =
        |name: &str| if reading.side == Side::Rx { side_on_receiver(name) } else { reading.side };
    let counts = |side: Side| side != Side::Machine || reading.counts_machine;
    for (name, value) in &reading.snapshot.values {
        let (side, name) = (side_of(name), renamed(name, &reading.device, shown));
        if is_apart {
            all.values.insert(of_host(side, &reading.alias, &name), *value);
        }
        if counts(side) {
            let sum = all.values.entry(format!("{side}/{name}")).or_default();
            *sum = sum.wrapping_add(*value);
        }
    }
    for (source, why) in &reading.snapshot.gaps {
        let side = side_of(source);
        let source = renamed(source, &reading.device, shown);
        if is_apart {
            all.gaps.insert(of_host(side, &reading.alias, &source), why.clone());
        }
        if counts(side) {
            all.gaps.insert(format!("{side}/{source}"), why.clone());
        }
    }
}

/// `link.eth1.rx.packets` as `link.eth0.rx.packets`.
fn renamed(name: &str, device: &str, shown: &str) -> String {
    let own = name
        .split_once('.')
        .and_then(|(source, rest)| Some((source, rest.strip_prefix(device)?.strip_prefix('.')?)));
    match own {
        Some((source, counter)) => format!("{source}.{shown}.{counter}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(side: Side, (alias, device): (&str, &str), values: &[(&str, u64)]) -> Reading {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Reading {
            side,
            alias: alias.into(),
            device: device.into(),
            counts_machine: true,
            snapshot: Snapshot { values, ..Snapshot::default() },
        }
    }

    #[test]
    fn senders_are_added_under_the_first_one_s_device() {
        let hosts = [
            reading(
                Side::Tx,
                ("gen1", "eth0"),
                &[
                    ("link.eth0.tx.packets", 3),
                    ("Udp.OutDatagrams", 2),
                    ("energy.package-0.uj", 70),
                ],
            ),
            reading(
                Side::Tx,
                ("gen2", "eth0.5"),
                &[("link.eth0.5.tx.packets", 4), ("Udp.OutDatagrams", 5)],
            ),
            reading(
                Side::Rx,
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
        assert_eq!(all.values.len(), 6, "{all:?}");
    }

    #[test]
    fn receivers_are_added_and_each_stands_alone() {
        let mut hosts = [
            reading(
                Side::Rx,
                ("sut", "ens1"),
                &[("link.ens1.rx.packets", 7), ("softnet.cpu0.dropped", 1)],
            ),
            reading(
                Side::Rx,
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
    fn the_counters_of_one_machine_count_once() {
        let of = |alias| reading(Side::Rx, (alias, "eth0"), &[("softnet.cpu0.dropped", 4)]);
        let second = Reading { counts_machine: false, ..of("sut2") };
        let all = of_sides(&[of("sut"), second], 0);
        assert_eq!(all.values.get("machine/softnet.cpu0.dropped"), Some(&4));
        assert_eq!(all.values.get("machine@sut2/softnet.cpu0.dropped"), Some(&4));
    }
}
