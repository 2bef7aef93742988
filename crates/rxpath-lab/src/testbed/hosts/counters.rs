//! The counters of several hosts as those of two sides: what the senders counted is added.

use rxpath_core::Side;
use rxpath_record::counters::Snapshot;
use rxpath_record::counters::name::side_on_receiver;

/// Readings of hosts with their devices, the senders' first, the receiver's last. Counters of a sender's device stand under
/// the name of the first sender's; softnet counters and energy of the receiver are the machine's: the one on which packets
/// arrive.
pub fn of_sides<'a>(hosts: impl Iterator<Item = (&'a str, Snapshot)>, t_ns: u64) -> Snapshot {
    let mut all = Snapshot { t_ns: t_ns as i64, ..Snapshot::default() };
    let mut hosts: Vec<_> = hosts.collect();
    let receiver = hosts.pop();
    let shown = hosts.first().map(|(device, _)| *device);
    for (device, snapshot) in hosts {
        let shown = shown.unwrap_or(device);
        for (name, value) in snapshot.values {
            let name = format!("{}/{}", Side::Tx, renamed(&name, device, shown));
            *all.values.entry(name).or_default() += value;
        }
        let gaps = snapshot.gaps.into_iter();
        all.gaps.extend(gaps.map(|(source, why)| (format!("{}/{source}", Side::Tx), why)));
    }
    if let Some((_, snapshot)) = receiver {
        for (name, value) in snapshot.values {
            all.values.insert(format!("{}/{name}", side_on_receiver(&name)), value);
        }
        for (source, why) in snapshot.gaps {
            all.gaps.insert(format!("{}/{source}", side_on_receiver(&source)), why);
        }
    }
    all
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

    #[test]
    fn senders_are_added_under_the_first_one_s_device() {
        let host = |values: &[(&str, u64)]| Snapshot {
            values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..Snapshot::default()
        };
        let hosts = [
            (
                "eth0",
                host(&[
                    ("link.eth0.tx.packets", 3),
                    ("Udp.OutDatagrams", 2),
                    ("energy.package-0.uj", 70),
                ]),
            ),
            ("eth0.5", host(&[("link.eth0.5.tx.packets", 4), ("Udp.OutDatagrams", 5)])),
            (
                "ens1",
                host(&[
                    ("link.ens1.rx.packets", 7),
                    ("softnet.cpu0.processed", 9),
                    ("energy.package-0.uj", 8),
                ]),
            ),
        ];
        let all = of_sides(hosts.into_iter(), 0);
        let get = |name: &str| all.values.get(name).copied();
        assert_eq!(get("tx/link.eth0.tx.packets"), Some(7));
        assert_eq!(get("tx/Udp.OutDatagrams"), Some(7));
        assert_eq!(get("rx/link.ens1.rx.packets"), Some(7));
        assert_eq!(get("machine/softnet.cpu0.processed"), Some(9));
        assert_eq!(get("machine/energy.package-0.uj"), Some(8), "the receiver's alone");
        assert_eq!(all.values.len(), 6, "{all:?}");
    }
}
