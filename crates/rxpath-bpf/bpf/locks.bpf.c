// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Contended spinlocks, and the UDP sockets that are read: the reader matches the address of a lock to a socket. Only
 * the slow path of a lock passes these tracepoints, so an uncontended lock costs nothing.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include <bpf/bpf_core_read.h>
#include "layout.h"
#include "lost.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct waiting_key {
	__u64 lock;
	__u32 cpu;
	__u32 pad;
};

struct wait_key {
	__u64 lock;
	__u32 tid;
	__u32 pad;
};

struct wait_row {
	__u64 waits;
	__u64 ns;
};

/* What the socket is, and where in it its locks lie: offset and length of each field that holds one. */
struct socket_row {
	__u32 size;
	__u32 receive_queue;
	__u32 reader_queue;
	__u32 queue_size;
	__u32 port;
	__u32 netns;
};

LAYOUT(struct wait_key, 16);
LAYOUT(struct wait_row, 16);
LAYOUT(struct socket_row, 24);

/* A CPU waits for one lock at a time, and for another in an interrupt meanwhile: never twice for the same. */
MAP(begun, HASH, 4096, struct waiting_key, __u64);

MAP(waits, HASH, 16384, struct wait_key, struct wait_row);

MAP(sockets, HASH, 8192, __u64, struct socket_row);

SEC("tp_btf/contention_begin")
int BPF_PROG(rxpath_contention_begin, void *lock, unsigned int flags)
{
	struct waiting_key key = {};
	__u64 now;

	/* A waiter for a mutex spins too, may then sleep, and may end the wait on another CPU. */
	if ((flags & (LCB_F_SPIN | LCB_F_MUTEX)) != LCB_F_SPIN)
		return 0;
	key.lock = (__u64)lock;
	key.cpu = bpf_get_smp_processor_id();
	now = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&begun, &key, &now, BPF_ANY))
		count_lost();
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(rxpath_contention_end, void *lock, int ret)
{
	struct waiting_key at = {};
	struct wait_key key = {};
	struct wait_row *row;
	__u64 *since, ns;

	at.lock = (__u64)lock;
	at.cpu = bpf_get_smp_processor_id();
	since = bpf_map_lookup_elem(&begun, &at);
	if (!since)
		return 0;
	ns = bpf_ktime_get_ns() - *since;
	bpf_map_delete_elem(&begun, &at);
	key.lock = (__u64)lock;
	key.tid = (__u32)bpf_get_current_pid_tgid();
	row = bpf_map_lookup_elem(&waits, &key);
	if (!row) {
		struct wait_row fresh = {};

		bpf_map_update_elem(&waits, &key, &fresh, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&waits, &key);
	}
	if (!row) {
		count_lost();
		return 0;
	}
	/* The idle task's row, and that of a task which moved, is written by more than one CPU. */
	__sync_fetch_and_add(&row->waits, 1);
	__sync_fetch_and_add(&row->ns, ns);
	return 0;
}

/* Each read of a socket: the first of a UDP socket enters it. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(rxpath_sock_recv_length, struct sock *sk, int ret, int flags)
{
	__u64 key = (__u64)sk;
	struct socket_row row = {};

	if (sk->sk_protocol != UDP || bpf_map_lookup_elem(&sockets, &key))
		return 0;
	row.size = bpf_core_type_size(struct udp_sock);
	row.receive_queue = __builtin_preserve_field_info(((struct sock *)0)->sk_receive_queue, BPF_FIELD_BYTE_OFFSET);
	row.reader_queue = __builtin_preserve_field_info(((struct udp_sock *)0)->reader_queue, BPF_FIELD_BYTE_OFFSET);
	row.queue_size = bpf_core_type_size(struct sk_buff_head);
	row.port = sk->__sk_common.skc_num;
	row.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	/* Its waits could not be distinguished from another lock's. */
	if (bpf_map_update_elem(&sockets, &key, &row, BPF_ANY))
		count_lost();
	return 0;
}
