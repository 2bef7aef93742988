//! What of two readings of the probes is the window: rows less those of the reading before, each by what makes it the same.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rxpath_bpf::account::Reading;
use rxpath_bpf::account::row::PF_KTHREAD;
use rxpath_bpf::drops::SkbDrop;
use rxpath_bpf::polls::{CpuPolls, PollsReading};
use rxpath_core::measured::NapiPolls;
use rxpath_core::number::grouped;
use rxpath_core::{IntoMap, Log2, SortFew};

use crate::watch::drops::MOST_ROWS;

/// Kinds of drops with a row of their own; the rest is added up over ports and sockets.
const KEPT: usize = MOST_ROWS / 2;
/// Such sums; the rest of them is one.
const SUMS: usize = MOST_ROWS / 4;
/// The place of what is known by its number alone.
const ELSEWHERE: &str = "other places";
/// And its reason.
const OTHER: &str = "other";
/// A CPU whose window is so many times as long as it may be was offline for a while.
const AWAY: f64 = 2.0;
/// The warning of a reading without such a CPU.
const CPU_NOT_READ: &str = "cpu-not-read";

/// What makes two drops the same: everything that the kernel's table is keyed by (`struct drop_key` of the probe), and
/// whether it is the sum of many: such a sum has port 0, as have packets without ports.
pub(super) type DropKey = ((String, String, String), (u32, u32, u16, u64, bool));

fn key_of_drop(drop: &SkbDrop) -> DropKey {
    let words = (drop.place.clone(), drop.reason.clone(), drop.protocol.clone());
    (words, (drop.ifindex, drop.netns, drop.port, drop.socket_inode, drop.folded))
}

/// Drops of one key so far: those that were counted, and about as many as there were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dropped {
    counted: u64,
    total: f64,
}

/// What each kind of drop grew by since the reading before, with its total. Each that was counted stands for so many. The
/// [`KEPT`] that grew most, and the sums of all others.
pub(super) fn dropped(
    before: &mut HashMap<DropKey, Dropped>,
    read: Vec<SkbDrop>,
    factor: f64,
) -> Vec<(SkbDrop, u64)> {
    let mut found: Vec<(DropKey, SkbDrop)> = Vec::new();
    let mut places: HashMap<DropKey, usize> = HashMap::new();
    for drop in read {
        let key = key_of_drop(&drop);
        // Two instructions may have one name (functions of that name in two files): their drops are one row here.
        if let Some(at) = places.get(&key) {
            found[*at].1.packets += drop.packets;
            continue;
        }
        places.insert(key.clone(), found.len());
        found.push((key, drop));
    }
    // A row that was forgotten begins again.
    before.retain(|key, _| places.contains_key(key));
    let rows = found.into_iter().map(|(key, drop)| {
        let counted = drop.packets;
        let old = before.get(&key).copied().filter(|old| old.counted <= counted);
        let old = old.unwrap_or_default();
        let packets = counted - old.counted;
        let total = old.total + packets as f64 * factor;
        before.insert(key, Dropped { counted, total });
        (SkbDrop { packets, ..drop }, total.round() as u64)
    });
    let mut rows: Vec<(SkbDrop, u64)> = rows.collect();
    rows.sort_few_by(|(a, a_total), (b, b_total)| {
        b.packets.cmp(&a.packets).then(b_total.cmp(a_total))
    });
    if rows.len() > KEPT {
        let rest = rows.split_off(KEPT);
        rows.extend(summed(rest));
    }
    rows.shrink_to_fit();
    rows
}

/// Drops without a row of their own, without port and socket: a sender chooses ports, and must not hide how much is dropped.
fn summed(rest: Vec<(SkbDrop, u64)>) -> Vec<(SkbDrop, u64)> {
    let mut sums: HashMap<DropKey, (SkbDrop, u64)> = HashMap::new();
    for (one, total) in rest {
        let packets = one.packets;
        let (processes, folded) = (Vec::new(), true);
        let mut row = SkbDrop { port: 0, socket_inode: 0, packets: 0, processes, folded, ..one };
        if sums.len() >= SUMS && !sums.contains_key(&key_of_drop(&row)) {
            row = without_room(0);
        }
        let (sum, sum_total) = sums.entry(key_of_drop(&row)).or_insert((row, 0));
        sum.packets += packets;
        *sum_total += total;
    }
    let mut sums: Vec<(SkbDrop, u64)> = sums.into_values().collect();
    sums.sort_few_by_key(|(sum, _)| std::cmp::Reverse(sum.packets));
    sums
}

/// Packets that found no room in the probe's tables, or among these sums: their number alone is known.
pub(super) fn without_room(packets: u64) -> SkbDrop {
    let (place, reason) = (ELSEWHERE.into(), OTHER.into());
    SkbDrop { place, reason, packets, folded: true, ..SkbDrop::default() }
}

pub(super) fn since(now: &Log2, before: Option<&Log2>) -> Log2 {
    let Some(before) = before else { return now.clone() };
    let old = before.buckets.iter().chain(std::iter::repeat(&0));
    let buckets: Vec<u64> =
        now.buckets.iter().zip(old).map(|(now, old)| now.saturating_sub(*old)).collect();
    Log2::with_steps(&buckets, now.step_bits)
}

/// The length of a sample from the windows of the CPUs: that of the longest. One that was offline and is back has a window of
/// all that time, which is no sample's, and is much longer than one may be.
pub(super) fn length(windows_s: impl Iterator<Item = f64> + Clone, most_s: f64) -> f64 {
    let usual = windows_s.clone().filter(|window_s| *window_s <= AWAY * most_s);
    let usual_s = usual.fold(0.0, f64::max);
    if usual_s > 0.0 { usual_s } else { windows_s.fold(0.0, f64::max) }
}

/// How long the window of a CPU may be in a sample of so much counted time in that whole time. About what was counted, where
/// a CPU could not be read in this reading or the one before. Without such a CPU a window may be longer: the reader was kept
/// from its CPU between asking one and the next.
pub(super) fn longest_s(readings: [&Reading; 2], (counted_s, whole_s): (f64, f64)) -> f64 {
    let mut warnings = readings.into_iter().flat_map(|reading| &reading.warnings);
    let is_one_away = warnings.any(|warning| warning.code == CPU_NOT_READ);
    if is_one_away { counted_s } else { counted_s.max(whole_s) }
}

/// That so many found no room, in these words; none for nothing.
pub(super) fn no_room(lost: u64, what: &str) -> Option<String> {
    (lost > 0).then(|| format!("{} {what}", grouped(lost)))
}

/// The task that used most of each CPU, the idle task left out.
pub(super) fn busiest(window: &Reading) -> BTreeMap<u32, String> {
    let mut most: BTreeMap<u32, (u64, String)> = BTreeMap::new();
    for row in window.tasks.iter().filter(|row| row.key.pid != 0) {
        let found = most.entry(row.key.cpu).or_default();
        if row.charge.on_cpu_ns > found.0 {
            *found = (row.charge.on_cpu_ns, format!("{} ({})", row.comm, row.key.pid));
        }
    }
    most.into_iter().map(|(cpu, (_, name))| (cpu, name)).into_map()
}

/// A NAPI that polls in a thread of its own (`napi/DEV-ID`, net/core/dev.c `napi_kthread_create`) is in no softirq.
pub(in crate::watch) const NAPI_THREAD: &str = "napi/";

pub(super) fn napi_threads(window: &Reading) -> BTreeMap<u32, u64> {
    let mut ran = BTreeMap::new();
    let threads = window.tasks.iter().filter(|row| row.flags & PF_KTHREAD != 0);
    for row in threads.filter(|row| row.comm.starts_with(NAPI_THREAD)) {
        let own_ns = row.charge.on_cpu_ns.saturating_sub(row.charge.interrupted_ns());
        *ran.entry(row.key.cpu).or_default() += own_ns;
    }
    ran
}

/// The row of a CPU in the reading before.
fn earlier(before: &[CpuPolls], cpu: u32) -> Option<&CpuPolls> {
    before.iter().find(|old| old.cpu == cpu)
}

pub(super) fn net_rx(now: &[CpuPolls], before: &[CpuPolls]) -> BTreeMap<u32, (u64, u64)> {
    let one = |cpu: &CpuPolls| {
        let (runs, ns) = cpu.net_rx();
        let (runs_before, ns_before) = earlier(before, cpu.cpu).map_or((0, 0), CpuPolls::net_rx);
        (cpu.cpu, (runs.saturating_sub(runs_before), ns.saturating_sub(ns_before)))
    };
    now.iter().map(one).into_map()
}

/// NET_TX of all CPUs, in ns.
pub(super) fn net_tx_ns(now: &[CpuPolls], before: &[CpuPolls]) -> u64 {
    let one = |cpu: &CpuPolls| {
        let ns_before = earlier(before, cpu.cpu).map_or(0, CpuPolls::net_tx_ns);
        cpu.net_tx_ns().saturating_sub(ns_before)
    };
    now.iter().map(one).sum()
}

/// What makes two rows of polls the same: NAPI, device, network namespace and CPU.
fn key_of(napi: &NapiPolls) -> (u32, u32, u32, u32) {
    (napi.napi_id, napi.ifindex, napi.netns, napi.cpu)
}

/// A reading with the rows that an earlier one has of CPUs that are gone: the kernel keeps their counts, and once such a CPU
/// is back all of them would be new.
pub(super) fn with_gone(mut now: PollsReading, before: PollsReading) -> PollsReading {
    let here: BTreeSet<u32> = now.cpus.iter().map(|cpu| cpu.cpu).collect();
    let known: HashSet<_> = now.napis.iter().map(key_of).collect();
    now.cpus.extend(before.cpus.into_iter().filter(|old| !here.contains(&old.cpu)));
    let is_gone = |old: &NapiPolls| !here.contains(&old.cpu) && !known.contains(&key_of(old));
    now.napis.extend(before.napis.into_iter().filter(is_gone));
    now
}

pub(super) fn napis(now: &[NapiPolls], before: &[NapiPolls]) -> Vec<NapiPolls> {
    let old: HashMap<_, &NapiPolls> = before.iter().map(|napi| (key_of(napi), napi)).collect();
    let one = |napi: &NapiPolls| {
        let before = old.get(&key_of(napi)).copied();
        let less = |pick: fn(&NapiPolls) -> u64| pick(napi).saturating_sub(before.map_or(0, pick));
        NapiPolls {
            polls_count: less(|napi| napi.polls_count),
            packets: less(|napi| napi.packets),
            exhausted_count: less(|napi| napi.exhausted_count),
            poll_ns: less(|napi| napi.poll_ns),
            packets_per_poll: since(
                &napi.packets_per_poll,
                before.map(|old| &old.packets_per_poll),
            ),
            ..napi.clone()
        }
    };
    now.iter().map(one).filter(|napi| napi.polls_count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_bpf::account::row::{Charge, ChargedTask, TaskKey};
    use rxpath_bpf::polls::SoftirqRuns;

    #[test]
    fn drops_that_differ_in_one_part_of_the_kernels_key_are_two_rows() {
        let base = SkbDrop { place: "f+0x1".into(), reason: "R".into(), ..SkbDrop::default() };
        let variants = [
            SkbDrop { protocol: "ipv6".into(), ..base.clone() },
            SkbDrop { protocol: "ip".into(), ..base.clone() },
            SkbDrop { socket_inode: 9, ..base.clone() },
            SkbDrop { netns: 9, ..base.clone() },
            SkbDrop { ifindex: 9, ..base.clone() },
            SkbDrop { port: 9, ..base.clone() },
            SkbDrop { folded: true, ..base.clone() },
            SkbDrop { reason: "S".into(), ..base },
        ];
        let read = |add: u64| -> Vec<SkbDrop> {
            let counted = variants.iter().zip(1..);
            counted.map(|(drop, n)| SkbDrop { packets: 100 * n + add, ..drop.clone() }).collect()
        };
        let mut before = HashMap::new();
        dropped(&mut before, read(0), 1.0);
        let second: Vec<u64> =
            dropped(&mut before, read(0), 1.0).iter().map(|(drop, _)| drop.packets).collect();
        assert_eq!(second, [0; 8], "nothing was dropped in between");
        let third = dropped(&mut before, read(5), 1.0);
        assert!(third.iter().all(|(drop, _)| drop.packets == 5), "{third:?}");
        assert_eq!(third[2].1, 605, "the most first");
    }

    #[test]
    fn of_many_ports_those_that_dropped_most_are_rows() {
        let port = |port: u16| SkbDrop { port, packets: u64::from(port), ..SkbDrop::default() };
        let mut before = HashMap::new();
        let rows = dropped(&mut before, (1..1000).map(port).collect(), 1.0);
        assert_eq!((rows.len(), rows[0].0.port), (KEPT + 1, 999));
        let all: u64 = rows.iter().map(|(drop, _)| drop.packets).sum();
        assert_eq!(all, (1..1000).sum::<u64>(), "the rest is added up: {:?}", rows.last());
        let rows = dropped(&mut before, (1..1000).map(port).collect(), 1.0);
        assert_eq!(rows[0].0.packets, 0, "those left out are remembered");
    }

    #[test]
    fn of_many_reasons_the_least_are_one_row_and_no_packet_is_missing() {
        let one = |n: u64| {
            let port = n as u16;
            SkbDrop { reason: format!("R{n}"), port, packets: n, ..SkbDrop::default() }
        };
        let rows = dropped(&mut HashMap::new(), (1..1000).map(one).collect(), 2.0);
        assert_eq!(rows.len(), KEPT + SUMS + 1);
        let sums = rows.iter().fold((0, 0), |(a, b), (drop, total)| (a + drop.packets, b + total));
        let all = (1..1000).sum::<u64>();
        assert_eq!(sums, (all, 2 * all));
        let other: Vec<_> = rows.iter().filter(|(drop, _)| drop.reason == OTHER).collect();
        assert!(other.len() == 1 && other[0].0.folded && other[0].0.port == 0, "{other:?}");
    }

    #[test]
    fn a_row_that_was_forgotten_begins_anew() {
        let drop = |packets| SkbDrop { place: "f+0x1".into(), packets, ..SkbDrop::default() };
        let mut before = HashMap::new();
        dropped(&mut before, vec![drop(100)], 1.0);
        assert!(dropped(&mut before, Vec::new(), 1.0).is_empty() && before.is_empty());
        let again = dropped(&mut before, vec![drop(7)], 1.0);
        assert_eq!((again[0].0.packets, again[0].1), (7, 7));
        // Forgotten and there again from one reading to the next.
        let less = dropped(&mut before, vec![drop(3)], 1.0);
        assert_eq!((less[0].0.packets, less[0].1), (3, 3));
    }

    #[test]
    fn the_window_of_a_cpu_that_was_away_is_not_that_of_the_sample() {
        let of = |windows: &[f64], counted| length(windows.iter().copied(), counted);
        for (windows, counted_s, right) in [
            (vec![10.0, 10.1], 10.0, 10.1),
            // Away for five minutes; gone, at the last reading or at the end of a turn.
            (vec![10.0, 300.0], 10.0, 10.0),
            (vec![10.0, 0.0], 10.0, 10.0),
            (vec![0.1, 0.03], 0.1, 0.1),
            // The reader itself was kept from its CPU: all windows are longer.
            (vec![0.03, 0.025], 0.01, 0.03),
            (vec![], 0.01, 0.0),
        ] {
            assert!((of(&windows, counted_s) - right).abs() < 1e-12, "{windows:?} {counted_s}");
        }
    }

    #[test]
    fn without_a_cpu_that_was_away_a_window_may_be_as_long_as_the_sample() {
        let away = Reading {
            warnings: vec![rxpath_core::Warning::new(CPU_NOT_READ, "CPU 1")],
            ..Reading::default()
        };
        let all = Reading::default();
        for (readings, most_s) in [([&all, &all], 10.0), ([&away, &all], 0.1), ([&all, &away], 0.1)]
        {
            assert!((longest_s(readings, (0.1, 10.0)) - most_s).abs() < 1e-12);
        }
    }

    #[test]
    fn a_cpu_that_went_and_came_back_adds_nothing_twice() {
        let napi = |cpu, polls_count| NapiPolls { cpu, polls_count, ..NapiPolls::default() };
        let reading = |cpus: &[(u32, u64)]| PollsReading {
            cpus: cpus
                .iter()
                .map(|(cpu, _)| CpuPolls { cpu: *cpu, ..CpuPolls::default() })
                .collect(),
            napis: cpus.iter().map(|(cpu, polls)| napi(*cpu, *polls)).collect(),
            ..PollsReading::default()
        };
        let gone = with_gone(reading(&[(0, 20)]), reading(&[(0, 10), (1, 100)]));
        assert_eq!((gone.cpus.len(), gone.napis.len()), (2, 2));
        let back = napis(&reading(&[(0, 20), (1, 103)]).napis, &gone.napis);
        assert_eq!(
            back.iter().map(|napi| (napi.cpu, napi.polls_count)).collect::<Vec<_>>(),
            [(1, 3)]
        );
        // The kernel's table has rows of a CPU that is gone: the newer one counts.
        let now = PollsReading { napis: vec![napi(1, 104)], ..PollsReading::default() };
        assert_eq!(with_gone(now, reading(&[(1, 103)])).napis, [napi(1, 104)]);
    }

    #[test]
    fn softirqs_of_a_window_are_those_since_the_reading_before() {
        let cpu = |cpu, [sent_ns, received_ns]: [u64; 2]| {
            let runs = |ns| SoftirqRuns { runs_count: ns / 10, ns, ..SoftirqRuns::default() };
            let softirqs = [0, 0, sent_ns, received_ns].map(runs).into();
            CpuPolls { cpu, softirqs, ..CpuPolls::default() }
        };
        // CPU 0 is gone, CPU 2 came.
        let before = [cpu(0, [500, 900]), cpu(1, [100, 200])];
        let now = [cpu(1, [130, 250]), cpu(2, [7, 40])];
        assert_eq!(net_tx_ns(&now, &before), 37);
        assert_eq!(net_rx(&now, &before), [(1, (5, 50)), (2, (4, 40))].into());
    }

    #[test]
    fn what_found_no_room_is_counted_and_nothing_is_no_gap() {
        assert_eq!(no_room(0, "slices"), None);
        assert_eq!(no_room(1_234, "slices").as_deref(), Some("1,234 slices"));
    }

    #[test]
    fn drops_of_a_part_of_the_time_stand_for_all_of_it() {
        let drop = |packets| SkbDrop { place: "f+0x1".into(), packets, ..SkbDrop::default() };
        let mut before = HashMap::new();
        dropped(&mut before, vec![drop(100)], 1.0);
        let sampled = dropped(&mut before, vec![drop(107)], 50.0);
        assert_eq!((sampled[0].0.packets, sampled[0].1), (7, 450));
        let all = dropped(&mut before, vec![drop(110)], 1.0);
        assert_eq!((all[0].0.packets, all[0].1), (3, 453));
    }

    #[test]
    fn napi_threads_are_known_by_their_name_and_by_being_the_kernels() {
        let row = |pid: u32, comm: &str, flags: u32, cpu: u32| ChargedTask {
            key: TaskKey { start_ns: 1, pid, cpu },
            charge: Charge { on_cpu_ns: 100, hardirq_ns: 10, net_rx_ns: 20, ..Charge::default() },
            tgid: pid,
            parent: 2,
            flags,
            comm: comm.into(),
            cgroup: 0,
            first_ns: 0,
            last_ns: 0,
        };
        let window = Reading {
            tasks: vec![
                row(7, "napi/veth-8193", PF_KTHREAD, 0),
                row(8, "napi/veth-8194", PF_KTHREAD, 0),
                row(7, "napi/veth-8193", PF_KTHREAD, 1),
                row(9, "napi/fake", 0, 1),
                row(10, "ksoftirqd/1", PF_KTHREAD, 1),
            ],
            ..Reading::default()
        };
        assert_eq!(napi_threads(&window), [(0, 140), (1, 70)].into());
    }

    #[test]
    fn two_places_of_one_name_are_added() {
        let drop = SkbDrop { place: "f+0x1".into(), packets: 3, ..SkbDrop::default() };
        let mut before = HashMap::new();
        let first = dropped(&mut before, vec![drop.clone(), drop], 1.0);
        assert_eq!((first.len(), first[0].0.packets, first[0].1), (1, 6, 6));
    }

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let poll = |polls_count, packets| NapiPolls {
            napi_id: 7,
            polls_count,
            packets,
            packets_per_poll: Log2::of(&[0, polls_count]),
            ..NapiPolls::default()
        };
        let seen = napis(&[poll(12, 100)], &[poll(10, 40)]);
        assert_eq!((seen[0].polls_count, seen[0].packets), (2, 60));
        assert_eq!(seen[0].packets_per_poll.count(), 2);
        assert!(napis(&[poll(10, 40)], &[poll(10, 40)]).is_empty(), "nothing was polled");
        assert_eq!(since(&Log2::of(&[1, 5, 2]), Some(&Log2::of(&[1, 2]))), Log2::of(&[0, 3, 2]));
    }
}
