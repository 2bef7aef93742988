//! Who may read the sockets: the processes that have them open, and the threads of these that ran.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::IntoMap;
use rxpath_host::Root;
use rxpath_host::read::procfs::waits;
use rxpath_record::evidence::ThreadUse;

use super::groups::ReaderGroups;
use super::owners::{Owners, Waiters};
use super::reads::Readings;
use super::sockets::{Socket, busy};
use crate::observe::{Between, Ours, ThreadTime};

/// A thread that runs or waits for less than this share of the time reads no significant traffic: programs have others. Not
/// more: a reader that stalls runs little too, and left out it would leave the blame to the thread next to it.
const READS_RATIO: f64 = 0.005;
/// Processes whose threads are measured, at most.
pub(crate) const OWNERS: usize = 64;

/// Threads that are asked what they wait for, at most.
const ASKED: usize = 512;

/// Who waits now for the sockets that got nothing while others of their address and port drop: their readers have time.
pub(super) fn waiters(
    between: &Between,
    sockets: &BTreeMap<u32, Socket>,
    owners: &Owners,
    reads: Option<&Readings>,
) -> Waiters {
    let root = Root::host();
    // Unknown reads are none: an empty queue at each sample may be that of a quick reader.
    let Some(reads) = reads else { return Waiters::new() };
    let idle = |inode: &u32| !sockets[inode].was_used() && !reads.contains_key(inode);
    let idle: BTreeSet<u32> = busy(sockets).into_iter().filter(idle).collect();
    waiting(between, &idle, owners, |pid, tid| waits::sockets(&root, pid, tid).ok())
}

/// The same of these sockets, by what each thread of a process answers. That nobody waits for a socket is known only where each
/// thread of its owners has answered.
fn waiting(
    between: &Between,
    idle: &BTreeSet<u32>,
    owners: &Owners,
    ask: impl Fn(i32, i32) -> Option<BTreeSet<u32>>,
) -> Waiters {
    let pids: BTreeSet<i32> =
        idle.iter().filter_map(|inode| owners.get(inode)).flatten().copied().collect();
    let threads = between.threads.iter().filter(|(_, time)| pids.contains(&time.leader));
    let mut all = Waiters::new();
    let mut answers: BTreeMap<i32, bool> = BTreeMap::new();
    for (n, (tid, time)) in threads.enumerate() {
        let waits_for = if n < ASKED { ask(time.leader, *tid) } else { None };
        *answers.entry(time.leader).or_insert(true) &= waits_for.is_some();
        for inode in waits_for.unwrap_or_default().intersection(idle) {
            all.entry(*inode).or_default().insert(*tid);
        }
    }
    // A process without a thread here was not asked.
    let answered = |pid: &i32| answers.get(pid) == Some(&true);
    let by_all = |pids: &BTreeSet<i32>| !pids.is_empty() && pids.iter().all(answered);
    for inode in idle.iter().filter(|inode| owners.get(inode).is_some_and(by_all)) {
        all.entry(*inode).or_default();
    }
    all
}

/// Processes whose threads are measured: first those with sockets that something waits in or was dropped at, each once. And
/// how many there are in all, and of them.
pub(super) fn measured(sockets: &BTreeMap<u32, Socket>, owners: &Owners) -> (Ours, [usize; 2]) {
    let of = |used: bool| {
        let sockets = sockets.iter().filter(move |(_, socket)| socket.has_been_used() == used);
        sockets.filter_map(|(inode, _)| owners.get(inode)).flatten().copied()
    };
    let mut seen = BTreeSet::new();
    let all: Vec<i32> = of(true).chain(of(false)).filter(|pid| seen.insert(*pid)).collect();
    let ours = of_pids(all.iter().copied().take(OWNERS));
    let counts = [all.len(), ours.pids.len()];
    (ours, counts)
}

fn of_pids(pids: impl Iterator<Item = i32>) -> Ours {
    Ours { pids: pids.collect(), ..Ours::default() }
}

/// Threads that are known to have read these sockets, or to wait for one of their groups.
pub(super) fn known(
    inodes: &BTreeSet<u32>,
    reads: Option<&Readings>,
    waiters: &Waiters,
) -> BTreeSet<i32> {
    let by = |inode: &u32| reads.and_then(|reads| reads.get(inode));
    let read = inodes.iter().filter_map(by).flat_map(BTreeMap::keys);
    read.chain(waiters.values().flatten()).copied().collect()
}

/// Threads of the processes that have these sockets open and that ran, or wanted to: of each process the busiest at least.
/// And all that are known to read these sockets.
pub(super) fn readers(
    between: &Between,
    inodes: &BTreeSet<u32>,
    owners: &Owners,
    known: &BTreeSet<i32>,
    groups: &ReaderGroups,
) -> Vec<ThreadUse> {
    let pids: BTreeSet<i32> =
        inodes.iter().filter_map(|inode| owners.get(inode)).flatten().copied().collect();
    let window_ns = between.seconds().max(1e-9) * 1e9;
    let mut all = Vec::new();
    for pid in pids {
        let own = || between.threads.iter().filter(|(_, time)| time.leader == pid);
        let wanted = |time: &ThreadTime| time.run_ns + time.wait_ns;
        let most = own().map(|(_, time)| wanted(time)).max().unwrap_or(0);
        let least = most.min((READS_RATIO * window_ns) as u64);
        // Where none ran at all the process's first stands for them.
        let counts = |tid: i32, time: &ThreadTime| {
            known.contains(&tid) || if most == 0 { tid == pid } else { wanted(time) >= least }
        };
        all.extend(own().filter(|(tid, time)| counts(**tid, time)).map(|(tid, time)| ThreadUse {
            tid: *tid,
            name: time.name.clone(),
            seen_cpus: vec![time.last_cpu],
            running_ratio: time.run_ns as f64 / window_ns,
            waiting_ratio: time.wait_ns as f64 / window_ns,
            pid: Some(pid),
            halted: time.halted.or_else(|| groups.frozen(pid)),
            throttled: groups.throttled(pid, window_ns),
            ..ThreadUse::default()
        }));
    }
    all
}

/// Who had the sockets that were closed before their owners were looked up, as a program's that opens its socket again and
/// again: those whose threads read them, else those that have another socket of their address and port.
pub(super) fn of_closed(
    between: &Between,
    sockets: &BTreeMap<u32, Socket>,
    owners: &Owners,
    reads: Option<&Readings>,
) -> Owners {
    let known = |inode: &u32| owners.get(inode).is_some_and(|pids| !pids.is_empty());
    let mut by_address: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for (inode, socket) in sockets.iter().filter(|(inode, _)| known(inode)) {
        by_address.entry(&socket.local).or_default().extend(&owners[inode]);
    }
    let readers = |inode: &u32| -> BTreeSet<i32> {
        let tids = reads.and_then(|reads| reads.get(inode)).into_iter().flat_map(BTreeMap::keys);
        tids.filter_map(|tid| Some(between.threads.get(tid)?.leader)).collect()
    };
    let who = |(inode, socket): (&u32, &Socket)| {
        let pids = Some(readers(inode)).filter(|pids| !pids.is_empty());
        Some((*inode, pids.or_else(|| by_address.get(socket.local.as_str()).cloned())?))
    };
    sockets.iter().filter(|(inode, _)| !known(inode)).filter_map(who).into_map()
}

/// Processes that have TCP's sockets open, those first in whose connections most waits; so many at most.
pub(super) fn of_connections(inodes: &[u32], owners: &Owners) -> Ours {
    let mut seen = BTreeSet::new();
    let pids = inodes.iter().filter_map(|inode| owners.get(inode)).flatten().copied();
    of_pids(pids.filter(|pid| seen.insert(*pid)).take(OWNERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(threads: &[(i32, i32, u64)]) -> Between {
        let one = |(tid, leader, run_ns): &(i32, i32, u64)| {
            let name = format!("t{tid}");
            let time = ThreadTime {
                name,
                last_cpu: 0,
                run_ns: *run_ns,
                wait_ns: 0,
                leader: *leader,
                halted: None,
            };
            (*tid, time)
        };
        let window_ns = [0, 1_000_000_000];
        let threads = threads.iter().map(one).collect();
        Between { window_ns, threads, ..Between::default() }
    }

    #[test]
    fn a_reader_that_hardly_ran_is_measured_and_idle_threads_beside_a_busy_one_are_not() {
        let owners: Owners = [(1, BTreeSet::from([10])), (2, BTreeSet::from([20]))].into();
        let inodes = BTreeSet::from([1, 2]);
        let all = [(10, 10, 900_000_000), (11, 10, 6_000_000), (12, 10, 100_000), (20, 20, 1_000)];
        let found =
            readers(&between(&all), &inodes, &owners, &BTreeSet::new(), &ReaderGroups::default());
        let told: Vec<_> = found.iter().map(|thread| (thread.tid, thread.pid)).collect();
        assert_eq!(told, [(10, Some(10)), (11, Some(10)), (20, Some(20))]);
        assert!(
            readers(
                &between(&[(30, 30, 9)]),
                &inodes,
                &owners,
                &BTreeSet::new(),
                &ReaderGroups::default()
            )
            .is_empty()
        );
        // One that hardly ran, and is known to read.
        let reads: Readings = [(1, [(12, 40)].into())].into();
        let known = known(&inodes, Some(&reads), &Waiters::new());
        let found = readers(&between(&all), &inodes, &owners, &known, &ReaderGroups::default());
        assert_eq!(found.iter().map(|it| it.tid).collect::<Vec<_>>(), [10, 11, 12, 20]);
    }

    #[test]
    fn that_nobody_waits_is_known_only_where_each_thread_of_each_owner_answers() {
        let owned = [(1, [10].into()), (2, [20].into()), (3, [10, 20].into()), (4, [30].into())];
        let (owners, idle) = (Owners::from(owned), BTreeSet::from([1, 2, 3, 4, 5]));
        let between = between(&[(10, 10, 9), (11, 10, 9), (20, 20, 9), (21, 20, 9)]);
        // One of the two that thread 11 waits for is none of these.
        let answer = |tid| match tid {
            11 => Some(BTreeSet::from([1, 9])),
            21 => None,
            _ => Some(BTreeSet::new()),
        };
        // Of process 20 a thread does not answer, of 30 none is known, and nobody is known to own socket 5.
        let found = waiting(&between, &idle, &owners, |_, tid| answer(tid));
        assert_eq!(found, [(1, [11].into())].into());
        let all_answer = |_: i32, tid: i32| answer(tid).or(Some(BTreeSet::from([2])));
        let found = waiting(&between, &idle, &owners, all_answer);
        assert_eq!(found, [(1, [11].into()), (2, [21].into()), (3, BTreeSet::new())].into());
    }

    #[test]
    fn a_thread_over_the_bound_was_not_asked() {
        let owners: Owners = [(1, [1].into())].into();
        let nobody = |threads: usize| {
            let threads: Vec<_> = (1..=threads as i32).map(|tid| (tid, 1, 9)).collect();
            waiting(&between(&threads), &[1].into(), &owners, |_, _| Some(BTreeSet::new()))
        };
        assert_eq!(nobody(ASKED), [(1, BTreeSet::new())].into());
        assert_eq!(nobody(ASKED + 1), Waiters::new());
    }

    #[test]
    fn a_socket_that_was_closed_belongs_to_its_reader_or_to_who_has_its_address() {
        let socket = |local: &str| Socket { local: local.into(), ..Socket::default() };
        let sockets: BTreeMap<u32, Socket> = [
            (1, socket("10.0.0.1:53")),
            (2, socket("10.0.0.1:53")),
            (3, socket("10.0.0.1:54")),
            (4, socket("10.0.0.1:55")),
        ]
        .into();
        let owners: Owners = [(1, [10].into()), (2, BTreeSet::new())].into();
        let reads: Readings = [(3, [(21, 5)].into())].into();
        let between = between(&[(10, 10, 1), (20, 20, 1), (21, 20, 1)]);
        let found = of_closed(&between, &sockets, &owners, Some(&reads));
        assert_eq!(found, [(2, [10].into()), (3, [20].into())].into());
        assert_eq!(of_closed(&between, &sockets, &owners, None), [(2, [10].into())].into());
    }

    #[test]
    fn a_process_of_many_sockets_counts_once_and_those_that_drop_come_first() {
        let used = Socket { drops: [0, 9], ..Socket::default() };
        let mut sockets: BTreeMap<u32, Socket> =
            (1..=500).map(|inode| (inode, Socket::default())).collect();
        sockets.insert(1_000, used);
        // One process has 64 sockets and more; the one that drops has the last of them.
        let mut owners: Owners = (1..=100).map(|inode| (inode, BTreeSet::from([7]))).collect();
        owners.extend((101..=500).map(|inode| (inode, BTreeSet::from([inode as i32]))));
        owners.insert(1_000, BTreeSet::from([9_999]));
        let (ours, counts) = measured(&sockets, &owners);
        assert_eq!((&ours.pids[..2], counts), (&[9_999, 7][..], [402, OWNERS]));
        let few: Owners = owners.into_iter().filter(|(inode, _)| *inode <= 100).collect();
        assert_eq!(measured(&sockets, &few).0.pids, [7]);
    }
}
