// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Programs that do nothing where each softirq passes: what being called costs, which no run time tells.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/softirq_entry")
int rxpath_softirq_entry(void *ctx)
{
	return 0;
}

SEC("tp_btf/softirq_exit")
int rxpath_softirq_exit(void *ctx)
{
	return 0;
}

SEC("tp_btf/napi_poll")
int rxpath_napi_poll(void *ctx)
{
	return 0;
}
