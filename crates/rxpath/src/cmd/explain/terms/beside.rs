//! Terms that are not on the path: the CPUs, and how rxpath measures.

use super::{Term, term};

const WHOLE: &str = "not on the path: the CPU that every stage needs";
const LAB: &str = "not on the path: how rxpath measures";

/// The terms.
pub const TERMS: &[Term] = &[
    term(
        [
            "receive livelock",
            WHOLE,
            "Softirqs take the whole CPU of the reader: the more packets arrive, the fewer are delivered.",
            "Keep reader and interrupt on different CPUs, or run NAPI in a thread.",
        ],
        &["livelock"],
        &["udp-livelock", "reader-placement", "napi-threaded"],
    ),
    term(
        [
            "NUMA node",
            WHOLE,
            "CPUs with their own memory; a NIC is attached to one of them.",
            "If another node handles the packets, each of their cache lines crosses the link between the nodes.",
        ],
        &["NUMA"],
        &["nic-numa-node", "irq-numa-local", "numa-of-receiver"],
    ),
    term(
        [
            "C-state",
            WHOLE,
            "How deeply an idle CPU sleeps; waking up from a deeper state takes longer, up to hundreds of microseconds.",
            "The first packet after a pause waits for the wake-up.",
        ],
        &["C-states", "idle state", "cpuidle"],
        &["cpu-cstates", "pm-qos-latency"],
    ),
    term(
        [
            "hypervisor steal",
            WHOLE,
            "Time in which a virtual CPU was ready to run, but the hypervisor ran something else.",
            "It looks like slow software and is in no profile of the guest. `rxpath steal` measures something else first: time that network softirqs take from programs.",
        ],
        &["steal time", "stolen time", "steal"],
        &["stat.steal", "hypervisor"],
    ),
    term(
        [
            "tick accounting",
            WHOLE,
            "CPU time is charged to the task that runs when the timer ticks, unless the kernel times each interrupt (IRQ_TIME_ACCOUNTING).",
            "Softirqs that run in step with the tick are not counted at all, or are charged with all the time.",
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
            "A loss is always the difference of two of them; say which two.",
        ],
        &["offered", "sent", "delivered", "goodput"],
        &["offered_pps", "delivered_pps", "loss_ratio"],
    ),
    term(
        [
            "open loop",
            LAB,
            "Requests are sent by schedule, whether or not earlier answers have arrived; in a closed loop each connection waits for its answer.",
            "Only an open loop measures the waiting that a slow server causes: a closed loop sends less instead (coordinated omission).",
        ],
        &["closed loop", "coordinated omission", "response time", "service time"],
        &["response_time_p99_us", "service_time_p99_us"],
    ),
    term(
        [
            "ledger",
            LAB,
            "The account of a trial: offered = delivered + losses by place + in flight, each from a named counter.",
            "The remainder is `unaccounted`; 0 means that every packet was found.",
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
            "A result from D trials (--keep-noisy) is of little value.",
        ],
        &["noise grade", "too noisy"],
        &["exit 4"],
    ),
];
