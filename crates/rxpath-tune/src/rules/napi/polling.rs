//! Busy polling, NAPI threads, and page pool recycling.

use rxpath_core::number::grouped;
use rxpath_host::read::counter::Width;
use rxpath_host::read::netlink::netdev::PagePool;
use rxpath_host::read::procfs::task::{self, TaskStat};

use crate::prelude::*;

/// With this share of buffers from the page allocator a pool does not recycle.
const SLOW_RATIO: f64 = 0.1;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("busy-poll-sysctl", Check::Host(busy)),
    ("busy-poll-socket", Check::Host(polled)),
    ("napi-threaded", Check::Device(threaded)),
    ("napi-threaded-busy", Check::Nic(always)),
    ("backlog-threads", Check::Host(threads)),
    ("ksoftirqd-sched", Check::Host(ksoftirqd)),
    ("page-pool-recycle", Check::Host(recycle)),
];

fn busy(ask: &Ask<'_>) -> Checked {
    let read = ask.facts.sysctl_number("net.core.busy_read").known()?;
    let poll = ask.facts.sysctl_number("net.core.busy_poll").known()?;
    if ask.facts.nics().next().is_none() {
        return Answer::silent("no NIC: no socket here has a NAPI id");
    }
    if read == 0 && poll == 0 {
        return Answer::fine("off");
    }
    // Without busy_read only epoll polls sockets that did not ask for it, and older kernels' epoll polls none.
    if read == 0 {
        (&ask.facts.kernel.version).known()?;
        if ask.facts.kernel.is_before(4, 12) {
            return Answer::fine(format!("busy_poll {poll} us, for sockets with SO_BUSY_POLL"));
        }
    }
    let reach = if read == 0 { "each epoll_wait" } else { "every socket" };
    let observed = format!("busy_read {read} us, busy_poll {poll} us for {reach}");
    if matches!(ask.goal, Some(Latency)) {
        return Answer::fine(observed);
    }
    let set = [("net.core.busy_read", read), ("net.core.busy_poll", poll)];
    let off = set.into_iter().filter(|(_, now)| *now != 0);
    Answer::observed(observed).changes(off.map(|(key, _)| Set::new(Knob::sysctl(key), 0)))
}

fn polled(ask: &Ask<'_>) -> Checked {
    let packets = ask.facts.counter("TcpExt.BusyPollRxPackets").known()?;
    let since = ask.facts.protocols_began();
    Answer::recorded(format!("{} packets by busy polling since {since}", grouped(packets)))
}

/// NAPI threads of a device, by the beginning of their names (`comm` is cut to 15 bytes).
fn napi_threads(ask: &Ask<'_>, device: &Device) -> Result<Vec<i32>, Gap> {
    let processes = (&ask.facts.processes).known()?;
    let prefix: String = format!("napi/{}-", device.name).chars().take(15).collect();
    let all = processes.all.iter().filter(|(_, name)| name.starts_with(&prefix));
    Ok(all.map(|(pid, _)| *pid).collect())
}

fn threaded(ask: &Ask<'_>, device: &Device) -> Checked {
    if *(&device.sysfs.steering.threaded).known()? == 0 || !device.is_up() {
        return Answer::silent("NAPI does not run in threads");
    }
    let online = (&ask.facts.topology).known()?.online.as_slice().len();
    let pids = napi_threads(ask, device)?;
    if pids.is_empty() {
        return Answer::silent("its threads are not visible from here");
    }
    let mut wandering = 0;
    for pid in &pids {
        let status = ask.facts.text(&format!("/proc/{pid}/status")).known()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let cpus = list.and_then(|list| list.trim().parse::<rxpath_core::CpuList>().ok());
        wandering += usize::from(cpus.is_some_and(|cpus| cpus.as_slice().len() >= online.max(2)));
    }
    if wandering == 0 {
        return Answer::fine(format!("{} threads, all bound", pids.len()));
    }
    Answer::observed(format!("{wandering} of {} NAPI threads may run on every CPU", pids.len()))
        .advice(format!("taskset -pc CPU PID for the threads napi/{}-*", device.name))
}

fn always(_: &Ask<'_>, device: &Device) -> Checked {
    let napis = (&device.nic.napis).known()?;
    let count = napis.iter().filter(|napi| napi.threaded == Some(2)).count();
    Answer::recorded(format!("{count} of {} NAPI instances", napis.len()))
}

fn threads(ask: &Ask<'_>) -> Checked {
    let processes = (&ask.facts.processes).known()?;
    let of = |start: &str| processes.all.iter().filter(|(_, name)| name.starts_with(start)).count();
    let count = of("backlog_napi/");
    // Every kernel has ksoftirqd: if it is not visible, no kernel thread is.
    if count == 0 && of("ksoftirqd/") == 0 {
        return Err(Gap::Absent("kernel threads are not visible from here".into()));
    }
    Answer::recorded(if count == 0 { "in softirq".into() } else { format!("in {count} threads") })
}

fn ksoftirqd(ask: &Ask<'_>) -> Checked {
    let processes = (&ask.facts.processes).known()?;
    let own: Vec<&(i32, String)> =
        processes.all.iter().filter(|(_, name)| name.starts_with("ksoftirqd/")).collect();
    if own.is_empty() {
        return Answer::silent("ksoftirqd is not visible from here (a container?)");
    }
    for (pid, name) in &own {
        let stat = ask.facts.text(&format!("/proc/{pid}/stat")).known()?;
        let stat = task::parse(stat.as_bytes())
            .map_err(|error| Gap::Absent(format!("/proc/{pid}/stat: {error}")))?;
        let TaskStat { nice, rt_priority, policy, .. } = stat;
        if policy != 0 || nice != 0 {
            let seen = format!("{name}: policy {policy}, priority {rt_priority}, nice {nice}");
            return Answer::observed(seen).advice(
                "find what set it before you restore it: an RT tuning profile or a script",
            );
        }
    }
    Answer::fine(format!("{} threads, SCHED_OTHER, nice 0", own.len()))
}

/// Buffers of a pool: those from the page allocator, and all.
fn handed_out(pool: &PagePool, later: Option<&Vec<PagePool>>) -> Option<(Count, Count)> {
    let first = pool.stats?;
    let then = later.and_then(|all| all.iter().find(|one| one.id == pool.id)?.stats);
    let fast =
        Count::of(Width::U64, first.alloc_fast_total, then.map(|stats| stats.alloc_fast_total));
    let slow =
        Count::of(Width::U64, first.alloc_slow_total, then.map(|stats| stats.alloc_slow_total));
    Some((slow, slow.plus(fast)))
}

fn recycle(ask: &Ask<'_>) -> Checked {
    let pools = (&ask.facts.answers.page_pools).known()?;
    if pools.is_empty() {
        return Answer::silent("no device here has a page pool");
    }
    let later = ask.facts.later_answers().and_then(|answers| answers.page_pools.value());
    let counted: Vec<(Count, Count)> =
        pools.iter().filter_map(|pool| handed_out(pool, later)).collect();
    if counted.is_empty() {
        return Err(Gap::Absent(format!(
            "{} page pools, but this kernel has no page pool statistics (CONFIG_PAGE_POOL_STATS)",
            pools.len()
        )));
    }
    let slow = Count::sum(counted.iter().map(|(slow, _)| *slow));
    let all = Count::sum(counted.iter().map(|(_, all)| *all));
    if all.total < 100_000 {
        return Answer::silent("too few buffers were allocated to judge");
    }
    let ratio = slow.ratio_of(all).unwrap_or(0.0);
    if ratio < SLOW_RATIO {
        return Answer::fine(format!("{:.1} % from the page allocator", ratio * 100.0));
    }
    let told =
        ask.facts.watched.tell(slow, "buffers from the page allocator", "the pools were made");
    Answer::observed(format!("{told}: {:.0} % of all", ratio * 100.0))
        .advice(
            "look for readers that hold buffers: zero copy, packet taps, sockets with long queues",
        )
        .rests_on(slow, &ask.facts.watched)
}
