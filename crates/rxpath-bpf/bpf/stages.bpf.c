// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * How long a packet takes from one stage to the next: from the entry of the receive path (netif_receive_skb) to the
 * moment at which its socket has it (sk_data_ready), in one softirq of one CPU; and from there to the end of the
 * application's read that took it (sock_recv_length).
 *
 * Of each socket one packet at a time is followed to its read: by its sequence number (TCP), or by the number of
 * datagrams that have to be read before it and with it. A read that was under way when the packet came is one of those,
 * so that a datagram's wait may end one read early; and one that another CPU queued at the same moment may be counted as
 * before it, so that it may end late by those.
 *
 * The reader attaches the first three hooks by turns and leaves the last in place: what became ready in a turn may be
 * read after it.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "owner.h"
#include "log2.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define BUCKETS 40

#define AF_PACKET 17
#define TCP 6
#define UDP 17
#define UDP_LITE 136
#define SOCK_DGRAM 2
#define SOCK_RAW 3
#define TCP_LISTEN 10
#define MSG_PEEK 2

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
	__u64 received_ns; /* of the packet that is on its way, 0 when there is none */
	__u32 ifindex;
	__u32 netns;
	__u64 received; /* packets */
	__u64 count[STAGES];
	__u64 sum_ns[STAGES];
	__u64 max_ns[STAGES];
	__u64 bucket[STAGES][BUCKETS];
	__u64 lost;
} __attribute__((aligned(64)));

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

/* A packet, and from when. */
struct from {
	__u64 ns;
	__u32 ifindex;
	__u32 netns;
};

/* The packet of a socket that is followed to its read. */
struct followed {
	struct from ready;
	__u64 cookie; /* of the socket: its address may have become another's */
	__u32 end;    /* TCP: the sequence number behind it */
	__s32 reads;  /* otherwise: reads up to and with its own */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_row);
} cpus SEC(".maps");

/* By the socket's address. Sockets that close unread go by age. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct followed);
} waiting SEC(".maps");

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

/* Datagrams that wait to be read; 0 when none does, or when the reader moves them from one queue to the other. */
static __always_inline __s32 unread(struct sock *sk)
{
	__s32 queued = BPF_CORE_READ(sk, sk_receive_queue.qlen);
	__s32 moved;

	if (sk->sk_protocol != UDP && sk->sk_protocol != UDP_LITE)
		return queued;
	moved = BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
	if (queued != BPF_CORE_READ(sk, sk_receive_queue.qlen))
		return 0;
	if (moved != BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen))
		return 0;
	return queued + moved;
}

/* Follows the packet that has just become ready to its read, unless one before it is still followed. */
static __always_inline void follow(struct sock *sk, const struct from *ready)
{
	struct followed next = { .ready = *ready };
	struct followed *before;
	__u64 key = (__u64)sk;
	struct tcp_sock *tcp;

	if (sk->__sk_common.skc_state == TCP_LISTEN)
		return;
	next.cookie = bpf_get_socket_cookie(sk);
	before = bpf_map_lookup_elem(&waiting, &key);
	if (before && before->cookie == next.cookie)
		return;
	if (sk->sk_protocol == TCP) {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp || tcp->rcv_nxt == tcp->copied_seq)
			return;
		next.end = tcp->rcv_nxt;
	} else if (sk->sk_type != SOCK_DGRAM && sk->sk_type != SOCK_RAW) {
		/* Reads of other streams say nothing of packets. */
		return;
	} else {
		next.reads = unread(sk);
		if (next.reads <= 0)
			return;
	}
	bpf_map_update_elem(&waiting, &key, &next, BPF_ANY);
}

enum progress {
	UNREAD,
	READ,
	LOST, /* it went without being read */
};

/* What a read means for the packet that is followed. */
static __always_inline enum progress progress(struct sock *sk, struct followed *packet)
{
	struct tcp_sock *tcp;
	__s32 left;

	if (packet->cookie != bpf_get_socket_cookie(sk))
		return LOST;
	if (sk->sk_protocol == TCP) {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp)
			return LOST;
		return (__s32)(tcp->copied_seq - packet->end) >= 0 ? READ : UNREAD;
	}
	/* Several threads may read one socket: one of them is the one that ends it. */
	left = __sync_fetch_and_sub(&packet->reads, 1);
	if (left <= 1)
		return left == 1 ? READ : UNREAD;
	/* A datagram that fails its checksum at the read is none that was read. */
	if (!BPF_CORE_READ(sk, sk_receive_queue.qlen) && !unread(sk))
		return LOST;
	return UNREAD;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	struct cpu_row *row = here();
	struct net_device *dev = skb->dev;

	if (!row || !dev)
		return 0;
	row->received++;
	row->ifindex = dev->ifindex;
	row->netns = dev->nd_net.net->ns.inum;
	if ((config.ifindex && config.ifindex != row->ifindex) || (config.netns && config.netns != row->netns)) {
		row->received_ns = 0;
		return 0;
	}
	row->received_ns = bpf_ktime_get_ns();
	return 0;
}

/* A packet that reached no socket by the end of its softirq never will: what a task's own call makes ready later (the
 * TCP backlog of a locked socket) must not be taken for it. */
SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
	struct cpu_row *row = here();

	if (row)
		row->received_ns = 0;
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, struct sock *sk)
{
	struct cpu_row *row = here();
	struct from from = {}, ready = {};
	__u32 zero = 0;
	__u64 *since;

	/* A capture's socket gets its copy on the way; the packet goes on. */
	if (!row || !row->received_ns || sk->__sk_common.skc_family == AF_PACKET)
		return 0;
	from.ns = row->received_ns;
	row->received_ns = 0;
	since = bpf_map_lookup_elem(&turn, &zero);
	if (!since || from.ns < *since)
		return 0;
	if (config.port && sk->__sk_common.skc_num != config.port)
		return 0;
	if (!is_wanted(&config.owner, sk))
		return 0;
	from.ifindex = ready.ifindex = row->ifindex;
	from.netns = ready.netns = row->netns;
	ready.ns = bpf_ktime_get_ns();
	took(row, sk, RECEIVE_TO_READY, &from, ready.ns);
	follow(sk, &ready);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int ret, int flags)
{
	struct cpu_row *row = here();
	__u64 key = (__u64)sk;
	struct followed *packet;
	enum progress now;
	struct from from;

	if (!row || ret < 0 || flags & MSG_PEEK)
		return 0;
	packet = bpf_map_lookup_elem(&waiting, &key);
	if (!packet)
		return 0;
	now = progress(sk, packet);
	if (now == UNREAD)
		return 0;
	from = packet->ready;
	bpf_map_delete_elem(&waiting, &key);
	if (now == READ)
		took(row, sk, READY_TO_READ, &from, bpf_ktime_get_ns());
	return 0;
}
