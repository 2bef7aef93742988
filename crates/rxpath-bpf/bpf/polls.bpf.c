// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What the receive side of each CPU did: interrupts, softirq runs, NAPI polls with their packets, as counts and
 * histograms (polling.h); on request also one by one, as events in a ring buffer.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include <bpf/bpf_core_read.h>
#include "cpus.h"
#include "polling.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the reader before loading. */
const volatile struct {
	__u32 events; /* write events as well */
	struct napis_wanted napis;
	__u32 pad;
	struct cpus_wanted cpus; /* only their events; rows are chosen by the reader */
} config;

/* The reader knows the layout (src/polls/timeline.rs). */
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

LAYOUT(struct event, 64);

/* A page, unless events are requested: then the reader makes it larger. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* An event of a row; none without one. */
static __always_inline struct event *event(struct cpu_row *row, __u64 now, __u32 kind, __u32 number)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct event *e;

	if (!row || !config.events || !is_cpu_wanted(&config.cpus, cpu))
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

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(rxpath_irq_handler_entry, int irq, struct irqaction *action)
{
	__u64 now = bpf_ktime_get_ns();
	struct event *e = event(polls_irq_entry(now, irq, action), now, IRQ_ENTRY, irq);

	if (e)
		bpf_probe_read_kernel_str(e->name, sizeof(e->name), action->name);
	submit(e);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(rxpath_irq_handler_exit, int irq)
{
	__u64 now = bpf_ktime_get_ns();

	submit(event(polls_hard_exit(now, DEVICE + (__u64)(__u32)irq), now, IRQ_EXIT, irq));
	return 0;
}

static __always_inline int vector_enter(__u64 number)
{
	__u64 now = bpf_ktime_get_ns();

	submit(event(polls_vector_entry(now, number), now, VECTOR_ENTRY, number));
	return 0;
}

static __always_inline int vector_exit(__u64 number)
{
	__u64 now = bpf_ktime_get_ns();

	submit(event(polls_hard_exit(now, number), now, VECTOR_EXIT, number));
	return 0;
}

VECTORS(vector_enter, vector_exit)

SEC("tp_btf/softirq_entry")
int BPF_PROG(rxpath_softirq_entry, unsigned int vector)
{
	__u64 now = bpf_ktime_get_ns();

	submit(event(polls_softirq_entry(now, vector), now, SOFTIRQ_ENTRY, vector));
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(rxpath_softirq_exit, unsigned int vector)
{
	__u64 now = bpf_ktime_get_ns();

	submit(event(polls_softirq_exit(now, vector), now, SOFTIRQ_EXIT, vector & (POLLED_VECTORS - 1)));
	return 0;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(rxpath_napi_poll, struct napi_struct *napi, int work, int budget)
{
	__u64 now = bpf_ktime_get_ns();
	struct event *e = event(polls_napi_poll(now, napi, work, budget, &config.napis), now, NAPI_POLL, napi->napi_id);
	struct net_device *dev = napi->dev;

	if (e) {
		e->work = work;
		e->budget = budget;
		if (dev)
			bpf_probe_read_kernel_str(e->name, sizeof(e->name), dev->name);
	}
	submit(e);
	return 0;
}
