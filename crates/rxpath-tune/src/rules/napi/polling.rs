//! Busy polling, NAPI threads, and page pool recycling.

use rxpath_host::counter::Width;
use rxpath_host::netlink::netdev::PagePool;
use rxpath_host::procfs::task::{self, TaskStat};

use crate::prelude::*;

const ADMIN: &str = "kernel: Documentation/admin-guide/sysctl/net.rst, busy_poll and busy_read";
const NAPI: &str = "kernel: Documentation/networking/napi.rst";

/// With this share of buffers from the page allocator a pool does not recycle.
const SLOW_RATIO: f64 = 0.1;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "busy-poll-sysctl",
        what: "Do sysctls make all sockets busy poll?",
        applies: "hosts with a NIC (sockets without a NAPI id never poll)",
        weight: Weight::by_goal().when(Fairness, Warn).when(Latency, Info).when(Benchmark, Info),
        size: Multiple,
        effect: "1-byte TCP round trips from 8353/s to 18967/s over virtio and mlx4, at the cost of the CPU of \
                 every waiting thread",
        figure_from: "kernel commit 91815639d880",
        check: Check::Host(busy),
        why: "A waiting thread polls the NIC itself: no interrupt, no wake-up. It uses that thread's CPU. \
              busy_read applies to every socket of the host, busy_poll to every program that waits in epoll.",
        mechanism: "sk_busy_loop and __napi_busy_loop (net/core/dev.c) poll the NAPI instance whose id the socket \
                    saw. busy_read is the default SO_BUSY_POLL of sockets created later. busy_poll is for poll, \
                    select and epoll: poll and select apply it only to sockets with SO_BUSY_POLL (net/socket.c \
                    sock_poll), epoll since 4.12 to every socket with a NAPI id (fs/eventpoll.c \
                    ep_set_busy_poll_napi_id).",
        not_when: "other work shares the CPUs; sockets over loopback, or veth without NAPI, never poll. \
                   SO_BUSY_POLL or EPIOCSPARAMS enables it only for the program that needs it",
        side_effects: "waiting threads may use all of their CPU's time; power",
        set_now: "sysctl -w net.core.busy_poll=50 net.core.busy_read=50 (us)",
        persist: "/etc/sysctl.d/; tuned's network-latency sets both",
        verify: "BusyPollRxPackets in /proc/net/netstat rises",
        since: "3.11",
        sources: &[
            ADMIN,
            "kernel: net/socket.c sock_poll",
            "kernel: fs/eventpoll.c ep_set_busy_poll_napi_id",
            "kernel commit 91815639d880",
            "redis pull request 3773 (SO_BUSY_POLL)",
        ],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "busy-poll-socket",
        what: "Did any socket of this namespace ever busy poll?",
        applies: "kernels with CONFIG_NET_RX_BUSY_POLL",
        check: Check::Host(polled),
        why: "No interface shows the socket option; this counter shows that busy polling works.",
        mechanism: "__napi_busy_loop adds what it received to LINUX_MIB_BUSYPOLLRXPACKETS.",
        set_now: "setsockopt(SO_BUSY_POLL) in the application",
        verify: "BusyPollRxPackets in /proc/net/netstat",
        since: "3.11; SO_PREFER_BUSY_POLL 5.11; EPIOCSPARAMS 6.9",
        sources: &[NAPI, "socket(7), SO_BUSY_POLL"],
        ..Rule::record(Area::Napi)
    },
    Rule {
        id: "napi-threaded",
        what: "Are NAPI threads bound to CPUs?",
        applies: "devices that are up with threaded set, Linux 5.12 and later",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Warn).when(Fairness, Info),
        size: Tens,
        effect: "a thread that migrates loses its caches, and perhaps its node",
        check: Check::Device(threaded),
        why: "The scheduler may move NAPI threads to any CPU.",
        mechanism: "napi_threaded_poll (net/core/dev.c) runs in kthreads napi/DEV-ID; they are ordinary \
                    SCHED_OTHER threads.",
        not_when: "the scheduler should balance the threads",
        side_effects: "bound threads cannot leave a busy CPU; many drivers recreate them when the device goes \
                       down and up or changes its channels",
        set_now: "for pid in $(pgrep '^napi/DEV-'); do taskset -pc CPUS $pid; done; one CPU per thread if each \
                  serves one queue",
        persist: "a unit that runs after the device is up",
        undo: "taskset -pc CPUS PID, with the previous list",
        verify: "for pid in $(pgrep '^napi/DEV-'); do grep Cpus_allowed_list /proc/$pid/status; done",
        since: "5.12; for each NAPI 6.17",
        sources: &[NAPI, "kernel: Documentation/ABI/testing/sysfs-class-net, threaded"],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "napi-threaded-busy",
        what: "Do NAPI threads poll continuously?",
        applies: "devices whose NAPI instances can be read, Linux 6.19 and later for the value 2",
        check: Check::Device(always),
        why: "Each such thread uses a whole core, with or without packets.",
        mechanism: "threaded=2 keeps napi_threaded_poll in its loop; kernels before 6.19 reject it (ERANGE).",
        side_effects: "a core for each instance",
        verify: "the netdev family's napi-get shows threaded",
        since: "6.19",
        sources: &["kernel commit c18d4b190a46 (busy polling NAPI threads)", NAPI],
        ..Rule::record(Area::Napi)
    },
    Rule {
        id: "backlog-threads",
        what: "Does the backlog run in threads?",
        applies: "Linux 6.10 and later",
        check: Check::Host(threads),
        why: "The work of RPS and veth then counts as thread time, not as softirq time.",
        mechanism: "thread_backlog_napi at boot, always with PREEMPT_RT: kthreads backlog_napi/N run \
                    process_backlog.",
        side_effects: "a wake-up for each batch",
        set_now: "boot parameter thread_backlog_napi; it cannot be changed at runtime",
        persist: "kernel command line",
        undo: "remove the boot parameter",
        verify: "ps -e | grep backlog_napi",
        since: "6.10",
        sources: &["kernel commit dad6b9770263 (backlog NAPI threads)"],
        ..Rule::record(Area::Napi)
    },
    Rule {
        id: "ksoftirqd-sched",
        what: "Does ksoftirqd run with the kernel's default priority?",
        applies: "hosts that show ksoftirqd's /proc/PID/stat",
        weight: Weight::by_goal().when(Fairness, Warn).when(Latency, Info).when(Benchmark, Warn),
        size: Tens,
        effect: "under load ksoftirqd runs the receive path, at its own priority",
        check: Check::Host(ksoftirqd),
        why: "Under load softirqs are deferred to ksoftirqd. At real-time priority it starves every program on \
              its CPU; at a high nice value programs starve it.",
        mechanism: "wakeup_softirqd (kernel/softirq.c) wakes it when softirqs keep coming; ksoftirqd is \
                    SCHED_OTHER, nice 0.",
        not_when: "PREEMPT_RT hosts with tuned priorities",
        side_effects: "changes the priority of all deferred softirqs, including timers and RCU",
        set_now: "chrt -o -p 0 PID; renice 0 PID",
        persist: "remove the unit or script that changes it",
        undo: "chrt -f -p N PID (-r, -o: the previous policy); renice N PID",
        verify: "fields 18, 19, 41 of /proc/PID/stat",
        since: "2.4",
        sources: &["kernel: kernel/softirq.c wakeup_softirqd", "proc_pid_stat(5)"],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "page-pool-recycle",
        what: "Are receive buffers recycled to their page pool?",
        applies: "hosts that count recycling (CONFIG_PAGE_POOL_STATS, Linux 6.8)",
        weight: Weight::by_goal().when(Throughput, Warn).when(Benchmark, Info),
        size: Tens,
        effect: "each buffer that is not recycled costs two page allocator calls",
        check: Check::Host(recycle),
        why: "A pool that recycles buffers provides pages that are already mapped and in the cache.",
        mechanism: "page_pool_put_unrefed_netmem (net/core/page_pool.c) recycles pages that have no other user. \
                    Pages that are held longer, or come when the ring is full, go to the page allocator.",
        not_when: "short bursts after boot: check again under steady load",
        side_effects: "larger rings use more memory",
        set_now: "no setting: the cause is a reader that holds buffers long (zero copy, a slow tap), or a pool \
                  smaller than the ring",
        verify: "page-pool-stats-get: alloc-slow does not rise, recycle-ring rises",
        since: "6.8",
        sources: &[
            "kernel: Documentation/networking/page_pool.rst",
            "kernel: net/core/page_pool.c",
        ],
        undo: NOTHING_CHANGED,
        persist: NO_SETTING,
        ..Rule::judge(Area::Napi)
    },
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
    Answer::found(
        observed,
        "0, and the option on the sockets that need it",
        "every waiting thread of the host uses its CPU for polling",
    )
    .changes(off.map(|(key, _)| Set::new(Knob::sysctl(key), 0)))
}

fn polled(ask: &Ask<'_>) -> Checked {
    let packets = ask.facts.counter("TcpExt.BusyPollRxPackets").known()?;
    let since = ask.facts.protocols_began();
    Answer::recorded(format!("{packets} packets by busy polling since {since}"))
}

/// NAPI threads of a device, by the beginning of their names (`comm` is cut to 15 bytes).
fn napi_threads(ask: &Ask<'_>, device: &Device) -> Result<Vec<i32>, Gap> {
    let processes = (&ask.facts.processes).known()?;
    let prefix: String = format!("napi/{}-", device.name).chars().take(15).collect();
    let all = processes.all.iter().filter(|(_, name)| name.starts_with(&prefix));
    Ok(all.map(|(pid, _)| *pid).collect())
}

fn threaded(ask: &Ask<'_>, device: &Device) -> Checked {
    if *(&device.sysfs.threaded).known()? == 0 || !device.is_up() {
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
    Answer::found(
        format!("{wandering} of {} NAPI threads may run on every CPU", pids.len()),
        "each bound to a CPU of the device's node",
        "a thread that migrates loses its caches",
    )
    .advice(format!("taskset -pc CPU PID for the threads napi/{}-*", device.name))
}

fn always(_: &Ask<'_>, device: &Device) -> Checked {
    if let Some(silent) = quiet(device) {
        return silent;
    }
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
            return Answer::found(
                seen,
                "SCHED_OTHER, nice 0",
                "all deferred receiving runs at this priority",
            )
            .advice("find what set it before you restore it: an RT tuning profile or a script");
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
    let watched = &ask.facts.watched;
    let told = watched.tell(slow, "buffers from the page allocator", "the pools were made");
    Answer::found(
        format!("{told}: {:.0} % of all", ratio * 100.0),
        "less than 10 %",
        "buffers are not recycled to their pool",
    )
    .advice("look for readers that hold buffers: zero copy, packet taps, sockets with long queues")
    .rests_on(slow, watched)
}
