//! Words beside the path: the CPUs, and how rxpath measures.

use super::{Term, term};

const WHOLE: &str = "beside the path: the CPU that all of it needs";
const LAB: &str = "not on the path: how rxpath measures";

/// The terms.
pub const TERMS: &[Term] = &[
    term(
        [
            "receive livelock",
            WHOLE,
            "Softirqs take the whole CPU of the reader: more packets arrive, fewer are delivered.",
            "Keep reader and interrupt on different CPUs, or run NAPI in a thread.",
        ],
        &["livelock"],
        &["udp-livelock", "reader-placement", "napi-threaded"],
    ),
    term(
        [
            "NUMA node",
            WHOLE,
            "CPUs with their own memory; a NIC hangs on one of them.",
            "Packets that are handled on another node cross the link between them, each cache line of them.",
        ],
        &["NUMA"],
        &["nic-numa-node", "irq-numa-local", "numa-of-receiver"],
    ),
    term(
        [
            "C-state",
            WHOLE,
            "How deeply an idle CPU sleeps; deeper ones take longer to wake up, up to hundreds of microseconds.",
            "The first packet after a pause waits for it.",
        ],
        &["C-states", "idle state", "cpuidle"],
        &["cpu-cstates", "pm-qos-latency"],
    ),
    term(
        [
            "hypervisor steal",
            WHOLE,
            "Time in which a virtual CPU was ready and the hypervisor ran something else.",
            "It looks like slow software and is in no profile of the guest. Not the same as what `rxpath steal` measures first: time that network softirqs take from programs.",
        ],
        &["steal time", "stolen time", "steal"],
        &["stat.steal", "hypervisor"],
    ),
    term(
        [
            "tick accounting",
            WHOLE,
            "CPU time is charged to whatever runs when the timer ticks, unless the kernel times each interrupt (IRQ_TIME_ACCOUNTING).",
            "Softirqs that run in step with the tick are counted for nothing or for everything.",
        ],
        &["irq time accounting", "CPU accounting"],
        &["irq-time-accounting", "hz", "stat.softirq"],
    ),
    term(
        [
            "drop reason",
            LAB,
            "The name that the kernel gives when it frees a packet that nobody received (tracepoint skb:kfree_skb, since 5.17).",
            "`rxpath explain SOCKET_RCVBUFF` explains each; `rxpath trace` counts them.",
        ],
        &["kfree_skb", "skb_drop_reason"],
        &[],
    ),
    term(
        [
            "offered load",
            LAB,
            "Offered: attempted by the sender. Sent: accepted by its kernel. Received: at the device. Delivered: read by the application.",
            "A loss is always the difference of two of them; name which.",
        ],
        &["offered", "sent", "delivered", "goodput"],
        &["offered_pps", "delivered_pps", "loss_ratio"],
    ),
    term(
        [
            "open loop",
            LAB,
            "Requests are sent by schedule, whether or not the answers are back; in a closed loop each connection waits for its answer.",
            "Only an open loop sees the waiting that a slow server causes: a closed one sends less instead (coordinated omission).",
        ],
        &["closed loop", "coordinated omission", "response time", "service time"],
        &["response_time_p99_us", "service_time_p99_us"],
    ),
    term(
        [
            "ledger",
            LAB,
            "The account of a trial: offered = delivered + losses by place + in flight, each from a named counter.",
            "What is left over is `unaccounted`; 0 means that every packet was found.",
        ],
        &["unaccounted"],
        &[],
    ),
    term(
        [
            "block",
            LAB,
            "Each variant of an experiment runs once per block, in random order; results are compared within a block.",
            "Slow changes of the machine then disturb all variants alike.",
        ],
        &["trial", "variant"],
        &["grade"],
    ),
    term(
        [
            "grade",
            LAB,
            "How much other load disturbed a trial: A under 1 % of its CPUs, B under 3 %, C under 10 %, D more. D trials are void and repeated.",
            "A result of D trials (--keep-noisy) says little.",
        ],
        &["noise grade", "too noisy"],
        &["exit 4"],
    ),
];
