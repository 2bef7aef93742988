// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Whose time is it? Each CPU's time, cut at every switch between tasks and divided into the task's own, hard
 * interrupts and softirqs; softirqs by kind and by who raised them.
 *
 * Two rules keep the sums whole. Per-CPU totals only grow, and a slice is the difference of two readings, so that
 * an interrupt which arrives in the middle of a program is charged late but never lost. And a span is measured from
 * its timestamp: programs attach one at a time, so an exit without its entry is normal at the start and is ignored.
 *
 * For a live view the same programs count polls (polling.h): a second one at the same tracepoint is another call.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include <bpf/bpf_core_read.h>
#include "account.h"
#include "flows.h"
#include "polling.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline struct scratch *here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* Before the first reading of a CPU its window has not begun; between two turns there is none. */
static __always_inline struct scratch *in_window(void)
{
	struct scratch *s = here();

	return s && s->window_start ? s : 0;
}

/*
 * Whether polls are counted now. Programs count them last: what that takes is in no span of theirs, as if the programs of
 * polls ran after those of the account.
 */
static __always_inline bool counts_polls(void)
{
	return config.polls && counting;
}

/* A time and hard interrupt total that belong together: an interrupt between the two readings repeats them. */
static __always_inline __u64 settled(volatile struct scratch *s, __u64 *hard)
{
	__u64 now = 0;

	for (int i = 0; i < 3; i++) {
		__u64 before = s->changes;

		*hard = s->total[HARDIRQ_NS];
		now = bpf_ktime_get_ns();
		if (before == s->changes)
			break;
	}
	return now;
}

/* A hard interrupt begins. Some begin inside another's (a vector that calls a handler): the outer one counts. */
static __always_inline void hard_enter(__u64 kind)
{
	struct scratch *s = in_window();

	if (!s)
		return;
	/* The same kind twice in a row: the exit between them was not seen. */
	if (s->hard_start && s->hard_kind != kind)
		return;
	s->hard_start = bpf_ktime_get_ns();
	s->hard_kind = kind;
	if (!s->soft_start)
		s->total[INTERRUPTS]++;
	if (kind >= DEVICE)
		s->total[DEVICE_INTERRUPTS]++;
}

static __always_inline void hard_exit(__u64 kind)
{
	struct scratch *s = in_window();

	if (!s)
		return;
	if (s->hard_start && s->hard_kind != kind)
		return;
	if (!s->hard_start) {
		s->unmatched++;
		return;
	}
	s->total[HARDIRQ_NS] += since(bpf_ktime_get_ns(), s->hard_start);
	s->hard_start = 0;
	s->changes++;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(rxpath_irq_handler_entry, int irq, struct irqaction *action)
{
	hard_enter(DEVICE + (__u64)(__u32)irq);
	if (counts_polls())
		polls_irq_entry(bpf_ktime_get_ns(), irq, action);
	return 0;
}

/* A hard interrupt ends, of a device or of a vector. */
static __always_inline int irq_exit(__u64 kind)
{
	hard_exit(kind);
	if (counts_polls())
		polls_hard_exit(bpf_ktime_get_ns(), kind);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(rxpath_irq_handler_exit, int irq)
{
	return irq_exit(DEVICE + (__u64)(__u32)irq);
}

static __always_inline int vector_entry(__u64 number)
{
	hard_enter(number);
	if (counts_polls())
		polls_vector_entry(bpf_ktime_get_ns(), number);
	return 0;
}

VECTORS(vector_entry, irq_exit)

/* Whether the interrupt that led here came while the task was in user mode; only x86 can tell. */
static __always_inline bool from_user(void)
{
#ifdef __TARGET_ARCH_x86
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs;

	if (!task->pid || task->flags & PF_KTHREAD)
		return false;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	return (long)regs->orig_ax < 0;
#else
	return false;
#endif
}

/*
 * Who raises a softirq now. A variable that says so (the preemption count) is out of reach on kernels without
 * CONFIG_KALLSYMS_ALL, so it follows from what this CPU entered and has not left, and on x86 by the registers of the
 * task: a task that was interrupted in user mode raises nothing, whatever interrupt it was.
 */
static __always_inline __u32 raiser(struct scratch *s)
{
	if (s->hard_start)
		return BY_INTERRUPT;
	/* The idle task asks for nothing: woken by a flag that it polls, it runs what others sent it without an interrupt. */
	if (!bpf_get_current_task_btf()->pid)
		return BY_INTERRUPT;
	/* Work that a softirq leaves to the next belongs to whom the softirq belonged. */
	if (s->soft_start)
		return s->soft_raisers ? s->soft_raisers : BY_INTERRUPT;
	return from_user() ? BY_INTERRUPT : BY_TASK;
}

/*
 * The index of a vector that is in bounds. The compiler may read the vector from the stack twice, and compare one and index
 * by the other: the verifier of Linux 6.1 does not know that they are the same. A plain mask the compiler would leave out.
 */
static __always_inline __u64 index_of(__u64 vector)
{
	asm volatile("%0 &= 15" : "+r"(vector));
	return vector;
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(rxpath_softirq_raise, unsigned int vector)
{
	struct scratch *s = in_window();

	if (s && vector < MAX_VECTORS) {
		s->raised[index_of(vector)] |= raiser(s);
		if (vector == NET_RX_VECTOR || vector == NET_TX_VECTOR)
			s->interrupts_at_raise = s->total[INTERRUPTS];
	}
	return 0;
}

static __always_inline void softirq_begins(unsigned int vector)
{
	struct scratch *s = in_window();
	__u64 hard, now;

	if (!s || vector >= MAX_VECTORS)
		return;
	now = settled(s, &hard);
	s->soft_vector = vector;
	s->soft_raisers = s->raised[index_of(vector)];
	s->raised[index_of(vector)] = 0;
	s->soft_hard = hard;
	s->poll_start = now;
	s->poll_hard = hard;
	s->total[SOFTIRQ_RUNS]++;
	s->soft_start = now;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(rxpath_softirq_entry, unsigned int vector)
{
	softirq_begins(vector);
	if (counts_polls())
		polls_softirq_entry(bpf_ktime_get_ns(), vector);
	return 0;
}

static __always_inline void charge_softirq(struct scratch *s, __u64 now, __u64 hard)
{
	__u64 ns = since(now, s->soft_start);
	__u64 inside = since(hard, s->soft_hard);
	__u32 vector = s->soft_vector;
	bool network = vector == NET_RX_VECTOR || vector == NET_TX_VECTOR;

	ns = since(ns, inside);
	if (s->soft_raisers == BY_TASK) {
		s->total[network ? OWN_NET_NS : OWN_OTHER_NS] += ns;
		/* Without an interrupt since then it runs where it was raised, which was not user mode. */
		if (network && s->total[INTERRUPTS] != s->interrupts_at_raise && from_user())
			s->total[OWN_FROM_USER_NS] += ns;
	} else if (network && s->soft_raisers == (BY_TASK | BY_INTERRUPT)) {
		s->total[MIXED_NET_NS] += ns;
	} else if (network) {
		s->total[vector == NET_RX_VECTOR ? TAKEN_NET_RX_NS : TAKEN_NET_TX_NS] += ns;
		if (from_user())
			s->total[FROM_USER_NS] += ns;
	} else {
		s->total[TAKEN_OTHER_NS] += ns;
	}
}

#include "functions.h"

static __always_inline void softirq_ends(unsigned int vector)
{
	struct scratch *s = in_window();
	__u64 hard, now;

	if (!s)
		return;
	if (!s->soft_start) {
		if (s->soft_vector != NO_VECTOR || vector >= MAX_VECTORS) {
			s->unmatched++;
			return;
		}
		/* It was under way when the window began: what lies in the window counts, raised by nobody that was seen. */
		s->soft_start = s->window_start;
		s->soft_vector = vector;
		s->soft_raisers = 0;
	}
	now = settled(s, &hard);
	/* Its exit was not seen. */
	charge_function(s, now, hard);
	charge_softirq(s, now, hard);
	s->soft_start = 0;
	s->changes++;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(rxpath_softirq_exit, unsigned int vector)
{
	softirq_ends(vector);
	if (counts_polls())
		polls_softirq_exit(bpf_ktime_get_ns(), vector);
	return 0;
}

/* Charges the time since the poll before to the device and NAPI that was polled, in softirqs that are not own. */
static __always_inline void charge_poll(struct napi_struct *napi, int work)
{
	struct scratch *s = in_window();
	struct task_struct *task = bpf_get_current_task_btf();
	struct culprit_key key = {};
	struct culprit_row *row;
	struct net_device *dev;
	__u64 hard, now, ns;

	if (!s || !s->soft_start || s->soft_raisers == BY_TASK)
		return;
	now = settled(s, &hard);
	ns = since(since(now, s->poll_start), since(hard, s->poll_hard));
	s->poll_start = now;
	s->poll_hard = hard;
	s->total[TAKEN_POLL_PACKETS] += work > 0 ? work : 0;
	dev = napi->dev;
	key.start_ns = task->pid ? task->start_time : 0;
	key.pid = task->pid;
	key.cpu = bpf_get_smp_processor_id();
	key.napi_id = napi->napi_id;
	if (dev) {
		key.ifindex = dev->ifindex;
		key.netns = dev->nd_net.net->ns.inum;
	}
	row = bpf_map_lookup_elem(&culprits, &key);
	if (!row) {
		struct culprit_row fresh = {};

		if (dev)
			bpf_probe_read_kernel_str(fresh.dev, sizeof(fresh.dev), dev->name);
		if (bpf_map_update_elem(&culprits, &key, &fresh, BPF_NOEXIST)) {
			s->lost_polls++;
			return;
		}
		row = bpf_map_lookup_elem(&culprits, &key);
		if (!row)
			return;
	}
	row->ns += ns;
	row->polls++;
	row->packets += work > 0 ? work : 0;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(rxpath_napi_poll, struct napi_struct *napi, int work, int budget)
{
	charge_poll(napi, work);
	if (counts_polls())
		polls_napi_poll(bpf_ktime_get_ns(), napi, work, budget, 0);
	return 0;
}

/*
 * Counts a packet of a softirq that is not the task's own for the flow that it belongs to. It runs for each packet, so
 * the reader duty-cycles it.
 */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(rxpath_netif_receive_skb, struct sk_buff *skb)
{
	struct scratch *s = in_window();

	if (!s || !skb->dev)
		return 0;
	s->received++;
	if (s->soft_start && s->soft_raisers != BY_TASK && !count_flow(skb, &s->new_flows))
		s->lost_flows++;
	return 0;
}

/* Charges the slice that ends `now` to `task`, and begins the next. */
static __always_inline void end_slice(struct scratch *s, struct task_struct *task, __u64 now)
{
	struct task_key key = {};
	struct task_row *row;
	__u64 begun = s->slice_start;
	__u64 ns = since(now, begun);

	/* The idle tasks of all CPUs have pid 0 and no start: the CPU in the key keeps them apart. */
	key.pid = task->pid;
	key.start_ns = task->pid ? task->start_time : 0;
	key.cpu = bpf_get_smp_processor_id();
	key.half = s->half & 1;
	s->slice_start = now;
	row = bpf_map_lookup_elem(&tasks, &key);
	if (!row) {
		bpf_map_update_elem(&tasks, &key, (const void *)&config.fresh, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&tasks, &key);
		if (row) {
			row->first_ns = now;
			row->parent = BPF_CORE_READ(task, real_parent, tgid);
		}
	}
	if (!row) {
		s->lost_ns += ns;
		s->lost_slices++;
	} else {
		row->on_cpu_ns += ns;
		/* A switch that was not seen (measured: about one in ten thousand) left another task's. */
		if (s->base_pid == (__u32)task->pid) {
			row->runtime_ns += since(task->se.sum_exec_runtime, s->runtime_base);
			__u64 waited = since(task->sched_info.run_delay, s->delay_base);
			__u64 counted = since(begun, s->window_start);

			/* It may have begun to wait before the window did. */
			row->run_delay_ns += waited < counted ? waited : counted;
		} else {
			s->unmatched++;
		}
		row->slices++;
		row->last_ns = now;
		row->tgid = task->tgid;
		row->flags = task->flags;
		/* Again each time: exec changes it. */
		bpf_probe_read_kernel(row->comm, sizeof(row->comm), task->comm);
		if (bpf_core_field_exists(task->cgroups))
			row->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	}
	for (int i = 0; i < TOTALS; i++) {
		__u64 total = s->total[i];

		if (row)
			row->total[i] += total - s->base[i];
		s->base[i] = total;
	}
}

static __always_inline void begin_slice(struct scratch *s, struct task_struct *task)
{
	s->runtime_base = task->se.sum_exec_runtime;
	s->delay_base = task->sched_info.run_delay;
	s->base_pid = task->pid;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(rxpath_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct scratch *s = in_window();

	if (!s)
		return 0;
	s->switches++;
	end_slice(s, prev, bpf_ktime_get_ns());
	begin_slice(s, next);
	/* What the last task raised and left pending is not the next one's doing. */
	for (int i = 0; i < MAX_VECTORS; i++) {
		if (s->raised[i])
			s->raised[i] = BY_INTERRUPT;
	}
	return 0;
}

#include "windows.h"
