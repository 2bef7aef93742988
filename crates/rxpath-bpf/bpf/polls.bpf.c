// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What the receive side of each CPU did: interrupts, softirq runs, NAPI polls with their packets, as counts and
 * histograms; on request also one by one, as events in a ring buffer.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "log2.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Powers of two, of which a mask makes a bound that every verifier follows; the kernel has 10 softirqs. */
#define MAX_VECTORS 16
#define NET_RX_VECTOR 3
#define POLL_BUCKETS 16
#define TIME_BUCKETS 32

/* Set by the reader before loading. */
const volatile struct {
	__u32 events;   /* write events as well */
	__u32 ifindex;  /* only polls of this device, unless 0 */
	__u32 netns;    /* ... in this namespace, unless 0 */
	__u32 has_cpus; /* only events of the CPUs in the mask */
	__u64 cpus[16]; /* 1024 CPUs; others are always seen */
} config;

/* NAPIs that a CPU polls most have a place here: no hash to compute, and a line or two of cache. */
#define SLOTS 4

struct napi_slot {
	__u64 napi; /* its address, 0 for a free place */
	__u64 net;  /* and that of its device's namespace, into which it may have moved */
	__u32 napi_id;
	__u32 ifindex;
	__u32 netns;
	__u32 pad;
	__u64 polls;
	__u64 packets;
	__u64 exhausted;
	__u64 ns;
	__u64 work[POLL_BUCKETS];
	char dev[16];
	__u64 unused[6];
};

struct softirq_row {
	__u64 runs;
	__u64 ns;
};

/* What each softirq touches stands first, and together. */
struct cpu_row {
	__u64 hard_start;
	__u64 hard_kind; /* of what began it: enum vector, or DEVICE and more for a device's handler */
	__u64 soft_start;
	__u64 soft_hard;
	__u64 hard_ns;
	__u64 poll_start;
	__u64 packets;
	__u64 pass_packets_before;

	__u64 polls;
	__u64 exhausted;
	__u64 last_slot;
	__u64 passes[5]; /* of NET_RX runs with packets: n, w, w*w, t, w*t; w packets, t ns */

	__u64 squares; /* ... (t/16)*(t/16) */
	__u64 longest_rx_ns;
	__u64 ksoftirqd_runs; /* of NET_RX */
	__u64 ksoftirqd_ns;
	__u64 last_interrupt;
	__u64 device_interrupts;
	__u64 other_interrupts;
	__u64 lost_events;

	__u64 lost_rows;
	__u64 unmatched;
	__u64 unused[6];
	struct softirq_row soft[MAX_VECTORS];
	__u64 rx_ns[TIME_BUCKETS];  /* length of NET_RX runs */
	__u64 gap_ns[TIME_BUCKETS]; /* from one device interrupt to the next */
	__u64 work[POLL_BUCKETS];   /* packets of a poll */
	struct napi_slot slots[SLOTS];
} __attribute__((aligned(64)));

struct napi_key {
	__u32 napi_id;
	__u32 ifindex;
	__u32 netns;
	__u32 cpu;
};

struct napi_row {
	__u64 polls;
	__u64 packets;
	__u64 exhausted;
	__u64 ns;
	__u64 work[POLL_BUCKETS];
	char dev[16];
};

struct irq_key {
	__u32 irq;
	__u32 cpu;
};

struct irq_row {
	__u64 count;
	__u64 last;
	__u64 gap_ns[TIME_BUCKETS];
	char name[32];
};

enum event_kind {
	IRQ_ENTRY,
	IRQ_EXIT,
	VECTOR_ENTRY,
	VECTOR_EXIT,
	SOFTIRQ_ENTRY,
	SOFTIRQ_EXIT,
	NAPI_POLL,
};

struct event {
	__u64 ns;
	__u32 cpu;
	__u32 kind;
	__u32 number; /* irq, vector or napi id */
	__s32 work;
	__s32 budget;
	__u32 pid;
	char comm[16];
	char name[16]; /* device or handler */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_row);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct napi_key);
	__type(value, struct napi_row);
} napis SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct irq_key);
	__type(value, struct irq_row);
} irqs SEC(".maps");

/* A page, unless events are asked for: then the reader makes it larger. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* One kind of interrupt that is no device's. The vector's number in events is its place in this list. */
enum vector {
	LOCAL_TIMER,
	CALL_FUNCTION,
	CALL_FUNCTION_SINGLE,
	RESCHEDULE,
	IRQ_WORK,
	DEVICE, /* and more: plus the number of its line, since a handler may call those of others */
};

static __always_inline struct cpu_row *here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline __u64 since(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
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

	if (!config.events)
		return 0;
	if (config.has_cpus && cpu < 1024 && !(config.cpus[(cpu >> 6) & 15] >> (cpu & 63) & 1))
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
	/* The reader looks a few times a second: waking it for each event would be seen in what it measures. */
	if (e)
		bpf_ringbuf_submit(e, 1 /* BPF_RB_NO_WAKEUP */);
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

static __always_inline struct cpu_row *hard_exit(__u64 now, __u64 kind)
{
	struct cpu_row *row = here();

	if (!row || (row->hard_start && row->hard_kind != kind))
		return row;
	if (row->hard_start)
		row->hard_ns += since(now, row->hard_start);
	else
		row->unmatched++;
	row->hard_start = 0;
	return row;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq, struct irqaction *action)
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
		if (line->last)
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
int BPF_PROG(irq_handler_exit, int irq)
{
	__u64 now = bpf_ktime_get_ns();
	struct cpu_row *row = hard_exit(now, DEVICE + (__u64)(__u32)irq);

	if (row)
		submit(event(row, now, IRQ_EXIT, irq));
	return 0;
}

#define VECTOR(name, number)                                                                                           \
	SEC("tp_btf/" #name "_entry")                                                                                  \
	int BPF_PROG(name##_entry)                                                                                     \
	{                                                                                                              \
		__u64 now = bpf_ktime_get_ns();                                                                        \
		struct cpu_row *row = hard_enter(now, number);                                                         \
		if (row) {                                                                                             \
			row->other_interrupts++;                                                                       \
			submit(event(row, now, VECTOR_ENTRY, number));                                                 \
		}                                                                                                      \
		return 0;                                                                                              \
	}                                                                                                              \
	SEC("tp_btf/" #name "_exit")                                                                                   \
	int BPF_PROG(name##_exit)                                                                                      \
	{                                                                                                              \
		__u64 now = bpf_ktime_get_ns();                                                                        \
		struct cpu_row *row = hard_exit(now, number);                                                          \
		if (row)                                                                                               \
			submit(event(row, now, VECTOR_EXIT, number));                                                  \
		return 0;                                                                                              \
	}

VECTOR(local_timer, LOCAL_TIMER)
VECTOR(call_function, CALL_FUNCTION)
VECTOR(call_function_single, CALL_FUNCTION_SINGLE)
VECTOR(reschedule, RESCHEDULE)
VECTOR(irq_work, IRQ_WORK)

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int vector)
{
	struct cpu_row *row = here();
	__u64 now;

	if (!row)
		return 0;
	now = bpf_ktime_get_ns();
	row->soft_hard = row->hard_ns;
	row->poll_start = now;
	row->soft_start = now;
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

	/* One load, which spares most softirqs the call below. */
	if (!(task->flags & PF_KTHREAD))
		return false;
	bpf_probe_read_kernel(&comm, sizeof(comm), task->comm);
	return comm == *(const __u64 *)name;
}

/* Sums for a line through time against packets. What took longer than a millisecond was held up by something else. */
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

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
	struct cpu_row *row = here();
	__u64 now, ns;

	if (!row)
		return 0;
	vector &= MAX_VECTORS - 1;
	if (!row->soft_start) {
		row->unmatched++;
		return 0;
	}
	now = bpf_ktime_get_ns();
	ns = since(since(now, row->soft_start), since(row->hard_ns, row->soft_hard));
	row->soft_start = 0;
	row->soft[vector].runs++;
	row->soft[vector].ns += ns;
	if (vector == NET_RX_VECTOR) {
		row->rx_ns[time_bucket(ns)]++;
		add_pass(row, ns);
		if (ns > row->longest_rx_ns)
			row->longest_rx_ns = ns;
		if (in_ksoftirqd()) {
			row->ksoftirqd_runs++;
			row->ksoftirqd_ns += ns;
		}
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
			bpf_probe_read_kernel_str(slot->dev, sizeof(slot->dev), dev->name);
		/* Last: a reader takes it for free until then. */
		slot->napi = (__u64)napi;
		return slot;
	}
	return 0;
}

/* A poll of a NAPI that found no place. */
static __always_inline void count_in_map(struct cpu_row *row, struct napi_struct *napi, const struct napi_key *key,
					 const struct napi_row *poll)
{
	struct napi_row *line = bpf_map_lookup_elem(&napis, key);
	struct net_device *dev = napi->dev;

	if (!line) {
		struct napi_row fresh = {};

		if (dev)
			bpf_probe_read_kernel_str(fresh.dev, sizeof(fresh.dev), dev->name);
		bpf_map_update_elem(&napis, key, &fresh, BPF_NOEXIST);
		line = bpf_map_lookup_elem(&napis, key);
	}
	if (!line) {
		row->lost_rows++;
		return;
	}
	line->polls++;
	line->packets += poll->packets;
	line->exhausted += poll->exhausted;
	line->ns += poll->ns;
	line->work[work_bucket(poll->packets)]++;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(napi_poll, struct napi_struct *napi, int work, int budget)
{
	struct cpu_row *row = here();
	struct net_device *dev = napi->dev;
	struct net *net = dev ? dev->nd_net.net : 0;
	struct napi_row poll = {};
	struct napi_slot *slot;
	struct event *e;
	__u64 now;

	if (!row)
		return 0;
	now = bpf_ktime_get_ns();
	poll.packets = work > 0 ? work : 0;
	poll.exhausted = budget > 0 && work >= budget;
	/* Polls outside a softirq (threaded NAPI, busy polling) have no start here: their time is not counted. */
	poll.ns = row->soft_start ? since(now, row->poll_start) : 0;
	row->poll_start = now;
	slot = slot_of(row, napi, net);
	if (!slot) {
		struct napi_key key = { .napi_id = napi->napi_id, .cpu = bpf_get_smp_processor_id() };

		if (dev)
			key.ifindex = dev->ifindex;
		if (net)
			key.netns = net->ns.inum;
		if ((config.ifindex && config.ifindex != key.ifindex) || (config.netns && config.netns != key.netns))
			return 0;
		slot = take_slot(row, napi, net, &key);
		if (!slot)
			count_in_map(row, napi, &key, &poll);
	}
	if (slot) {
		slot->polls++;
		slot->packets += poll.packets;
		slot->exhausted += poll.exhausted;
		slot->ns += poll.ns;
		slot->work[work_bucket(poll.packets)]++;
	}
	row->polls++;
	row->packets += poll.packets;
	row->exhausted += poll.exhausted;
	row->work[work_bucket(poll.packets)]++;
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
