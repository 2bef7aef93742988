// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Receive queues of sockets: iterators over the UDP and TCP sockets of one network namespace, which the reader runs
 * repeatedly. A socket gets a row when its queue is first seen non-empty. A row keeps the sum over all scans and the
 * largest value.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "layout.h"
#include "lost.h"
#include "owner.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the reader before loading. */
const volatile struct {
	__u32 port; /* only this local port, unless 0 */
	__u32 pad;
	struct owner owner;
} config;

struct queue_row {
	__u64 inode;
	__u64 seen_ns; /* when it was last scanned */
	__u64 looks; /* scans that found queued data */
	__u64 sum;   /* of the bytes seen */
	__u32 now;
	__u32 most;
	__u32 limit;
	__u16 protocol;
	__u16 port;
};

LAYOUT(struct queue_row, 48);

/* By the cookie of the socket: inodes vanish when it is closed, and addresses are reused. */
MAP(queues, HASH, 16384, __u64, struct queue_row);

/* include/net/udp.h and net/ipv4/tcp_ipv4.c; members are 8 bytes apart on every machine (__bpf_md_ptr). */
struct bpf_iter__udp {
	__u64 meta;
	struct sock *udp_sk;
};

struct bpf_iter__tcp {
	__u64 meta;
	struct sock_common *sk_common;
};

static __always_inline int look(struct sock *sk, __u16 protocol)
{
	__u32 queued = BPF_CORE_READ(sk, sk_backlog.rmem_alloc.counter);
	__u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);
	struct queue_row *row;
	__u64 key;

	if ((config.port && port != config.port) || !is_wanted(&config.owner, sk))
		return 0;
	/* Without a cookie nothing has waited in it yet. */
	if (!queued && !BPF_CORE_READ(sk, __sk_common.skc_cookie.counter))
		return 0;
	key = bpf_get_socket_cookie(sk);
	row = bpf_map_lookup_elem(&queues, &key);
	if (!row) {
		struct queue_row fresh = {};

		if (!queued)
			return 0;
		fresh.inode = socket_inode(sk);
		fresh.protocol = protocol;
		fresh.port = port;
		fresh.limit = BPF_CORE_READ(sk, sk_rcvbuf);
		if (bpf_map_update_elem(&queues, &key, &fresh, BPF_NOEXIST)) {
			count_lost();
			return 0;
		}
		row = bpf_map_lookup_elem(&queues, &key);
		if (!row)
			return 0;
	}
	row->now = queued;
	row->seen_ns = bpf_ktime_get_ns();
	row->sum += queued;
	row->looks += queued > 0;
	if (queued > row->most) {
		row->most = queued;
		row->limit = BPF_CORE_READ(sk, sk_rcvbuf);
	}
	return 0;
}

SEC("iter/udp")
int rxpath_udp(struct bpf_iter__udp *ctx)
{
	return ctx->udp_sk ? look(ctx->udp_sk, UDP) : 0;
}

SEC("iter/tcp")
int rxpath_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	__u8 state;

	if (!common)
		return 0;
	state = BPF_CORE_READ(common, skc_state);
	if (state == TIME_WAIT || state == NEW_SYN_RECV)
		return 0;
	return look((struct sock *)common, TCP);
}
