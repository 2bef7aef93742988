/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which CPUs are traced. The verifier removes the code that the constants rule out.
 */
#ifndef RXPATH_CPUS_H
#define RXPATH_CPUS_H

/* Part of a program's `config`, set by the reader before loading. */
struct cpus_wanted {
	__u64 some;     /* only those of the mask, unless 0 */
	__u64 mask[16]; /* 1024 CPUs; others are always seen */
};

static __always_inline bool is_cpu_wanted(const volatile struct cpus_wanted *wanted, __u32 cpu)
{
	return !wanted->some || cpu >= 1024 || wanted->mask[(cpu >> 6) & 15] >> (cpu & 63) & 1;
}

#endif
