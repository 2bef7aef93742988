/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a hard interrupt is, and the time between two readings of the clock.
 */
#ifndef RXPATH_INTERRUPTS_H
#define RXPATH_INTERRUPTS_H

/* No softirq yet since the window or turn began: an exit now belongs to a softirq that was already in progress. */
#define NO_VECTOR 0xffffffff

/* Only its own exit ends an interrupt: some begin inside another's. A vector's number in events is its index here. */
enum vector {
	LOCAL_TIMER,
	CALL_FUNCTION,
	CALL_FUNCTION_SINGLE,
	RESCHEDULE,
	IRQ_WORK,
	DEVICE, /* and more: plus the number of its line, since a handler may call those of others */
};

/* A program for the entry of a vector and one for its exit. */
#define VECTOR(name, number, enter, leave)                                                                             \
	SEC("tp_btf/" #name "_entry")                                                                                  \
	int BPF_PROG(rxpath_##name##_entry)                                                                            \
	{                                                                                                              \
		return enter(number);                                                                                  \
	}                                                                                                              \
	SEC("tp_btf/" #name "_exit")                                                                                   \
	int BPF_PROG(rxpath_##name##_exit)                                                                             \
	{                                                                                                              \
		return leave(number);                                                                                  \
	}

#define VECTORS(enter, leave)                                                                                          \
	VECTOR(local_timer, LOCAL_TIMER, enter, leave)                                                                 \
	VECTOR(call_function, CALL_FUNCTION, enter, leave)                                                             \
	VECTOR(call_function_single, CALL_FUNCTION_SINGLE, enter, leave)                                               \
	VECTOR(reschedule, RESCHEDULE, enter, leave)                                                                   \
	VECTOR(irq_work, IRQ_WORK, enter, leave)

static __always_inline __u64 since(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
}

#endif
