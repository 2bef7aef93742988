/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The window of a CPU, and the turn of its polls: programs that the reader runs there.
 */
#ifndef RXPATH_WINDOWS_H
#define RXPATH_WINDOWS_H

/* The first window of a CPU begins, or the next turn. What an interrupt or a softirq did before is not counted. */
static __always_inline void begin_window(struct scratch *s, __u64 now, __u64 hard)
{
	if (s->first_start)
		s->skipped_ns += since(now, s->window_end);
	else
		s->first_start = now;
	s->hard_start = 0;
	s->soft_start = 0;
	s->function_start = 0;
	s->soft_vector = NO_VECTOR;
	s->soft_hard = hard;
	for (int i = 0; i < MAX_VECTORS; i++)
		s->raised[i] = 0;
	for (int i = 0; i < TOTALS; i++)
		s->base[i] = s->total[i];
	s->slice_start = now;
}

/*
 * Begins the window of the CPU that it runs on, or ends one and begins the next. The reader runs it on each CPU
 * (BPF_PROG_TEST_RUN with a CPU number): on other CPUs in an interrupt, so that nothing else there moves meanwhile. On its
 * own it is a plain call (net/bpf/test_run.c, bpf_prog_test_run_raw_tp), which an interrupt may come into:
 * then the microseconds of that are in the one window or in the other.
 */
static __always_inline int read_window(struct scratch *s)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 hard, now;

	if (!s)
		return 1;
	now = settled(s, &hard);
	if (s->window_start) {
		/* The interrupt that asks, and a softirq that it interrupted: up to now, and the rest later. */
		if (s->hard_start) {
			s->total[HARDIRQ_NS] += since(now, s->hard_start);
			s->hard_start = now;
		}
		if (s->soft_start) {
			if (s->function_start) {
				charge_function(s, now, s->total[HARDIRQ_NS]);
				s->function_start = now;
				s->function_hard = s->total[HARDIRQ_NS];
			}
			charge_softirq(s, now, s->total[HARDIRQ_NS]);
			s->soft_start = now;
			s->soft_hard = s->total[HARDIRQ_NS];
			/* So does a poll: what it took before is no later window's, and no device's. */
			s->poll_start = now;
			s->poll_hard = s->soft_hard;
		}
		s->changes++;
		end_slice(s, task, now);
	} else {
		begin_window(s, now, hard);
	}
	s->window_start = now;
	s->window_end = now;
	begin_slice(s, task);
	return 0;
}

SEC("raw_tp/rxpath_read")
int rxpath_read_window(void *ctx)
{
	struct scratch *s = here();
	bool was_counting = s && s->window_start;
	int missing = read_window(s);

	/* The rows up to here are read while the CPU goes on. Those of turns stay together until a reading. */
	if (was_counting)
		s->half ^= 1;
	return missing;
}

/* A turn ends: the window does, and none begins. */
SEC("raw_tp/rxpath_end")
int rxpath_end_window(void *ctx)
{
	struct scratch *s = in_window();

	if (!s)
		return 1;
	read_window(s);
	s->window_start = 0;
	return 0;
}

/* Polls have turns of their own: while an interrupt's cost is calibrated, windows last and no poll is counted. */
SEC("raw_tp/rxpath_begin_polls")
int rxpath_begin_polls(void *ctx)
{
	return polls_begin_turn();
}

SEC("raw_tp/rxpath_end_polls")
int rxpath_end_polls(void *ctx)
{
	return polls_end_turn();
}

#endif
