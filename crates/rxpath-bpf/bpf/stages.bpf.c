// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * How long a packet takes from one stage to the next: from the entry of the receive path (netif_receive_skb) to the
 * moment at which its socket has it (sk_data_ready), in one poll of one CPU; and from there to the end of the
 * application's read that took it (sock_recv_length).
 *
 * Drivers hand over lists: the kernel runs netif_receive_skb's tracepoint for each packet of a list before it delivers
 * the first one (net/core/dev.c, __netif_receive_skb_list_core). So each CPU notes all packets that it has received and
 * not yet delivered (received.h).
 *
 * In each socket every packet is followed to its read, or one packet stands for several (followed.h).
 *
 * The reader duty-cycles the first three hooks. The last hook, for each read, stays in place after a cycle until no
 * followed packet is unread: a packet that became ready in a cycle may be read long after it.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include <bpf/bpf_core_read.h>
#include "owner.h"
#include "log2.h"
#include "followed.h"
#include "received.h"
#include "layout.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Sixteen steps in each power of two, up to 2^40 ns. */
#define STEP_BITS 4
#define BUCKETS 592

/* Packets are counted by this part of their hash: two flows have the same one with a probability of 1 in 64. */
#define HASH_BITS 6
#define HASHES (1 << HASH_BITS)

/* Of a stream a read may take more than one packet; what is behind these goes with the next read. */
#define AT_A_READ 128

/* Set by the reader before loading. */
const volatile struct {
	__u32 ifindex; /* only this device, unless 0 */
	__u32 netns;
	__u32 port; /* only this local port, unless 0 */
	/* Local ports that the kernel chooses for connections of this host: they are counted together. */
	__u16 chosen_from;
	__u16 chosen_to;
	struct owner owner;
} config;

enum stage {
	RECEIVE_TO_READY,
	READY_TO_READ,
	STAGES,
};

struct cpu_row {
	__u64 received; /* packets */
	__u64 untimed;  /* packets that became ready, but whose receive time is unknown */
	__u64 count[STAGES];
	__u64 sum_ns[STAGES];
	__u64 max_ns[STAGES];
	__u64 bucket[STAGES][BUCKETS];
	__u64 lost; /* samples and ports that did not fit */
	__u64 hashed[HASHES]; /* of the received packets */
	struct received_list list;
} __attribute__((aligned(64)));

LAYOUT(struct cpu_row, 12160);
LAYOUT_AT(struct cpu_row, count, 16);
LAYOUT_AT(struct cpu_row, bucket, 64);
LAYOUT_AT(struct cpu_row, lost, 9536);
LAYOUT_AT(struct cpu_row, hashed, 9544);

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

/* Packets of a turn that became ready in sockets, by protocol and local port; port 0 has those of chosen ports. */
struct port_key {
	__u32 protocol;
	__u32 port;
};

LAYOUT(struct port_key, 8);
LAYOUT(struct sample_key, 16);
LAYOUT(struct sample, 48);
LAYOUT(struct followed, 48 + 16 * FOLLOWED);
LAYOUT(struct unread, 16);

MAP(cpus, ARRAY, 1, __u32, struct cpu_row);

/* When this turn began: what a CPU noted before belongs to another. Written by the reader; in the far future until all is
 * attached. */
MAP(turn, ARRAY, 1, __u32, __u64);

MAP(samples, HASH, 4096, struct sample_key, struct sample);

/* A new port takes the place of one that got nothing for long. */
MAP(ports, LRU_HASH, 1024, struct port_key, __u64);

static __always_inline struct cpu_row *here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* Packets that took the same time from one stage to the next. */
struct took {
	struct from from;
	__u64 now;
	__u32 stage;
	__u32 packets;
	__u32 protocol;
	__u32 port;
};

/* A function that the verifier looks at once, and not in each turn of a caller's loop. */
__noinline int count_latency(struct took *took)
{
	struct cpu_row *row = here();
	struct sample_key key = {};
	struct sample sample = {};
	__u32 bucket, stage;
	__u64 ns;

	if (!took || !row)
		return 0;
	stage = took->stage;
	ns = took->now > took->from.ns ? took->now - took->from.ns : 0;
	bucket = step_bucket(ns, STEP_BITS, BUCKETS);
	if (stage >= STAGES || bucket >= BUCKETS)
		return 0;
	row->count[stage] += took->packets;
	row->sum_ns[stage] += ns * took->packets;
	if (ns > row->max_ns[stage])
		row->max_ns[stage] = ns;
	row->bucket[stage][bucket] += took->packets;
	/* No latency below 0.1 ms is an outlier. */
	if (ns < 100000)
		return 0;
	key.stage = stage;
	key.bucket = log2_bucket(ns, 64);
	key.protocol = took->protocol;
	key.port = took->port;
	sample.at_ns = took->now;
	sample.ns = ns;
	sample.cpu = bpf_get_smp_processor_id();
	sample.pid = bpf_get_current_pid_tgid() >> 32;
	sample.ifindex = took->from.ifindex;
	sample.netns = took->from.netns;
	bpf_get_current_comm(sample.comm, sizeof(sample.comm));
	if (bpf_map_update_elem(&samples, &key, &sample, BPF_ANY))
		row->lost++;
	return 0;
}

/* Counts the packet for its port. */
__noinline int count_port(struct took *took)
{
	struct cpu_row *row = here();
	struct port_key key = {};
	__u64 one = 1, *packets;

	if (!took || !row)
		return 0;
	key.protocol = took->protocol;
	key.port = took->port;
	if (key.port >= config.chosen_from && key.port <= config.chosen_to)
		key.port = 0;
	packets = bpf_map_lookup_elem(&ports, &key);
	if (!packets) {
		if (!bpf_map_update_elem(&ports, &key, &one, BPF_NOEXIST))
			return 0;
		/* Another CPU was first, or there is no room. */
		packets = bpf_map_lookup_elem(&ports, &key);
	}
	if (packets)
		__sync_fetch_and_add(packets, 1);
	else
		row->lost++;
	return 0;
}

/*
 * Counts the packet by its hash, if that is of addresses and ports: of addresses alone, many flows between two hosts have
 * the same one. All flows of a CPU may have bits of their hashes in common: the lowest choose the queue (RSS), the
 * highest the CPU (RPS). The highest bits of this product depend on all bits (include/linux/hash.h, hash_32).
 */
static __always_inline void count_hash(struct cpu_row *row, struct sk_buff *skb)
{
	__u32 hash = skb->hash;

	if (hash && BPF_CORE_READ_BITFIELD(skb, l4_hash))
		row->hashed[hash * 0x61c88647u >> (32 - HASH_BITS)]++;
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
	count_hash(row, skb);
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
	struct took took = {};
	struct from ready;
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
	if (!take_received(&row->list, sk, &took.from)) {
		row->untimed++;
		return 0;
	}
	if (took.from.ns < *since)
		return 0;
	took.now = bpf_ktime_get_ns();
	took.stage = RECEIVE_TO_READY;
	took.packets = 1;
	took.protocol = sk->sk_protocol;
	took.port = sk->__sk_common.skc_num;
	ready = took.from;
	ready.ns = took.now;
	count_latency(&took);
	count_port(&took);
	if (follow(sk, &ready, *since) != IS_READ)
		return 0;
	took.stage = READY_TO_READ;
	took.from.ns = took.now;
	count_latency(&took);
	return 0;
}

/* The verifier forgets the values of a read's flags when a function that could change them is called. Without this call it
 * checks each combination of flags in each turn of the loop: 509,186 instructions, half of what it allows. */
__noinline int may_change(struct one_read *read)
{
	asm volatile("" : : "r"(read) : "memory");
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(rxpath_sock_recv_length, struct sock *sk, int ret, int flags)
{
	struct one_read read = {};
	struct took took = {};
	struct waiting taken;
	struct followed *all;
	__u64 seen;

	if (ret < 0 || flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	all = bpf_sk_storage_get(&waiting, sk, 0, 0);
	if (!all || !describe_read(sk, ret, &read))
		return 0;
	seen = reads_seen_since();
	took.now = bpf_ktime_get_ns();
	took.stage = READY_TO_READ;
	took.protocol = sk->sk_protocol;
	took.port = sk->__sk_common.skc_num;
	took.from.ifindex = all->ifindex;
	took.from.netns = all->netns;
	for (int i = 0; i < AT_A_READ; i++) {
		may_change(&read);
		if (i && !all->count)
			break;
		if (!take_read(all, &read, &taken)) {
			if (!all->count || !is_drained(sk, &read))
				break;
			read.has_all = true;
			continue;
		}
		/* Reads of it may have been missed; what was behind it before this read was taken by another that nothing showed. */
		if (taken.ns < seen || (read.is_tcp && (__s32)(read.before - taken.until) >= 0))
			continue;
		took.from.ns = taken.ns;
		took.packets = taken.packets;
		count_latency(&took);
	}
	return 0;
}
