/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Records that did not fit in the maps of an object. Its reader sums them (object.rs `lost`).
 */
#ifndef RXPATH_LOST_H
#define RXPATH_LOST_H

#include "layout.h"

MAP(lost, ARRAY, 1, __u32, __u64);

static __always_inline void count_lost(void)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&lost, &zero);

	if (count)
		__sync_fetch_and_add(count, 1);
}

#endif
