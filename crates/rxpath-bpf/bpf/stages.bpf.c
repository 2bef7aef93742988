// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * How long a packet takes from one stage to the next: from the entry of the receive path (netif_receive_skb) to the
 * moment at which its socket has it (sk_data_ready), in one poll of one CPU; and from there to the end of the
 * application's read that took it (sock_recv_length).
 *
 * Drivers hand over lists: the kernel runs netif_receive_skb's tracepoint for each packet of a list before it delivers the
 * first one (net/core/dev.c, __netif_receive_skb_list_core). So each CPU notes all packets that it has received and not yet
 * delivered (received.h).
 *
 * Of each socket one packet at a time is followed to its read (followed.h).
 *
 * The reader attaches the first three hooks by turns. The last one, for each read, stays in place after a turn until none
 * that is followed is unread: what became ready in a turn may be read long after it.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "owner.h"
#include "log2.h"
#include "followed.h"
#include "received.h"
#include "layout.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define BUCKETS 40

/* Set by the reader before loading. */
const volatile struct {
	__u32 ifindex; /* only this device, unless 0 */
	__u32 netns;
	__u32 port; /* only this local port, unless 0 */
	__u32 pad;
	struct owner owner;
} config;

enum stage {
	RECEIVE_TO_READY,
	READY_TO_READ,
	STAGES,
};

struct cpu_row {
	__u64 received; /* packets */
	__u64 untimed;  /* packets that became ready, and of which is not known when they were received */
	__u64 count[STAGES];
	__u64 sum_ns[STAGES];
	__u64 max_ns[STAGES];
	__u64 bucket[STAGES][BUCKETS];
	__u64 lost; /* samples that found no room */
	struct received_list list;
} __attribute__((aligned(64)));

LAYOUT(struct cpu_row, 2816);
LAYOUT_AT(struct cpu_row, count, 16);
LAYOUT_AT(struct cpu_row, bucket, 64);
LAYOUT_AT(struct cpu_row, lost, 704);

/* The newest packet of each bucket: those of the highest buckets are the outliers. */
struct sample_key {
	__u32 stage;
	__u32 bucket;
	__u32 protocol;
	__u32 port;
};

struct sample {
	__u64 at_ns;
	__u64 ns;
	__u32 cpu;
	__u32 pid;
	__u32 ifindex;
	__u32 netns;
	char comm[16];
};

LAYOUT(struct sample_key, 16);
LAYOUT(struct sample, 48);
LAYOUT(struct followed, 32);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_row);
} cpus SEC(".maps");

/* When this turn began: what a CPU noted before belongs to another. Written by the reader; in the far future until all is
 * attached. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} turn SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct sample_key);
	__type(value, struct sample);
} samples SEC(".maps");

static __always_inline struct cpu_row *here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline void took(struct cpu_row *row, struct sock *sk, __u32 stage, const struct from *from, __u64 now)
{
	__u64 ns = now > from->ns ? now - from->ns : 0;
	__u32 bucket = log2_bucket(ns, BUCKETS);
	struct sample_key key = { .stage = stage, .bucket = bucket };
	struct sample sample = { .at_ns = now, .ns = ns };

	if (stage >= STAGES || bucket >= BUCKETS)
		return;
	row->count[stage]++;
	row->sum_ns[stage] += ns;
	if (ns > row->max_ns[stage])
		row->max_ns[stage] = ns;
	row->bucket[stage][bucket]++;
	/* Below a tenth of a millisecond nothing is an outlier. */
	if (ns < 100000)
		return;
	key.protocol = sk->sk_protocol;
	key.port = sk->__sk_common.skc_num;
	sample.cpu = bpf_get_smp_processor_id();
	sample.pid = bpf_get_current_pid_tgid() >> 32;
	sample.ifindex = from->ifindex;
	sample.netns = from->netns;
	bpf_get_current_comm(sample.comm, sizeof(sample.comm));
	if (bpf_map_update_elem(&samples, &key, &sample, BPF_ANY))
		row->lost++;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(rxpath_netif_receive_skb, struct sk_buff *skb)
{
	struct cpu_row *row = here();
	struct net_device *dev = skb->dev;
	struct from from;

	if (!row || !dev)
		return 0;
	row->received++;
	from.ifindex = dev->ifindex;
	from.netns = dev->nd_net.net->ns.inum;
	if ((config.ifindex && config.ifindex != from.ifindex) || (config.netns && config.netns != from.netns))
		return 0;
	from.ns = bpf_ktime_get_ns();
	note_received(&row->list, skb, &from);
	return 0;
}

/* After each poll, in softirqs and in threads: what reached no socket by then never will. What a task's own call makes ready
 * later (the TCP backlog of a locked socket) must not be taken for it. */
SEC("tp_btf/napi_poll")
int BPF_PROG(rxpath_napi_poll, struct napi_struct *napi, int work, int budget)
{
	struct cpu_row *row = here();

	if (row)
		forget_received(&row->list);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(rxpath_sk_data_ready, struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;
	struct cpu_row *row = here();
	struct from from = {}, ready = {};
	__u32 zero = 0;
	__u64 *since;

	/* Unix and netlink sockets have no packets, and a capture's socket gets its copy on the way. */
	if (!row || (family != AF_INET && family != AF_INET6))
		return 0;
	if ((config.port && sk->__sk_common.skc_num != config.port) || !is_wanted(&config.owner, sk))
		return 0;
	since = bpf_map_lookup_elem(&turn, &zero);
	/* Without a packet of this turn, and of this poll, nothing is missing. */
	if (!since || newest_ns(&row->list) < *since)
		return 0;
	if (!take_received(&row->list, sk, &from)) {
		row->untimed++;
		return 0;
	}
	if (from.ns < *since)
		return 0;
	ready.ifindex = from.ifindex;
	ready.netns = from.netns;
	ready.ns = bpf_ktime_get_ns();
	took(row, sk, RECEIVE_TO_READY, &from, ready.ns);
	follow(sk, &ready);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(rxpath_sock_recv_length, struct sock *sk, int ret, int flags)
{
	struct cpu_row *row;
	struct from from;

	if (ret < 0 || flags & (MSG_PEEK | MSG_ERRQUEUE) || !ends_with(sk, ret, &from))
		return 0;
	row = here();
	if (row)
		took(row, sk, READY_TO_READ, &from, bpf_ktime_get_ns());
	return 0;
}
