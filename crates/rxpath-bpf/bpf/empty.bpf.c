// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Programs that do nothing, on the hooks of each softirq: they show the cost of the call, which run times do not
 * include.
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
