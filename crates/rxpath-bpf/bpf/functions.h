/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Functions of the network that run in softirqs of other kinds: TCP's pacing timers and small queues. Their time is a part of
 * that softirq's, by the tracepoints of timers, tasklets and work queues.
 */
#ifndef RXPATH_FUNCTIONS_H
#define RXPATH_FUNCTIONS_H

static __always_inline bool is_network(__u64 function)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		if (function && config.function[i] == function)
			return true;
	}
	return false;
}

/* A function begins in a softirq: a timer's, a tasklet's, work of a queue that runs there. Hard interrupts are not in it. */
static __always_inline int function_enter(struct scratch *s, __u64 function)
{
	__u64 hard;

	if (s->function_start || s->soft_raisers == BY_TASK || !is_network(function))
		return 0;
	s->function_start = settled(s, &hard);
	s->function_hard = hard;
	return 0;
}

/* What ran in it since then; a raiser that both had is a batch like any other. */
static __always_inline void charge_function(struct scratch *s, __u64 now, __u64 hard)
{
	__u64 ns = since(now, s->function_start);

	if (s->function_start)
		s->total[TAKEN_OTHER_NETWORK_NS] += since(ns, since(hard, s->function_hard));
	s->function_start = 0;
}

/* The scratch of a CPU that is in a softirq of this kind and in no interrupt. */
static __always_inline struct scratch *in_softirq(__u32 vector)
{
	struct scratch *s = in_window();

	return s && s->soft_start && !s->hard_start && s->soft_vector == vector ? s : 0;
}

static __always_inline int function_exit(struct scratch *s)
{
	__u64 hard, now;

	if (!s || !s->function_start)
		return 0;
	now = settled(s, &hard);
	charge_function(s, now, hard);
	s->changes++;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(rxpath_hrtimer_expire_entry, struct hrtimer *timer)
{
	struct scratch *s = in_softirq(HRTIMER_VECTOR);

	return s ? function_enter(s, (__u64)BPF_CORE_READ(timer, function)) : 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(rxpath_hrtimer_expire_exit)
{
	return function_exit(in_softirq(HRTIMER_VECTOR));
}

SEC("tp_btf/tasklet_entry")
int BPF_PROG(rxpath_tasklet_entry, void *tasklet, void *function)
{
	struct scratch *s = in_softirq(TASKLET_VECTOR);

	return s ? function_enter(s, (__u64)function) : 0;
}

SEC("tp_btf/tasklet_exit")
int BPF_PROG(rxpath_tasklet_exit)
{
	return function_exit(in_softirq(TASKLET_VECTOR));
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(rxpath_workqueue_execute_start, struct work_struct *work)
{
	struct scratch *s = in_softirq(TASKLET_VECTOR);

	return s ? function_enter(s, (__u64)BPF_CORE_READ(work, func)) : 0;
}

SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(rxpath_workqueue_execute_end)
{
	return function_exit(in_softirq(TASKLET_VECTOR));
}

#endif
