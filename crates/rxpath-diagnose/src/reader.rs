//! Why a socket's queue overflows: what the socket rules ask of the evidence.

use rxpath_record::evidence::{ContendedLock, SocketUse};
use rxpath_record::ledger::Place;

use crate::thresholds::{
    ALWAYS_FULL_RATIO, FULL_RATIO, LIVELOCK_DELIVERED_RATIO, LIVELOCK_SOFTIRQ_RATIO, LOCK_RATIO,
    MOST_OF_LOSS_RATIO, QUEUE_SAMPLES, SPARE_RATIO, UNEVEN_FACTOR, WAITING_RATIO,
};
use crate::view::{Lead, View, sound_ratio};

/// Whether the reader's waiting for a CPU explains most of the loss. If it always had work, the lost reads are those of
/// its waiting time beyond its running time. If it also slept, the longer of the two times counts.
pub fn is_kept_waiting(view: &View) -> bool {
    let Lead { running, waiting, .. } = view.reader.lead;
    if waiting < WAITING_RATIO {
        return false;
    }
    let demand = view.reader.lead.demand();
    if demand < FULL_RATIO {
        return waiting >= 1.0 - demand;
    }
    // It hardly ran: this does not show how fast it reads.
    if running < WAITING_RATIO {
        return true;
    }
    let more = view.raw.ledger.delivered_packets as f64 * waiting / running.max(f64::MIN_POSITIVE);
    more >= MOST_OF_LOSS_RATIO * view.lost_at(Place::SocketBuffer) as f64
}

/// Whether no thread read from the socket that drops most: watched directly, or none of them ran on a live host.
pub fn is_unread(view: &View) -> bool {
    let watched = view.services.first().is_some_and(|service| service.unread().is_some());
    let ran = view.reader.lead.demand() > 0.0;
    watched || (view.raw.watched && !ran && is_always_full(view))
}

/// Whether the socket that drops most was full on average: no burst is that long, and a larger buffer does not help.
pub fn is_always_full(view: &View) -> bool {
    view.sockets.iter().max_by_key(|socket| socket.drops_packets).is_some_and(|socket| {
        socket.samples >= QUEUE_SAMPLES
            && socket.queue_mean_bytes >= ALWAYS_FULL_RATIO * socket.rcvbuf_bytes as f64
    })
}

/// The reader's CPU and the share of it that softirqs use, if they fill it.
pub fn livelocked(view: &View) -> Option<(u32, f64)> {
    let cpu = view.softirq_on_reader()?;
    let softirq = view.softirq_ratio(cpu)?;
    let owned = softirq >= LIVELOCK_SOFTIRQ_RATIO;
    let starved = view.delivered_pps() <= LIVELOCK_DELIVERED_RATIO * view.offered_pps();
    (owned && starved && view.offered_pps() > 0.0).then_some((cpu, softirq))
}

/// Whether the threads contend for their socket: either waits for its lock were measured, or nothing watched the lock
/// and all the threads are known to read.
pub fn share_it(view: &View) -> bool {
    let watched = view.raw.probed.as_ref().is_some_and(|probed| probed.locks.is_some());
    lock_wait(view).is_some() || (!watched && view.unsure.is_none())
}

/// The lock of a shared socket with the longest waits: the longest wait of a reader, as a share of the window.
pub fn lock_wait<'a>(view: &View<'a>) -> Option<(&'a ContendedLock, f64)> {
    let locks = view.raw.probed.iter().filter_map(|probed| probed.locks.as_ref()).flatten();
    let longest = |lock: &ContendedLock| {
        let waits = lock.readers.iter().map(|reader| sound_ratio(reader.waited_ratio));
        waits.fold(0.0, f64::max)
    };
    let worst = locks.map(|lock| (lock, longest(lock))).max_by(|a, b| {
        (a.1.total_cmp(&b.1))
            .then(a.0.waits_count.cmp(&b.0.waits_count))
            .then(b.0.lock.cmp(&a.0.lock))
    });
    worst.filter(|(_, waited)| *waited >= LOCK_RATIO)
}

/// A socket that uneven distribution overloads.
#[derive(Clone, Copy, Debug)]
pub struct OverloadedSocket {
    /// Its index.
    pub index: u32,
    /// Its share of all arrivals.
    pub share: f64,
    /// Who could read what it drops.
    pub others: OtherReaders,
}

/// The readers of the other sockets of an overloaded one's group.
#[derive(Clone, Copy, Debug)]
pub enum OtherReaders {
    /// One has time left.
    HaveTime,
    /// Those of so many sockets are not known. These sockets got nothing, and who waits for them could not be asked.
    Unknown(u64),
}

/// The most loaded socket, if uneven distribution overloads it.
pub fn uneven(view: &View) -> Option<OverloadedSocket> {
    if view.sockets.len() < 2 {
        return None;
    }
    // Without counts per socket, only the drops are known. The socket of the slowest reader has most drops, however
    // even the distribution is.
    if view.sockets.iter().all(|socket| socket.delivered_packets == 0) {
        return None;
    }
    let load = |socket: &SocketUse| socket.delivered_packets.saturating_add(socket.drops_packets);
    let all: f64 = view.sockets.iter().map(|socket| load(socket) as f64).sum();
    // Of equals the first.
    let most = view.sockets.iter().rev().max_by_key(|socket| load(socket))?;
    let share = load(most) as f64 / all;
    let fair = 1.0 / view.sockets.len() as f64;
    if most.drops_packets == 0 || share < UNEVEN_FACTOR * fair {
        return None;
    }
    let others = if view.reader.least_demand < SPARE_RATIO {
        OtherReaders::HaveTime
    } else {
        OtherReaders::Unknown(unasked(view, most)?)
    };
    Some(OverloadedSocket { index: most.index, share, others })
}

/// How many sockets of the group got nothing and may have a reader that could not be asked. `None` also where the overloaded
/// socket has no full reader of its own: a thread that reads several of them reads all, and so may threads that share one.
fn unasked(view: &View, most: &SocketUse) -> Option<u64> {
    let [reader] = most.readers.as_deref()? else { return None };
    let is_read = |socket: &SocketUse| socket.readers.iter().flatten().any(|tid| tid == reader);
    let reads = view.sockets.iter().filter(|socket| is_read(socket)).count();
    if most.connected || reads > 1 || *reader != view.reader.lead.tid {
        return None;
    }
    let got_nothing = |socket: &SocketUse| {
        let unread = socket.readers.as_ref().is_some_and(Vec::is_empty);
        unread && socket.drops_packets == 0 && socket.queue_max_bytes == 0
    };
    let unasked = view.sockets.iter().filter(|it| got_nothing(it) && it.waiters.is_none());
    let unasked = unasked.filter(|socket| !socket.connected).count() as u64;
    (unasked > 0).then_some(unasked)
}
