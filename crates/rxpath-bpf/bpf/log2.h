/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef RXPATH_LOG2_H
#define RXPATH_LOG2_H

/* Bucket 0 holds 0, bucket n holds 2^(n-1) to 2^n - 1, the last all that is larger. */
static __always_inline __u32 log2_bucket(__u64 value, __u32 buckets)
{
	__u32 bucket = 0;

	if (value >> 32) {
		bucket += 32;
		value >>= 32;
	}
	if (value >> 16) {
		bucket += 16;
		value >>= 16;
	}
	if (value >> 8) {
		bucket += 8;
		value >>= 8;
	}
	if (value >> 4) {
		bucket += 4;
		value >>= 4;
	}
	if (value >> 2) {
		bucket += 2;
		value >>= 2;
	}
	if (value >> 1) {
		bucket += 1;
		value >>= 1;
	}
	bucket += value ? 1 : 0;
	return bucket < buckets ? bucket : buckets - 1;
}

/*
 * With 2^bits steps in each power of two. Values below 2^bits have a bucket each; with no bits it is log2_bucket.
 */
static __always_inline __u32 step_bucket(__u64 value, __u32 bits, __u32 buckets)
{
	__u32 power = log2_bucket(value, 65);
	__u32 bucket;

	if (power <= bits)
		return value;
	/* The highest bit is dropped, those behind it are the step. */
	bucket = ((power - bits) << bits) | ((value >> (power - 1 - bits)) & ((1u << bits) - 1));
	return bucket < buckets ? bucket : buckets - 1;
}

#endif
