/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the polls keep: a row for each CPU with the NAPIs that it polls most, rows of other NAPIs and of interrupt
 * lines. The reader knows the layout (src/polls/row.rs).
 */
#ifndef RXPATH_POLLS_H
#define RXPATH_POLLS_H

#include "layout.h"

/* Powers of two, of which a mask makes a bound that every verifier follows; the kernel has 10 softirqs. */
#define POLLED_VECTORS 16
#define POLL_BUCKETS 16
#define TIME_BUCKETS 32

struct napi_row {
	__u64 polls;
	__u64 packets;
	__u64 exhausted;
	__u64 ns;
	__u64 work[POLL_BUCKETS];
	char dev[16];
};

/* NAPIs that a CPU polls most have a place here: no hash to compute, and a line or two of cache. */
#define SLOTS 4

struct napi_slot {
	__u64 napi; /* its address, 0 for a free place */
	__u64 net;  /* and that of its device's namespace, into which it may have moved */
	__u32 napi_id;
	__u32 ifindex;
	__u32 netns;
	__u32 pad;
	struct napi_row row;
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
	__u32 last_slot;
	__u32 soft_vector;
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
	__u64 turn_start; /* 0 where all is counted in one turn */
	__u64 turn_hard;  /* hard_ns then */
	__u64 unused[4];
	struct softirq_row soft[POLLED_VECTORS];
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

LAYOUT(struct cpu_row, 2176);
LAYOUT_AT(struct cpu_row, hard_ns, 32);
LAYOUT_AT(struct cpu_row, polls, 64);
LAYOUT_AT(struct cpu_row, squares, 128);
LAYOUT_AT(struct cpu_row, lost_rows, 192);
LAYOUT_AT(struct cpu_row, soft, 256);
LAYOUT_AT(struct cpu_row, slots, 1152);
LAYOUT(struct napi_slot, 256);
LAYOUT(struct napi_key, 16);
LAYOUT(struct napi_row, 176);
LAYOUT(struct irq_key, 8);
LAYOUT(struct irq_row, 304);

MAP(polled, ARRAY, 1, __u32, struct cpu_row);

MAP(napis, HASH, 8192, struct napi_key, struct napi_row);

MAP(irqs, HASH, 8192, struct irq_key, struct irq_row);

#endif
