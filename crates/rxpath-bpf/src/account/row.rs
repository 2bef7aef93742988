//! The rows of the maps of `bpf/account.bpf.c`, field by field.

use crate::bytes::Fields;

#[cfg(test)]
mod tests;

/// A task on one CPU. Pid and start time name a task for good; idle tasks have pid 0 on every CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// Start, in ns since boot (`task_struct.start_time`); 0 for idle tasks.
    pub start_ns: u64,
    /// Thread id as the initial pid namespace has it.
    pub pid: u32,
    /// The CPU.
    pub cpu: u32,
}

/// Where time on a CPU went, in ns; and what happened in it.
///
/// `on_cpu_ns` holds all other times: the task's own is what remains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// From switched in to switched out.
    pub on_cpu_ns: u64,
    /// Hard interrupts, between their tracepoints.
    pub hardirq_ns: u64,
    /// Receive softirqs that something else raised.
    pub net_rx_ns: u64,
    /// Transmit softirqs that something else raised.
    pub net_tx_ns: u64,
    /// Other softirqs that something else raised.
    pub other_softirq_ns: u64,
    /// Network softirqs that the task raised.
    pub own_net_ns: u64,
    /// Other softirqs that the task raised.
    pub own_other_ns: u64,
    /// Network softirqs that both raised.
    pub mixed_ns: u64,
    /// Of `net_rx_ns` and `net_tx_ns`: those that interrupted user mode (x86).
    pub from_user_ns: u64,
    /// Of `own_net_ns`: those that interrupted user mode, which contradicts it (x86).
    pub own_from_user_ns: u64,
    /// Hard interrupts that arrived outside softirqs.
    pub interrupts: u64,
    /// Hard interrupts of devices.
    pub device_interrupts: u64,
    /// Softirqs of all kinds.
    pub softirq_runs: u64,
    /// Packets of polls in softirqs that something else raised.
    pub taken_packets: u64,
    /// Of `other_softirq_ns`: functions of the network that ran in them (TCP's pacing timers and small queues).
    pub other_network_ns: u64,
    /// What the scheduler charged (`se.sum_exec_runtime`): what top shows.
    pub runtime_ns: u64,
    /// Waits on the run queue that ended in the window (`sched_info.run_delay`), from its beginning at most.
    pub run_delay_ns: u64,
    /// Times that it was switched in.
    pub slices: u64,
}

/// The fields of a charge as an array, to read, add and subtract them alike.
macro_rules! parts {
    ($($field:ident)*) => {
        impl Charge {
            fn parts(&self) -> [u64; 18] {
                [$(self.$field),*]
            }

            fn from_parts(parts: [u64; 18]) -> Self {
                let mut parts = parts.into_iter();
                Self { $($field: parts.next().unwrap_or_default()),* }
            }
        }
    };
}

// In the order of `struct task_row`, which begins with `enum total`.
parts! {
    hardirq_ns net_rx_ns net_tx_ns other_softirq_ns own_net_ns own_other_ns mixed_ns from_user_ns
    own_from_user_ns interrupts device_interrupts softirq_runs taken_packets other_network_ns
    on_cpu_ns runtime_ns run_delay_ns slices
}

impl Charge {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, before) = (self.parts(), earlier.parts());
        Self::from_parts(std::array::from_fn(|at| now[at].saturating_sub(before[at])))
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let (a, b) = (self.parts(), other.parts());
        Self::from_parts(std::array::from_fn(|at| a[at].saturating_add(b[at])))
    }

    /// Everything that was measured and is not the task itself, in ns.
    pub fn interrupted_ns(&self) -> u64 {
        self.hardirq_ns
            + self.net_rx_ns
            + self.net_tx_ns
            + self.other_softirq_ns
            + self.own_net_ns
            + self.own_other_ns
            + self.mixed_ns
    }
}

/// A task on one CPU, with its charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargedTask {
    /// Which task, where.
    pub key: TaskKey,
    /// Where its time went.
    pub charge: Charge,
    /// End of its first slice that was seen there, CLOCK_MONOTONIC.
    pub first_ns: u64,
    /// End of its last.
    pub last_ns: u64,
    /// Process.
    pub tgid: u32,
    /// Parent process at the first.
    pub parent: u32,
    /// `task_struct.flags` at the last.
    pub flags: u32,
    /// Name at the last.
    pub comm: String,
    /// Id of its group of version 2 at the last; 0 on kernels without groups.
    pub cgroup: u64,
}

impl ChargedTask {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: Option<&Self>) -> Self {
        let before = earlier.map(|task| task.charge).unwrap_or_default();
        Self { charge: self.charge.since(&before), ..self.clone() }
    }

    /// Adds another row of the same task. What changes in the life of a task is taken from where it ran last, its parent
    /// from where it ran first.
    pub fn join(&mut self, other: Self) {
        self.charge = self.charge.plus(&other.charge);
        if other.first_ns < self.first_ns {
            (self.first_ns, self.parent) = (other.first_ns, other.parent);
        }
        if other.last_ns > self.last_ns {
            self.last_ns = other.last_ns;
            (self.tgid, self.flags, self.comm) = (other.tgid, other.flags, other.comm);
            self.cgroup = other.cgroup;
        }
    }
}

/// `PF_KTHREAD`, include/linux/sched.h.
pub const PF_KTHREAD: u32 = 0x0020_0000;

/// One CPU's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuWindow {
    /// CPU number.
    pub cpu: u32,
    /// When its counting began, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When it was read.
    pub end_ns: u64,
    /// Of the time in between: from the end of a turn to the beginning of the next.
    pub skipped_ns: u64,
    /// Time of slices that found the map of tasks full.
    pub lost_ns: u64,
    /// Such slices.
    pub lost_slices: u64,
    /// Polls that found the map of culprits full.
    pub lost_polls: u64,
    /// Packets for whose flow there was no room.
    pub lost_flows: u64,
    /// Exits without their entry (softirqs and interrupts under way when the probe attached), and slices of a task
    /// that was not seen to be switched in.
    pub unmatched: u64,
}

impl CpuWindow {
    /// The window from the end of `earlier` to the end of this one.
    #[must_use]
    pub fn since(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else { return *self };
        Self {
            start_ns: earlier.end_ns,
            skipped_ns: self.skipped_ns.saturating_sub(earlier.skipped_ns),
            lost_ns: self.lost_ns.saturating_sub(earlier.lost_ns),
            lost_slices: self.lost_slices.saturating_sub(earlier.lost_slices),
            lost_polls: self.lost_polls.saturating_sub(earlier.lost_polls),
            lost_flows: self.lost_flows.saturating_sub(earlier.lost_flows),
            unmatched: self.unmatched.saturating_sub(earlier.unmatched),
            ..*self
        }
    }

    /// Slices, polls and packets that found no room.
    pub fn lost(&self) -> u64 {
        self.lost_slices + self.lost_polls + self.lost_flows
    }

    /// For how long was counted.
    pub fn span_ns(&self) -> u64 {
        self.whole_ns().saturating_sub(self.skipped_ns)
    }

    /// Its length, pauses included.
    pub fn whole_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Whose polls, in which task's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CulpritKey {
    /// The task that was interrupted.
    pub victim: TaskKey,
    /// NAPI instance; 0 for the per-CPU backlog (RPS, loopback, devices without NAPI).
    pub napi_id: u32,
    /// Device index in its namespace; 0 for the backlog.
    pub ifindex: u32,
    /// Inode of the device's network namespace; 0 for the backlog.
    pub netns: u32,
}

/// Polls of one NAPI that ran in one task's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Whose, in whose time.
    pub key: CulpritKey,
    /// Device name when first seen; empty for the backlog.
    pub dev: String,
    /// Time of the polls.
    pub ns: u64,
    /// Polls.
    pub polls: u64,
    /// Packets.
    pub packets: u64,
}

impl Culprit {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: Option<&Self>) -> Self {
        let less = |part: fn(&Self) -> u64| part(self).saturating_sub(earlier.map_or(0, part));
        Self {
            ns: less(|it| it.ns),
            polls: less(|it| it.polls),
            packets: less(|it| it.packets),
            ..self.clone()
        }
    }
}

fn task_key(fields: &mut Fields<'_>) -> TaskKey {
    TaskKey { start_ns: fields.u64(), pid: fields.u32(), cpu: fields.u32() }
}

/// `struct task_row`, and the half that it belongs to.
pub(super) fn task(key: &[u8], value: &[u8]) -> (u32, ChargedTask) {
    let mut fields = Fields::of(key);
    let key = task_key(&mut fields);
    let half = fields.u32();
    let mut fields = Fields::of(value);
    let charge = Charge::from_parts(fields.array());
    let [first_ns, last_ns] = fields.array::<2>();
    let (tgid, parent, flags) = (fields.u32(), fields.u32(), fields.u32());
    fields.skip(4);
    let (comm, cgroup) = (fields.text(16), fields.u64());
    (half, ChargedTask { key, charge, first_ns, last_ns, tgid, parent, flags, comm, cgroup })
}

/// `struct culprit_row`.
pub(super) fn culprit(key: &[u8], value: &[u8]) -> Culprit {
    let mut fields = Fields::of(key);
    let victim = task_key(&mut fields);
    let key =
        CulpritKey { victim, napi_id: fields.u32(), ifindex: fields.u32(), netns: fields.u32() };
    let mut fields = Fields::of(value);
    let (ns, polls, packets) = (fields.u64(), fields.u64(), fields.u64());
    Culprit { key, ns, polls, packets, dev: fields.text(16) }
}

/// Bytes of `struct scratch` before the end of the window: its beginning, softirqs, totals, who raised, the slice and its
/// bases.
const TO_END: usize = 10 * 8 + 14 * 8 + 8 + 10 * 4 + 8 + 4 * 8;

/// `struct scratch`, the part that is read; and the half that slices are charged to now.
pub(super) fn window(cpu: u32, value: &[u8]) -> (u32, CpuWindow) {
    let mut fields = Fields::of(value);
    fields.skip(TO_END);
    let [end_ns, lost_ns, lost_slices, lost_polls, unmatched, half] = fields.array::<6>();
    let [_received, lost_flows, _new_flows] = fields.array::<3>();
    let [start_ns, skipped_ns] = fields.array::<2>();
    let window = CpuWindow {
        cpu,
        start_ns,
        end_ns,
        skipped_ns,
        lost_ns,
        lost_slices,
        lost_polls,
        lost_flows,
        unmatched,
    };
    (half as u32, window)
}

/// `struct scratch`: packets at which flows were looked at, and rows of flows that were made for them.
pub(super) fn looked_at(value: &[u8]) -> (u64, u64) {
    let mut fields = Fields::of(value);
    fields.skip(TO_END + 6 * 8);
    let [received, _lost_flows, new_flows] = fields.array::<3>();
    (received, new_flows)
}

/// `struct scratch`: switches between tasks.
pub(super) fn switches(value: &[u8]) -> u64 {
    let mut fields = Fields::of(value);
    fields.skip(TO_END + 11 * 8);
    fields.u64()
}
