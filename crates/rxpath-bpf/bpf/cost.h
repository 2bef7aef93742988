/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What each program costs, counted by itself: its runs, and the time of one in 64, or of all where they are few. The
 * kernel's own measurement needs CAP_SYS_ADMIN, and slows the programs of everybody while it is on. The reader knows the
 * layout (src/cost/counted.rs).
 *
 * To be included behind bpf_tracing.h: programs that are defined with BPF_PROG from there on are counted.
 */
#ifndef RXPATH_COST_H
#define RXPATH_COST_H

#include "layout.h"

#define COST_ROWS 40
#define COST_TIMED 64

struct cost_row {
	__u64 runs;
	__u64 timed_runs;
	__u64 timed_ns;
};

struct costs {
	struct cost_row rows[COST_ROWS];
};

LAYOUT(struct costs, 960);

/*
 * One of so many runs is timed: 64, or 1 where the reader finds them few. Then the time begins before the row is read: on
 * a quiet CPU the row is not in the cache, and reading it is a large part of the run.
 */
volatile __u32 cost_every = COST_TIMED;

MAP(costs, PERCPU_ARRAY, 1, __u32, struct costs);

static __always_inline struct cost_row *cost_of(__u32 program)
{
	__u32 first = 0;
	struct costs *all = bpf_map_lookup_elem(&costs, &first);

	return all ? &all->rows[program] : 0;
}

/* The time now, where each run is timed. */
static __always_inline __u64 cost_first(void)
{
	return cost_every == 1 ? bpf_ktime_get_ns() : 0;
}

/* Counts a run. Gives when it began: the time that was taken, or now if it is one of the few that are timed. */
static __always_inline __u64 cost_begun(struct cost_row *row, __u64 begun)
{
	bool is_due = row && row->runs++ % COST_TIMED == 0;

	return is_due && !begun ? bpf_ktime_get_ns() : begun;
}

static __always_inline void cost_ended(struct cost_row *row, __u64 begun)
{
	if (!row || !begun)
		return;
	row->timed_ns += bpf_ktime_get_ns() - begun;
	row->timed_runs++;
}

#undef BPF_PROG
#define BPF_PROG(name, args...)                                                     \
name(unsigned long long *ctx);                                                      \
enum { cost_of_##name = __COUNTER__ };                                              \
_Static_assert(cost_of_##name < COST_ROWS, "a row for each program");               \
static __always_inline int ____##name(unsigned long long *ctx, ##args);             \
int name(unsigned long long *ctx)                                                   \
{                                                                                   \
	__u64 begun = cost_first();                                                 \
	struct cost_row *row = cost_of(cost_of_##name);                             \
	int answer;                                                                 \
                                                                                    \
	begun = cost_begun(row, begun);                                             \
	_Pragma("GCC diagnostic push")                                              \
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                      \
	answer = ____##name(___bpf_ctx_cast(args));                                 \
	_Pragma("GCC diagnostic pop")                                               \
	cost_ended(row, begun);                                                     \
	return answer;                                                              \
}                                                                                   \
static __always_inline int ____##name(unsigned long long *ctx, ##args)

#endif
