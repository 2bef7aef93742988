/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the account keeps: a scratch area for each CPU, a row for each task on each CPU, and a row for each device's
 * polls in that task's time. The reader knows the layout (src/account/row.rs).
 */
#ifndef RXPATH_ACCOUNT_H
#define RXPATH_ACCOUNT_H

#include "layout.h"

#define MAX_VECTORS 10

/* What a CPU's time is charged to, in addition to the task itself. The reader knows the order (src/account/row.rs). */
enum total {
	HARDIRQ_NS,
	/* Softirqs that something other than the running task raised: receive, transmit, other. */
	TAKEN_NET_RX_NS,
	TAKEN_NET_TX_NS,
	TAKEN_OTHER_NS,
	/* Softirqs that the running task raised by its own work. */
	OWN_NET_NS,
	OWN_OTHER_NS,
	/* Network softirqs raised by both: batches that cannot be divided. */
	MIXED_NET_NS,
	/* Of the taken network softirqs: those that interrupted user mode, where the task cannot have raised them. */
	FROM_USER_NS,
	/* Of the task's own: those that interrupted user mode, which contradicts it. */
	OWN_FROM_USER_NS,
	/* Interrupts that arrived outside softirqs: each costs its entry and exit in addition to the measured time. */
	INTERRUPTS,
	DEVICE_INTERRUPTS,
	SOFTIRQ_RUNS,
	/* Packets of receive polls in taken softirqs. */
	TAKEN_POLL_PACKETS,
	/* Of the taken other softirqs: functions of the network that ran in them. */
	TAKEN_OTHER_NETWORK_NS,
	TOTALS,
};

/* Who raised a softirq. */
enum raiser {
	BY_TASK = 1,
	BY_INTERRUPT = 2,
};

struct task_key {
	__u64 start_ns;
	__u32 pid;
	__u32 cpu;
	/* Rows are kept twice, and each reading switches to the other half: work of the CPU while the rows are read is
	 * charged to the half that is not. */
	__u32 half;
	__u32 pad;
};

struct task_row {
	__u64 total[TOTALS];
	__u64 on_cpu_ns;
	__u64 runtime_ns;   /* what the scheduler charged: the base of what top shows */
	__u64 run_delay_ns; /* waits on the run queue that ended, each from the last reading at most */
	__u64 slices;
	__u64 first_ns; /* end of its first slice here */
	__u64 last_ns;  /* of its last */
	__u32 tgid;
	__u32 parent; /* at the first slice: an orphaned process gets another */
	__u32 flags;
	__u32 pad;
	char comm[16];
	__u64 cgroup; /* id of its group at the last slice; 0 on kernels without groups */
};

struct culprit_key {
	__u64 start_ns;
	__u32 pid;
	__u32 cpu;
	__u32 napi_id;
	__u32 ifindex;
	__u32 netns;
	__u32 pad;
};

struct culprit_row {
	__u64 ns;
	__u64 polls;
	__u64 packets;
	char dev[16];
};

/* One per CPU; only that CPU writes to it. What each softirq touches stands first, and together. */
struct scratch {
	__u64 window_start; /* the last reading, or the begin of the turn; 0 while nothing is counted */
	__u64 hard_start;
	__u64 soft_start;
	__u64 soft_hard; /* total[HARDIRQ_NS] when the softirq began */
	__u32 soft_vector;
	__u32 soft_raisers;
	__u64 changes; /* of the totals: an interrupted reading sees that it changed */
	__u64 poll_start;
	__u64 poll_hard;
	__u64 function_start; /* of a function of the network in a softirq of another kind */
	__u64 function_hard;

	__u64 total[TOTALS];
	__u64 hard_kind; /* enum vector, of what began the hard interrupt */
	__u32 raised[MAX_VECTORS];
	__u64 interrupts_at_raise; /* of a network softirq by the task */

	__u64 slice_start;
	__u64 runtime_base;
	__u64 delay_base;
	__u64 base_pid; /* whose bases they are */
	__u64 window_end;
	__u64 lost_ns;   /* slices that found the map of tasks full */
	__u64 lost_slices;
	__u64 lost_polls;
	__u64 unmatched; /* exits without their entry */
	__u64 half;      /* that slices are charged to now */
	__u64 received;  /* packets whose flows were sampled */
	__u64 lost_flows; /* packets of flows that did not fit, not even folded */
	__u64 new_flows;  /* new rows of flows: the reader empties their map in time */
	__u64 first_start; /* of the first window */
	__u64 skipped_ns;  /* since then, from the end of a turn to the beginning of the next */
	__u64 switches;
	__u64 base[TOTALS];
} __attribute__((aligned(64)));

LAYOUT(struct task_key, 24);
LAYOUT(struct task_row, 200);
LAYOUT_AT(struct task_row, on_cpu_ns, 112);
LAYOUT_AT(struct task_row, tgid, 160);
LAYOUT_AT(struct task_row, comm, 176);
LAYOUT_AT(struct task_row, cgroup, 192);
LAYOUT(struct culprit_key, 32);
LAYOUT(struct culprit_row, 40);
LAYOUT(struct scratch, 512);
LAYOUT_AT(struct scratch, window_start, 0);
LAYOUT_AT(struct scratch, window_end, 280);
LAYOUT_AT(struct scratch, received, 328);
LAYOUT_AT(struct scratch, new_flows, 344);
LAYOUT_AT(struct scratch, switches, 368);

/* Functions of the network that run in softirqs of other kinds. */
#define FUNCTIONS 8

/* Set by the reader before loading. As it is here, all programs are whole: so they are tried one by one. */
const volatile struct {
	__u64 function[FUNCTIONS]; /* by address */
	struct task_row fresh;     /* a row of nothing */
	__u64 polls;               /* count polls too: one program at each tracepoint costs less than two */
} config = { .polls = 1 };

MAP(cpus, ARRAY, 1, __u32, struct scratch);

MAP(tasks, HASH, 32768, struct task_key, struct task_row);

MAP(culprits, HASH, 16384, struct culprit_key, struct culprit_row);

#endif
