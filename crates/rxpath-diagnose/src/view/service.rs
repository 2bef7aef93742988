//! The judged service of a watched host: the sockets of one address and port, and their owners.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::SortFew;
use rxpath_record::evidence::{SocketOwner, SocketUse, ThreadUse, WindowEvidence};

use super::side::{ThreadSaturation, lead};
use crate::thresholds::MOST_OF_LOSS_RATIO;
use crate::wording::{count, percent};

/// The sockets of one local address and port.
#[derive(Clone, Debug)]
pub struct Service<'a> {
    /// Address and port.
    pub local: &'a str,
    /// Its sockets, by index.
    pub sockets: Vec<&'a SocketUse>,
}

impl<'a> Service<'a> {
    /// Dropped at all its sockets.
    pub fn drops(&self) -> u64 {
        self.sockets.iter().fold(0, |sum, socket| sum.saturating_add(socket.drops_packets))
    }

    /// The socket that drops most, if at least half of the drops are its own and no thread read from it, where watched.
    pub fn unread(&self) -> Option<&'a SocketUse> {
        let worst =
            self.sockets.iter().copied().max_by_key(|s| (s.drops_packets, Reverse(s.index)))?;
        let nobody = worst.readers.as_ref().is_some_and(Vec::is_empty);
        let most = worst.drops_packets as f64 >= MOST_OF_LOSS_RATIO * self.drops() as f64;
        let waits = worst.waiters.as_ref().is_some_and(|waiters| !waiters.is_empty());
        (nobody && worst.delivered_packets == 0 && !waits && most).then_some(worst)
    }

    /// Its owners, each once.
    pub fn owners(&self) -> BTreeSet<&'a SocketOwner> {
        self.sockets.iter().flat_map(|socket| &socket.owners).collect()
    }

    /// `0.0.0.0:53 of named (812)`.
    pub fn name(&self) -> String {
        let owners: Vec<String> =
            self.owners().iter().map(|owner| format!("{} ({})", owner.name, owner.pid)).collect();
        match owners.as_slice() {
            [] => format!("{}, whose process is not known", self.local),
            [one] => format!("{} of {one}", self.local),
            [first, rest @ ..] => {
                format!("{} of {first} and {} more", self.local, count(rest.len() as u64))
            }
        }
    }
}

/// The services that dropped packets, the one that dropped most first; none in a trial, which has one service.
pub fn that_dropped(evidence: &WindowEvidence) -> Vec<Service<'_>> {
    if !evidence.watched {
        return Vec::new();
    }
    let mut by_local: BTreeMap<&str, Vec<&SocketUse>> = BTreeMap::new();
    for socket in evidence.sockets.iter().filter(|socket| !socket.local.is_empty()) {
        by_local.entry(&socket.local).or_default().push(socket);
    }
    let all = by_local.into_iter().map(|(local, mut sockets)| {
        sockets.sort_few_by_key(|socket| socket.index);
        Service { local, sockets }
    });
    let mut dropping: Vec<Service> = all.filter(|service| service.drops() > 0).collect();
    // A stable sort: equal ones stay in the order of their addresses.
    dropping.sort_few_by_key(|service| std::cmp::Reverse(service.drops()));
    dropping
}

/// Threads that read from these sockets in the window, or would have; `None` if nothing watched.
fn known<'a>(sockets: impl Iterator<Item = &'a SocketUse>) -> Option<BTreeSet<i32>> {
    let mut all = BTreeSet::new();
    for socket in sockets {
        all.extend(socket.readers.as_ref()?);
        all.extend(socket.waiters.iter().flatten());
    }
    Some(all)
}

/// The owners' threads of a socket that no thread read, without those that read another socket of the service.
fn of_unread<'a>(evidence: &'a WindowEvidence, service: &Service<'_>) -> Vec<&'a ThreadUse> {
    let Some(unread) = service.unread() else { return Vec::new() };
    let busy = known(service.sockets.iter().copied()).unwrap_or_default();
    let owns = |thread: &&ThreadUse| {
        let owner = unread.owners.iter().any(|owner| Some(owner.pid) == thread.pid);
        owner && !busy.contains(&thread.tid)
    };
    evidence.receiver_threads.iter().filter(owns).collect()
}

/// Threads that may read a service's sockets. If no thread read the relevant socket: those that could; else those known
/// to read; else its owners' threads and those of unknown processes.
pub fn readers<'a>(
    evidence: &'a WindowEvidence,
    service: Option<&Service<'_>>,
) -> Vec<&'a ThreadUse> {
    let could = service.map_or_else(Vec::new, |service| of_unread(evidence, service));
    if !could.is_empty() {
        return could;
    }
    let read = match service {
        Some(service) => known(service.sockets.iter().copied()),
        None => known(evidence.sockets.iter()),
    };
    if let Some(read) = read.filter(|read| !read.is_empty()) {
        return evidence.receiver_threads.iter().filter(|it| read.contains(&it.tid)).collect();
    }
    let owns = |thread: &ThreadUse| match (service, thread.pid) {
        (Some(service), Some(pid)) => service.owners().iter().any(|owner| owner.pid == pid),
        _ => true,
    };
    evidence.receiver_threads.iter().filter(|thread| owns(thread)).collect()
}

/// A process with more active threads than sockets of the service, if it is unknown which threads read.
#[derive(Clone, Debug)]
pub struct Unsure {
    /// Which threads, in words.
    pub text: String,
    /// Whether the threads' times contradict each other: one is full, another has time left.
    pub differ: bool,
}

/// Known reading threads that were not measured.
fn unmeasured(threads: &[&ThreadUse], read: &BTreeSet<i32>) -> Option<Unsure> {
    let without = read.iter().filter(|tid| threads.iter().all(|thread| thread.tid != **tid));
    let without = without.count() as u64;
    (without > 0).then(|| Unsure {
        text: format!(
            "CPU time of {} of the {} threads that read",
            count(without),
            count(read.len() as u64)
        ),
        differ: false,
    })
}

/// The process whose readers are least certain, when there is one.
pub fn unsure(threads: &[&ThreadUse], sockets: &[&SocketUse]) -> Option<Unsure> {
    if let Some(read) = known(sockets.iter().copied()) {
        // None of them reads: they own the socket that no thread reads.
        let reads = threads.iter().any(|thread| read.contains(&thread.tid));
        return if reads || threads.is_empty() { unmeasured(threads, &read) } else { None };
    }
    let mut by_pid: BTreeMap<i32, Vec<&ThreadUse>> = BTreeMap::new();
    for thread in threads {
        by_pid.entry(thread.pid?).or_default().push(thread);
    }
    let held = |pid: i32| {
        let of = |socket: &&&SocketUse| socket.owners.iter().any(|owner| owner.pid == pid);
        sockets.iter().filter(of).count()
    };
    let more = by_pid.into_iter().filter(|(pid, threads)| threads.len() > held(*pid));
    let (pid, mut threads) = more.max_by_key(|(pid, threads)| (threads.len(), -pid))?;
    threads.sort_few_by_key(|thread| thread.tid);
    let paces: Vec<ThreadSaturation> = threads.iter().map(|thread| lead(thread).pace()).collect();
    let each = threads.iter().map(|thread| {
        let lead = lead(thread);
        format!("{} ({}) {}", lead.name, lead.tid, percent(lead.demand()))
    });
    let sockets = held(pid);
    let text = format!(
        "which threads read: process {pid} has {} busy threads and {} of these sockets; any of {} of the window might not be a reader",
        count(threads.len() as u64),
        count(sockets as u64),
        each.collect::<Vec<_>>().join(", "),
    );
    Some(Unsure { text, differ: paces.iter().any(|pace| *pace != paces[0]) })
}
