/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a hard interrupt is, and the time between two readings of the clock.
 */
#ifndef RXPATH_INTERRUPTS_H
#define RXPATH_INTERRUPTS_H

/* Only its own exit ends an interrupt: some begin inside another's. A vector's number in events is its index here. */
enum vector {
	LOCAL_TIMER,
	CALL_FUNCTION,
	CALL_FUNCTION_SINGLE,
	RESCHEDULE,
	IRQ_WORK,
	DEVICE, /* and more: plus the number of its line, since a handler may call those of others */
};

static __always_inline __u64 since(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
}

#endif
