//! The probe's object as its reader takes it apart: maps, programs, and what is missing without each.

use crate::cost::COSTS;
use crate::object::{ObjectSpec, compiled, map, program, unhooked};
use crate::polls::{self, LINES, NAPIS, POLLED};

pub(super) const REQUIRED: bool = true;

/// Begins the window of a CPU, or ends one and begins the next.
pub(super) const READ: &str = "read_window";

/// Ends it, and begins none.
pub(super) const END: &str = "end_window";

/// `struct task_row`.
pub(super) const TASK_ROW_BYTES: usize = 200;

const BY_TURNS: &str = "duty-cycled counting";
const PACING: &str = "TCP pacing timers: they are counted with other softirqs";
const SMALL_QUEUES: &str = "TCP small queues: they are counted with other softirqs";
const TIMER: &str = "timer interrupts: their time is charged to the interrupted task (x86 names them by vector only)";
const IPI: &str = "inter-processor interrupts (RPS sends them too): their time is charged to the interrupted task";

/// The object, with the order in which its programs attach: exits before entries would be harmless too.
pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    per_cpu_maps: &["cpus", POLLED.name],
    maps: &[
        map("cpus", 4, 512),
        map("tasks", 24, TASK_ROW_BYTES as u32),
        map("culprits", 32, 40),
        map("flows", 48, 24),
        map("folded_flows", 48, 24),
        POLLED,
        NAPIS,
        LINES,
        COSTS,
    ],
    programs: &[
        unhooked(READ, "everything", REQUIRED),
        unhooked(END, BY_TURNS, REQUIRED),
        unhooked(polls::BEGIN, BY_TURNS, REQUIRED),
        unhooked(polls::END, BY_TURNS, REQUIRED),
        program("sched/sched_switch", "everything: tasks cannot be distinguished", REQUIRED),
        program("irq/softirq_entry", "everything: no softirq is seen", REQUIRED),
        program("irq/softirq_exit", "everything: no softirq is seen", REQUIRED),
        program(
            "irq/softirq_raise",
            "everything: a task's own work and stolen time cannot be distinguished",
            REQUIRED,
        ),
        program("irq/irq_handler_entry", "device interrupts", false),
        program("irq/irq_handler_exit", "device interrupts", false),
        program("napi/napi_poll", "which device took the time", false),
        program("net/netif_receive_skb", "which flows took the time", false),
        program("timer/hrtimer_expire_entry", PACING, false),
        program("timer/hrtimer_expire_exit", PACING, false),
        program("irq/tasklet_entry", SMALL_QUEUES, false),
        program("irq/tasklet_exit", SMALL_QUEUES, false),
        program("workqueue/workqueue_execute_start", SMALL_QUEUES, false),
        program("workqueue/workqueue_execute_end", SMALL_QUEUES, false),
        program("irq_vectors/local_timer_entry", TIMER, false),
        program("irq_vectors/local_timer_exit", TIMER, false),
        program("irq_vectors/call_function_single_entry", IPI, false),
        program("irq_vectors/call_function_single_exit", IPI, false),
        program("irq_vectors/call_function_entry", IPI, false),
        program("irq_vectors/call_function_exit", IPI, false),
        program("irq_vectors/reschedule_entry", IPI, false),
        program("irq_vectors/reschedule_exit", IPI, false),
        program("irq_vectors/irq_work_entry", IPI, false),
        program("irq_vectors/irq_work_exit", IPI, false),
    ],
    ..compiled!("account")
};
