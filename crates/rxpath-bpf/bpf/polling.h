/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is counted of polls at each tracepoint: called by the programs of polls.bpf.c, and of account.bpf.c, so that a
 * live view has one program at each tracepoint for both. Each part gives the row of its CPU, or 0 if it counted nothing.
 */
#ifndef RXPATH_POLLING_H
#define RXPATH_POLLING_H

#include "counting.h"
#include "interrupts.h"
#include "log2.h"
#include "polls.h"

/* Which NAPIs are counted: part of a program's `config`. */
struct napis_wanted {
	__u32 ifindex; /* only those of this device, unless 0 */
	__u32 netns;   /* ... in this namespace, unless 0 */
};

static __always_inline struct cpu_row *polls_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&polled, &cpu);
}

/* The same; none before all programs are attached, or between two duty cycles. */
static __always_inline struct cpu_row *polls_here(void)
{
	return counting ? polls_cpu() : 0;
}

static __always_inline __u32 time_bucket(__u64 ns)
{
	return log2_bucket(ns, TIME_BUCKETS) & (TIME_BUCKETS - 1);
}

static __always_inline __u32 work_bucket(__u32 packets)
{
	return log2_bucket(packets, POLL_BUCKETS) & (POLL_BUCKETS - 1);
}

/* Some interrupts begin inside another's (a vector that calls a handler): the outer one counts, and its own exit ends
 * it. The same kind twice in a row: the exit between them was not seen. */
static __always_inline struct cpu_row *polls_hard_enter(__u64 now, __u64 kind)
{
	struct cpu_row *row = polls_here();

	if (row && (!row->hard_start || row->hard_kind == kind)) {
		row->hard_start = now;
		row->hard_kind = kind;
	}
	return row;
}

/* No row for the exit of an interrupt already in progress when counting began: it is no event either. */
static __always_inline struct cpu_row *polls_hard_exit(__u64 now, __u64 kind)
{
	struct cpu_row *row = polls_here();

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

static __always_inline struct cpu_row *polls_irq_entry(__u64 now, int irq, struct irqaction *action)
{
	struct cpu_row *row = polls_hard_enter(now, DEVICE + (__u64)(__u32)irq);
	struct irq_key key = { .irq = irq, .cpu = bpf_get_smp_processor_id() };
	struct irq_row *line;

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
	return row;
}

static __always_inline struct cpu_row *polls_vector_entry(__u64 now, __u64 number)
{
	struct cpu_row *row = polls_hard_enter(now, number);

	if (row)
		row->other_interrupts++;
	return row;
}

static __always_inline struct cpu_row *polls_softirq_entry(__u64 now, unsigned int vector)
{
	struct cpu_row *row = polls_here();

	if (!row)
		return 0;
	row->soft_hard = row->hard_ns;
	row->poll_start = now;
	row->soft_start = now;
	row->soft_vector = vector;
	row->pass_packets_before = row->packets;
	return row;
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
static __always_inline __u64 polls_end_softirq(struct cpu_row *row, __u64 now, unsigned int vector)
{
	__u64 ns = since(since(now, row->soft_start), since(row->hard_ns, row->soft_hard));

	row->soft_start = 0;
	row->soft[vector & (POLLED_VECTORS - 1)].ns += ns;
	if (vector == NET_RX_VECTOR && in_ksoftirqd())
		row->ksoftirqd_ns += ns;
	return ns;
}

static __always_inline struct cpu_row *polls_softirq_exit(__u64 now, unsigned int vector)
{
	struct cpu_row *row = polls_here();
	__u64 ns;

	if (!row)
		return 0;
	vector &= POLLED_VECTORS - 1;
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
	ns = polls_end_softirq(row, now, vector);
	row->soft[vector].runs++;
	if (vector == NET_RX_VECTOR) {
		row->rx_ns[time_bucket(ns)]++;
		add_pass(row, ns);
		if (ns > row->longest_rx_ns)
			row->longest_rx_ns = ns;
		if (in_ksoftirqd())
			row->ksoftirqd_runs++;
	}
	return row;
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

static __always_inline struct cpu_row *polls_napi_poll(__u64 now, struct napi_struct *napi, int work, int budget,
							const volatile struct napis_wanted *wanted)
{
	struct cpu_row *row = polls_here();
	struct net_device *dev = napi->dev;
	struct net *net = dev ? dev->nd_net.net : 0;
	__u64 packets = work > 0 ? work : 0;
	__u64 exhausted = budget > 0 && work >= budget;
	struct napi_slot *slot;
	struct napi_row *line;
	__u64 ns;

	if (!row)
		return 0;
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
		if (wanted && ((wanted->ifindex && wanted->ifindex != key.ifindex) ||
			       (wanted->netns && wanted->netns != key.netns)))
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
	return row;
}

/*
 * A turn begins on the CPU that it runs on. The reader runs it on each CPU, in an interrupt of it, just before counting
 * begins.
 */
static __always_inline int polls_begin_turn(void)
{
	struct cpu_row *row = polls_cpu();

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

/* A turn ends there: run right after counting ended. */
static __always_inline int polls_end_turn(void)
{
	struct cpu_row *row = polls_cpu();

	if (!row)
		return 1;
	if (row->soft_start)
		polls_end_softirq(row, bpf_ktime_get_ns(), row->soft_vector);
	return 0;
}

#endif
