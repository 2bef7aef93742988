// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What the receive side of each CPU did: interrupts, softirq runs, NAPI polls with their packets, as counts and
 * histograms; on request also one by one, as events in a ring buffer.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include <bpf/bpf_core_read.h>
#include "counting.h"
#include "cpus.h"
#include "interrupts.h"
#include "log2.h"
#include "polls.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the reader before loading. */
const volatile struct {
	__u32 events;  /* write events as well */
	__u32 ifindex; /* only polls of this device, unless 0 */
	__u32 netns;   /* ... in this namespace, unless 0 */
	__u32 pad;
	struct cpus_wanted cpus; /* only their events; rows are chosen by the reader */
} config;

static __always_inline struct cpu_row *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* The same; none before all programs are attached, or between two duty cycles. */
static __always_inline struct cpu_row *here(void)
{
	return counting ? this_cpu() : 0;
}

static __always_inline __u32 time_bucket(__u64 ns)
{
	return log2_bucket(ns, TIME_BUCKETS) & (TIME_BUCKETS - 1);
}

static __always_inline __u32 work_bucket(__u32 packets)
{
	return log2_bucket(packets, POLL_BUCKETS) & (POLL_BUCKETS - 1);
}

static __always_inline struct event *event(struct cpu_row *row, __u64 now, __u32 kind, __u32 number)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct event *e;

	if (!config.events || !is_cpu_wanted(&config.cpus, cpu))
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		row->lost_events++;
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->ns = now;
	e->cpu = cpu;
	e->kind = kind;
	e->number = number;
	e->pid = (__u32)bpf_get_current_pid_tgid();
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	return e;
}

static __always_inline void submit(struct event *e)
{
	/* The reader polls a few times a second: waking it for each event would disturb the measurement. */
	if (e)
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* Some interrupts begin inside another's (a vector that calls a handler): the outer one counts, and its own exit ends
 * it. The same kind twice in a row: the exit between them was not seen. */
static __always_inline struct cpu_row *hard_enter(__u64 now, __u64 kind)
{
	struct cpu_row *row = here();

	if (row && (!row->hard_start || row->hard_kind == kind)) {
		row->hard_start = now;
		row->hard_kind = kind;
	}
	return row;
}

/* No row for the exit of an interrupt already in progress when counting began: it is no event either. */
static __always_inline struct cpu_row *hard_exit(__u64 now, __u64 kind)
{
	struct cpu_row *row = here();

	if (!row || (row->hard_start && row->hard_kind != kind))
		return row;
	if (!row->hard_start) {
		row->unmatched++;
		return 0;
	}
	row->hard_ns += since(now, row->hard_start);
	row->hard_start = 0;
	return row;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(rxpath_irq_handler_entry, int irq, struct irqaction *action)
{
	__u64 now = bpf_ktime_get_ns();
	struct cpu_row *row = hard_enter(now, DEVICE + (__u64)(__u32)irq);
	struct irq_key key = { .irq = irq, .cpu = bpf_get_smp_processor_id() };
	struct irq_row *line;
	struct event *e;

	if (!row)
		return 0;
	row->device_interrupts++;
	if (row->last_interrupt)
		row->gap_ns[time_bucket(since(now, row->last_interrupt))]++;
	row->last_interrupt = now;
	line = bpf_map_lookup_elem(&irqs, &key);
	if (!line) {
		struct irq_row fresh = {};

		bpf_probe_read_kernel_str(fresh.name, sizeof(fresh.name), action->name);
		bpf_map_update_elem(&irqs, &key, &fresh, BPF_NOEXIST);
		line = bpf_map_lookup_elem(&irqs, &key);
	}
	if (line) {
		line->count++;
		/* No time of a pause. */
		if (line->last > row->turn_start)
			line->gap_ns[time_bucket(since(now, line->last))]++;
		line->last = now;
	} else {
		row->lost_rows++;
	}
	e = event(row, now, IRQ_ENTRY, irq);
	if (e)
		bpf_probe_read_kernel_str(e->name, sizeof(e->name), action->name);
	submit(e);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(rxpath_irq_handler_exit, int irq)
{
	__u64 now = bpf_ktime_get_ns();
	struct cpu_row *row = hard_exit(now, DEVICE + (__u64)(__u32)irq);

	if (row)
		submit(event(row, now, IRQ_EXIT, irq));
	return 0;
}

static __always_inline int vector_enter(__u64 number)
{
	__u64 now = bpf_ktime_get_ns();
	struct cpu_row *row = hard_enter(now, number);

	if (row) {
		row->other_interrupts++;
		submit(event(row, now, VECTOR_ENTRY, number));
	}
	return 0;
}

static __always_inline int vector_exit(__u64 number)
{
	__u64 now = bpf_ktime_get_ns();
	struct cpu_row *row = hard_exit(now, number);

	if (row)
		submit(event(row, now, VECTOR_EXIT, number));
	return 0;
}

VECTORS(vector_enter, vector_exit)

SEC("tp_btf/softirq_entry")
int BPF_PROG(rxpath_softirq_entry, unsigned int vector)
{
	struct cpu_row *row = here();
	__u64 now;

	if (!row)
		return 0;
	now = bpf_ktime_get_ns();
	row->soft_hard = row->hard_ns;
	row->poll_start = now;
	row->soft_start = now;
	row->soft_vector = vector;
	row->pass_packets_before = row->packets;
	submit(event(row, now, SOFTIRQ_ENTRY, vector));
	return 0;
}

/* Whether the running task is ksoftirqd/N, by the first eight bytes of its name. */
static __always_inline bool in_ksoftirqd(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const char name[8] = { 'k', 's', 'o', 'f', 't', 'i', 'r', 'q' };
	__u64 comm = 0;

	/* One load, which saves most softirqs the call below. */
	if (!(task->flags & PF_KTHREAD))
		return false;
	bpf_probe_read_kernel(&comm, sizeof(comm), task->comm);
	return comm == *(const __u64 *)name;
}

/* Sums for a linear fit of time over packets. A run longer than a millisecond was delayed by something else. */
static __always_inline void add_pass(struct cpu_row *row, __u64 ns)
{
	__u64 packets = row->packets - row->pass_packets_before;

	if (!packets || ns > 1000000)
		return;
	row->passes[0]++;
	row->passes[1] += packets;
	row->passes[2] += packets * packets;
	row->passes[3] += ns;
	row->passes[4] += packets * ns;
	row->squares += (ns >> 4) * (ns >> 4);
}

/* Charges the time of the softirq up to now, the first part of it where a turn ends in it, and gives it. */
static __always_inline __u64 end_softirq(struct cpu_row *row, __u64 now, unsigned int vector)
{
	__u64 ns = since(since(now, row->soft_start), since(row->hard_ns, row->soft_hard));

	row->soft_start = 0;
	row->soft[vector & (MAX_VECTORS - 1)].ns += ns;
	if (vector == NET_RX_VECTOR && in_ksoftirqd())
		row->ksoftirqd_ns += ns;
	return ns;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(rxpath_softirq_exit, unsigned int vector)
{
	struct cpu_row *row = here();
	__u64 now, ns;

	if (!row)
		return 0;
	vector &= MAX_VECTORS - 1;
	if (!row->soft_start) {
		if (row->soft_vector != NO_VECTOR) {
			row->unmatched++;
			return 0;
		}
		/* It was in progress when the duty cycle began: its part in the cycle counts. */
		row->soft_start = row->turn_start;
		row->soft_hard = row->turn_hard;
		row->soft_vector = vector;
		row->pass_packets_before = row->packets;
	}
	now = bpf_ktime_get_ns();
	ns = end_softirq(row, now, vector);
	row->soft[vector].runs++;
	if (vector == NET_RX_VECTOR) {
		row->rx_ns[time_bucket(ns)]++;
		add_pass(row, ns);
		if (ns > row->longest_rx_ns)
			row->longest_rx_ns = ns;
		if (in_ksoftirqd())
			row->ksoftirqd_runs++;
	}
	submit(event(row, now, SOFTIRQ_EXIT, vector));
	return 0;
}

/* The place of a NAPI that has one. */
static __always_inline struct napi_slot *slot_of(struct cpu_row *row, struct napi_struct *napi, struct net *net)
{
	__u32 id = napi->napi_id;

	/* Mostly that of the poll before. */
	for (int i = 0; i < SLOTS; i++) {
		__u32 at = (row->last_slot + i) & (SLOTS - 1);
		struct napi_slot *slot = &row->slots[at];

		if (slot->napi == (__u64)napi && slot->napi_id == id && slot->net == (__u64)net) {
			row->last_slot = at;
			return slot;
		}
	}
	return 0;
}

/* Gives a NAPI a place, while there is a free one. */
static __always_inline struct napi_slot *take_slot(struct cpu_row *row, struct napi_struct *napi, struct net *net,
						   const struct napi_key *key)
{
	struct net_device *dev = napi->dev;

	for (int i = 0; i < SLOTS; i++) {
		struct napi_slot *slot = &row->slots[i];

		if (slot->napi)
			continue;
		slot->napi_id = key->napi_id;
		slot->ifindex = key->ifindex;
		slot->netns = key->netns;
		slot->net = (__u64)net;
		if (dev)
			bpf_probe_read_kernel_str(slot->row.dev, sizeof(slot->row.dev), dev->name);
		/* Last: a reader takes it for free until then. */
		slot->napi = (__u64)napi;
		return slot;
	}
	return 0;
}

/* The row in the map of a NAPI that found no place. */
static __always_inline struct napi_row *row_in_map(struct napi_struct *napi, const struct napi_key *key)
{
	struct napi_row *row = bpf_map_lookup_elem(&napis, key);
	struct net_device *dev = napi->dev;
	struct napi_row fresh = {};

	if (row)
		return row;
	if (dev)
		bpf_probe_read_kernel_str(fresh.dev, sizeof(fresh.dev), dev->name);
	bpf_map_update_elem(&napis, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&napis, key);
}

SEC("tp_btf/napi_poll")
int BPF_PROG(rxpath_napi_poll, struct napi_struct *napi, int work, int budget)
{
	struct cpu_row *row = here();
	struct net_device *dev = napi->dev;
	struct net *net = dev ? dev->nd_net.net : 0;
	__u64 packets = work > 0 ? work : 0;
	__u64 exhausted = budget > 0 && work >= budget;
	struct napi_slot *slot;
	struct napi_row *line;
	struct event *e;
	__u64 now, ns;

	if (!row)
		return 0;
	now = bpf_ktime_get_ns();
	/* Polls outside a softirq (threaded NAPI, busy polling) have no start here: their time is not counted. */
	ns = row->soft_start ? since(now, row->poll_start) : 0;
	row->poll_start = now;
	slot = slot_of(row, napi, net);
	line = slot ? &slot->row : 0;
	if (!slot) {
		struct napi_key key = { .napi_id = napi->napi_id, .cpu = bpf_get_smp_processor_id() };

		if (dev)
			key.ifindex = dev->ifindex;
		if (net)
			key.netns = net->ns.inum;
		if ((config.ifindex && config.ifindex != key.ifindex) || (config.netns && config.netns != key.netns))
			return 0;
		slot = take_slot(row, napi, net, &key);
		line = slot ? &slot->row : row_in_map(napi, &key);
	}
	if (line) {
		line->polls++;
		line->packets += packets;
		line->exhausted += exhausted;
		line->ns += ns;
		line->work[work_bucket(packets)]++;
	} else {
		row->lost_rows++;
	}
	row->polls++;
	row->packets += packets;
	row->exhausted += exhausted;
	row->work[work_bucket(packets)]++;
	e = event(row, now, NAPI_POLL, napi->napi_id);
	if (e) {
		e->work = work;
		e->budget = budget;
		if (dev)
			bpf_probe_read_kernel_str(e->name, sizeof(e->name), dev->name);
	}
	submit(e);
	return 0;
}

/*
 * A turn begins on the CPU that it runs on, and ends there. The reader runs them on each CPU, in an interrupt of it,
 * while nothing is counted: just before counting begins and right after it ended.
 */
SEC("raw_tp/rxpath_begin")
int rxpath_begin_turn(void *ctx)
{
	struct cpu_row *row = this_cpu();

	if (!row)
		return 1;
	row->hard_start = 0;
	row->soft_start = 0;
	row->soft_vector = NO_VECTOR;
	row->last_interrupt = 0;
	row->turn_hard = row->hard_ns;
	row->turn_start = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/rxpath_end")
int rxpath_end_turn(void *ctx)
{
	struct cpu_row *row = this_cpu();

	if (!row)
		return 1;
	if (row->soft_start)
		end_softirq(row, bpf_ktime_get_ns(), row->soft_vector);
	return 0;
}
