//! Counters by name: one snapshot, and the changes between two.
//!
//! Names are `side/group.counter`, for example `rx/Udp.RcvbufErrors`, `tx/link.veth.tx.dropped`,
//! `tx/qdisc.veth.tbf.drops`, `rx/nft.inet.t.in.2.packets`, `machine/softnet.cpu1.dropped`.
//! [`name`] makes them, so that readers and users of a counter agree on its name.

pub mod name;
mod restarted;

use std::collections::BTreeMap;
use std::fmt::Display;

use rxpath_core::{IntoMap, PathSide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every counter read at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// `CLOCK_MONOTONIC` at the end of the reading.
    pub t_ns: i64,
    /// Values by name.
    pub values: BTreeMap<String, u64>,
    /// Sources that could not be read, with the reason: a gap, never a zero.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub gaps: BTreeMap<String, String>,
}

impl Snapshot {
    /// Adds what was read, or the reason for the gap that is left of `source`.
    pub fn put<E: Display>(
        &mut self,
        source: String,
        read: Result<impl IntoIterator<Item = (String, u64)>, E>,
    ) {
        match read {
            Ok(values) => self.values.extend(values),
            Err(why) => {
                self.gaps.insert(source, why.to_string());
            }
        }
    }

    /// The changes since `before`.
    ///
    /// The difference is modulo 2^64, of counters of 32 bits ([`name::wraps_at_32_bits`]) modulo 2^32. A counter that one of the
    /// two lacks is a gap, with the reason that the other gave or the words that it was not there. Those of a device that began to
    /// count again are gaps, too.
    pub fn since(&self, before: &Self) -> Moved {
        let mut moved = Moved::default();
        for (name, now) in &self.values {
            match before.values.get(name) {
                Some(then) => {
                    let change = now.wrapping_sub(*then);
                    let is_short = name::wraps_at_32_bits(name, *then, *now);
                    let difference =
                        if is_short { i64::from(change as u32) } else { change as i64 };
                    if difference != 0 {
                        moved.values.insert(name.clone(), difference);
                    }
                }
                None => before.gap_of(name, "before the trial", &mut moved.gaps),
            }
        }
        for name in before.values.keys().filter(|name| !self.values.contains_key(*name)) {
            self.gap_of(name, "after the trial", &mut moved.gaps);
        }
        for (name, why) in before.gaps.iter().chain(&self.gaps) {
            moved.gaps.entry(name.clone()).or_insert_with(|| why.clone());
        }
        restarted::leave_out(before, self, &mut moved);
        moved
    }

    fn gap_of(&self, name: &str, when: &str, gaps: &mut BTreeMap<String, String>) {
        let reason = self.gaps.iter().find(|(gap, _)| name::covers(gap, name));
        let why = reason.map_or_else(|| format!("not there {when}"), |(_, why)| why.clone());
        gaps.insert(name.into(), why);
    }

    /// Those of `names` that this snapshot holds neither as a value nor as a gap.
    pub fn lacks<'a>(&self, names: &'a [String]) -> Vec<&'a str> {
        let known = |wanted: &&String| {
            !self.values.contains_key(*wanted)
                && !self.gaps.keys().any(|gap| name::covers(gap, wanted))
        };
        names.iter().filter(known).map(String::as_str).collect()
    }
}

/// The changes between two snapshots; unchanged counters are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// Differences by name.
    pub values: BTreeMap<String, i64>,
    /// Names that one of the two snapshots lacks, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub gaps: BTreeMap<String, String>,
}

impl Moved {
    /// Packets for which a network card's ring had no free descriptor, and the counter that has them: the sum of `owners`,
    /// if the driver is known.
    pub fn ring(&self, side: PathSide, device: &str, owners: &[String]) -> (String, i64) {
        if !owners.is_empty() {
            let name = owners.join(" + ");
            // The kernel counts a full backlog in `rx.dropped` too: that of the counter's host.
            let (folded, own): (Vec<&String>, Vec<&String>) =
                owners.iter().partition(|owner| owner.ends_with(".rx.dropped"));
            let own: i64 = own.into_iter().map(|name| self.get(name)).sum();
            if folded.is_empty() {
                return (name, own);
            }
            let mut backlogs: BTreeMap<String, i64> = BTreeMap::new();
            for owner in folded {
                *backlogs.entry(backlog_of(owner)).or_default() += self.get(owner);
            }
            let rest = |(backlog, packets): (&String, &i64)| {
                let dropped = self.like(backlog, ".dropped").map(|(_, packets)| packets);
                packets.saturating_sub(dropped.sum::<i64>()).max(0)
            };
            let rest: i64 = backlogs.iter().map(rest).sum();
            let less: Vec<String> =
                backlogs.keys().map(|backlog| format!(" - {backlog}*.dropped")).collect();
            return (name + &less.concat(), own + rest);
        }
        let each = name::RING.map(|counter| name::link(side, device, counter));
        let counted = each.into_iter().map(|name| (self.get(&name), name));
        let largest = counted.rev().max_by_key(|(packets, _)| *packets);
        largest.map(|(packets, name)| (name, packets)).unwrap_or_default()
    }

    /// The change of `name`; 0 if unchanged. Ask [`Moved::gap`] whether it was read at all.
    pub fn get(&self, name: &str) -> i64 {
        self.values.get(name).copied().unwrap_or(0)
    }

    /// Power of the machine's processor packages and their memory over so many seconds, in W; `None` where it does not
    /// count energy, and where a reader was started again in between.
    pub fn power_w(&self, seconds: f64) -> Option<f64> {
        let [prefix, suffix] = name::ENERGY;
        let used_uj: Vec<i64> = self.like(prefix, suffix).map(|(_, uj)| uj).collect();
        let is_known = !used_uj.is_empty() && used_uj.iter().all(|uj| *uj >= 0) && seconds > 0.0;
        is_known.then(|| used_uj.iter().sum::<i64>() as f64 / 1e6 / seconds)
    }

    /// The changes of one of several receivers by the names of a trial with one; `None` if it does not stand alone.
    /// Counters of senders are left out.
    pub fn of_receiver(&self, host: &str) -> Option<Self> {
        let own = |name: &str| -> Option<String> {
            let (side, rest) = name.split_once('/')?;
            let (side, of) = side.split_once('@')?;
            (of == host).then(|| format!("{side}/{rest}"))
        };
        let values = self.values.iter().filter_map(|(name, by)| Some((own(name)?, *by)));
        let gaps = self.gaps.iter().filter_map(|(name, why)| Some((own(name)?, why.clone())));
        let alone = Self { values: values.into_map(), gaps: gaps.into_map() };
        (!alone.values.is_empty() || !alone.gaps.is_empty()).then_some(alone)
    }

    /// Why `name` is not known, if it is not.
    pub fn gap(&self, name: &str) -> Option<&str> {
        self.gaps.iter().find(|(gap, _)| name::covers(gap, name)).map(|(_, why)| why.as_str())
    }

    /// A note for each of these that is not known.
    pub(crate) fn notes_of_gaps(&self, wanted: &[String]) -> Vec<String> {
        let note = |counter: &String| {
            let why = self.gap(counter)?;
            Some(format!("{counter} cannot be read ({why}): its losses cannot be accounted for"))
        };
        let mut notes: Vec<String> = wanted.iter().filter_map(note).collect();
        notes.dedup();
        notes
    }

    /// The counters whose names begin with `prefix` and end with `suffix`, in the order of their names.
    pub fn like<'a>(
        &'a self,
        prefix: &'a str,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, i64)> {
        self.values
            .range(prefix.to_owned()..)
            .take_while(move |(name, _)| name.starts_with(prefix))
            .filter(move |(name, _)| name.ends_with(suffix))
            .map(|(name, by)| (name.as_str(), *by))
    }
}

/// Where the backlogs are counted of the host that a ring's counter belongs to: `rx/link.ALIAS:DEVICE.rx.dropped`.
fn backlog_of(owner: &str) -> String {
    let alias = owner.split_once("/link.").and_then(|(_, rest)| rest.split_once(':'));
    alias.map_or("machine/softnet.".into(), |(alias, _)| format!("machine@{alias}/softnet."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_adds_to_rx_dropped_is_that_less_what_the_kernel_dropped() {
        let moved = |values: &[(&str, i64)]| Moved {
            values: values.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect(),
            ..Moved::default()
        };
        let owners = ["rx/link.ens5.rx.dropped".to_owned()];
        let counted = [("rx/link.ens5.rx.dropped", 90), ("machine/softnet.cpu1.dropped", 20)];
        let (name, lost) = moved(&counted).ring(PathSide::Rx, "ens5", &owners);
        assert_eq!(
            (name.as_str(), lost),
            ("rx/link.ens5.rx.dropped - machine/softnet.*.dropped", 70)
        );
        // Softnet is that of all devices.
        let counted = [("rx/link.ens5.rx.dropped", 10), ("machine/softnet.cpu1.dropped", 20)];
        assert_eq!(moved(&counted).ring(PathSide::Rx, "ens5", &owners).1, 0);
        let owners = ["rx/ethtool.ens5.rx_missed_errors".to_owned()];
        let counted =
            [("rx/ethtool.ens5.rx_missed_errors", 7), ("machine/softnet.cpu1.dropped", 2)];
        assert_eq!(moved(&counted).ring(PathSide::Rx, "ens5", &owners).1, 7);
        // Of cards of two drivers, one folds it in.
        let owners = ["rx/link.sut:eth0.rx.dropped", "rx/ethtool.sut2:eth0.rx_missed_errors"];
        let counted = [
            (owners[0], 30),
            (owners[1], 7),
            ("machine/softnet.cpu1.dropped", 50),
            ("machine@sut/softnet.cpu1.dropped", 10),
            ("machine@sut2/softnet.cpu1.dropped", 40),
        ];
        let owners = owners.map(str::to_owned);
        let (name, lost) = moved(&counted).ring(PathSide::Rx, "eth0", &owners);
        assert_eq!(lost, 27, "another host's backlog is not its");
        assert!(name.ends_with(" - machine@sut/softnet.*.dropped"), "{name}");
    }

    fn snapshot(values: &[(&str, u64)]) -> Snapshot {
        let values = values.iter().map(|(name, value)| ((*name).into(), *value)).collect();
        Snapshot { t_ns: 0, values, gaps: BTreeMap::new() }
    }

    #[test]
    fn what_stood_still_is_left_out() {
        let moved = snapshot(&[("rx/Udp.NoPorts", 7), ("rx/Udp.InErrors", 3)])
            .since(&snapshot(&[("rx/Udp.NoPorts", 5), ("rx/Udp.InErrors", 3)]));
        assert_eq!(moved.values, BTreeMap::from([("rx/Udp.NoPorts".into(), 2)]));
        assert!(moved.gaps.is_empty());
    }

    #[test]
    fn a_ring_s_losses_stand_under_the_name_that_the_driver_uses() {
        let zero = ["missed", "fifo", "over"].map(|it| format!("rx/link.eth0.rx.{it}_errors"));
        let zero: Vec<(&str, u64)> = zero.iter().map(|name| (name.as_str(), 0)).collect();
        let moved = |name: &'static str, by: u64| {
            let mut after = snapshot(&zero);
            after.values.insert(name.into(), by);
            after.since(&snapshot(&zero)).ring(PathSide::Rx, "eth0", &[])
        };
        let fifo = "rx/link.eth0.rx.fifo_errors";
        assert_eq!(moved(fifo, 7), (fifo.to_owned(), 7));
        assert_eq!(moved("rx/link.eth1.rx.fifo_errors", 7), (zero[0].0.to_owned(), 0));
    }

    #[test]
    fn power_is_the_energy_of_all_packages_over_time() {
        let all = ["package-0", "package-0-dram"].map(|zone| format!("machine/energy.{zone}.uj"));
        let [package, memory] = &all;
        let at = |package_uj, memory_uj| {
            snapshot(&[(package.as_str(), package_uj), (memory.as_str(), memory_uj)])
        };
        let power = at(90_000_000, 11_000_000).since(&at(10_000_000, 1_000_000)).power_w(2.0);
        assert_eq!(power, Some(45.0));
        // A reader that began again counts from 0.
        assert_eq!(at(90_000_000, 11).since(&at(10_000_000, 1_000_000)).power_w(2.0), None);
        assert_eq!(snapshot(&[]).since(&snapshot(&[])).power_w(2.0), None);
    }

    #[test]
    fn one_of_several_receivers_has_the_names_of_a_trial_with_one() {
        let mut moved = Moved::default();
        for (name, by) in [("rx/a", 5), ("rx@sut/a", 2), ("rx@sut2/a", 3), ("machine@sut2/b", 1)] {
            moved.values.insert(name.into(), by);
        }
        moved.gaps.insert("rx@sut2/Udp".into(), "denied".into());
        let alone = moved.of_receiver("sut2").unwrap();
        assert_eq!((alone.get("rx/a"), alone.get("machine/b"), alone.values.len()), (3, 1, 2));
        assert_eq!(alone.gap("rx/Udp.InErrors"), Some("denied"));
        assert_eq!(moved.of_receiver("sut3"), None);
    }

    #[test]
    fn a_counter_may_pass_zero() {
        let moved = snapshot(&[("a", 3)]).since(&snapshot(&[("a", u64::MAX - 1)]));
        assert_eq!(moved.get("a"), 5);
    }

    #[test]
    fn a_counter_of_32_bits_may_wrap_and_a_level_may_fall() {
        let (dropped, level) = ("machine/softnet.cpu0.dropped", "machine/softnet.cpu0.backlog_len");
        // Two hosts may be added.
        let before = snapshot(&[(dropped, 0xffff_fff0 + 7), (level, 9)]);
        let moved = snapshot(&[(dropped, 4 + 20), (level, 2)]).since(&before);
        assert_eq!((moved.get(dropped), moved.get(level)), (33, -7));
        // What a driver folds into rx_dropped is not larger for it.
        let folded = "rx/link.ens5.rx.dropped";
        let moved = snapshot(&[(folded, 40), (dropped, 4)])
            .since(&snapshot(&[(folded, 0), (dropped, 0xffff_fff0)]));
        assert_eq!(moved.ring(PathSide::Rx, "ens5", &[folded.to_owned()]).1, 20);
    }

    #[test]
    fn a_counter_that_one_side_lacks_is_a_gap_with_the_reason() {
        let mut before = snapshot(&[("rx/link.v.rx.packets", 1), ("rx/Udp.NoPorts", 0)]);
        let mut after = snapshot(&[("tx/link.w.tx.packets", 9)]);
        before.gaps.insert("tx/link.w".into(), "no such device".into());
        after.gaps.insert("rx/Udp".into(), "/proc/net/snmp: permission denied".into());
        let moved = after.since(&before);
        assert!(moved.values.is_empty());
        assert_eq!(moved.gap("rx/link.v.rx.packets"), Some("not there after the trial"));
        assert_eq!(moved.gap("tx/link.w.tx.packets"), Some("no such device"));
        assert_eq!(moved.gap("rx/Udp.NoPorts"), Some("/proc/net/snmp: permission denied"));
        assert_eq!(moved.gap("rx/Udp6.NoPorts"), None);
    }

    #[test]
    fn what_is_wanted_and_was_never_read_is_named() {
        let mut after = snapshot(&[("rx/Udp.NoPorts", 1)]);
        after.gaps.insert("rx/link.v".into(), "gone".into());
        let wanted =
            ["rx/Udp.NoPorts", "rx/link.v.rx.packets", "rx/Ip.InReceives"].map(String::from);
        assert_eq!(after.lacks(&wanted), ["rx/Ip.InReceives"]);
    }

    #[test]
    fn counters_are_found_by_both_ends() {
        let mut moved = Moved::default();
        for name in ["machine/softnet.cpu0.dropped", "machine/softnet.cpu1.processed", "rx/a"] {
            moved.values.insert(name.into(), 1);
        }
        let found: Vec<_> = moved.like("machine/softnet.", ".dropped").collect();
        assert_eq!(found, [("machine/softnet.cpu0.dropped", 1)]);
    }
}
