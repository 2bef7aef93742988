// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Which thread reads which UDP socket of a network namespace, and how many datagrams.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include <bpf/bpf_core_read.h>
#include "layout.h"
#include "lost.h"
#include "socket.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the reader before loading. */
const volatile struct {
	__u32 netns;
	__u32 pad;
} config;

struct read_key {
	__u64 inode;
	__u32 tid;
	__u32 tgid;
};

LAYOUT(struct read_key, 16);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	/* The reader sets its size. */
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct read_key);
	__type(value, __u64);
} reads SEC(".maps");

/* Once for each datagram, also of a recvmmsg. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(rxpath_sock_recv_length, struct sock *sk, int ret, int flags)
{
	struct read_key key = {};
	__u64 task, one = 1, *count;

	if (ret < 0 || flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	if (sk->sk_protocol != UDP && sk->sk_protocol != UDP_LITE)
		return 0;
	if (BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) != config.netns)
		return 0;
	task = bpf_get_current_pid_tgid();
	key.inode = socket_inode(sk);
	key.tid = (__u32)task;
	key.tgid = task >> 32;
	count = bpf_map_lookup_elem(&reads, &key);
	if (count) {
		/* The thread's own: no other CPU writes it. */
		++*count;
		return 0;
	}
	if (bpf_map_update_elem(&reads, &key, &one, BPF_NOEXIST))
		count_lost();
	return 0;
}
