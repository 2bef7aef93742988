// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Which SO_REUSEPORT group the sockets of a port are in, in which order, and what selects among them. Iterators: they
 * run when they are read, and are attached to no hook.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "layout.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Longer groups are reported as longer, and not read to their end. */
#define MOST_SOCKETS 1024

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* include/linux/bpf.h, kernel/bpf/bpf_iter.c, net/ipv4/udp.c, net/ipv4/tcp_ipv4.c */
struct bpf_iter__udp {
	struct bpf_iter_meta *meta;
	struct udp_sock *udp_sk;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

/* include/linux/filter.h */
struct sock_fprog_kern {
	__u16 len;
};

/* include/linux/bpf.h */
struct bpf_prog_aux {
	__u32 id;
	char name[16];
};

struct bpf_prog {
	__u32 type;
	struct bpf_prog_aux *aux;
	struct sock_fprog_kern *orig_prog;
};

/* include/net/sock_reuseport.h */
struct sock_reuseport {
	__u16 num_socks;
	__u16 incoming_cpu; /* since 6.2 */
	struct bpf_prog *prog;
	struct sock *socks[1];
};

#pragma clang attribute pop

/* Set by the reader before loading. */
const volatile struct {
	__u32 port;
} config;

struct row {
	__u64 inode;
	__u64 group; /* 0 without one */
	__u32 index; /* place in the group; MOST_SOCKETS when it was not found */
	__u32 sockets;
	__u32 by_cpu; /* sockets of the group with SO_INCOMING_CPU */
	__u32 selector; /* id of its program; 0 without one, and for a classic program */
	__u32 has_program;
	__u32 classic; /* instructions of a classic program */
	__u32 family;
	__u32 ifindex;
	__u16 port;
	__be16 remote_port;
	__u8 local[16];
	__u8 remote[16];
	char name[16];
};

LAYOUT(struct row, 104);
LAYOUT_AT(struct row, local, 52);
LAYOUT_AT(struct row, name, 84);

MAP(scratch, PERCPU_ARRAY, 1, __u32, struct row);

static __always_inline void read_program(struct row *row, struct bpf_prog *prog)
{
	struct sock_fprog_kern *classic = BPF_CORE_READ(prog, orig_prog);

	row->has_program = 1;
	if (!classic) {
		row->selector = BPF_CORE_READ(prog, aux, id);
		BPF_CORE_READ_INTO(&row->name, prog, aux, name);
		return;
	}
	row->classic = BPF_CORE_READ(classic, len);
}

static __always_inline void read_group(struct row *row, struct sock *sk, struct sock_reuseport *group)
{
	struct bpf_prog *prog = BPF_CORE_READ(group, prog);
	__u32 sockets = BPF_CORE_READ(group, num_socks);
	struct sock *member = 0;
	__u32 i;

	row->group = (__u64)group;
	row->sockets = sockets;
	if (bpf_core_field_exists(group->incoming_cpu))
		row->by_cpu = BPF_CORE_READ(group, incoming_cpu);
	row->index = MOST_SOCKETS;
	for (i = 0; i < MOST_SOCKETS && i < sockets; i++) {
		bpf_probe_read_kernel(&member, sizeof(member),
				      (void *)__builtin_preserve_access_index(&group->socks) + i * sizeof(member));
		if (member == sk) {
			row->index = i;
			break;
		}
	}
	if (prog)
		read_program(row, prog);
}

static __always_inline int tell(struct seq_file *seq, struct sock *sk)
{
	struct sock_reuseport *group;
	struct socket *socket;
	struct row *row;
	__u32 zero = 0;

	if (BPF_CORE_READ(sk, __sk_common.skc_num) != config.port)
		return 0;
	row = bpf_map_lookup_elem(&scratch, &zero);
	if (!row)
		return 0;
	__builtin_memset(row, 0, sizeof(*row));
	socket = BPF_CORE_READ(sk, sk_socket);
	row->inode = socket ? BPF_CORE_READ(socket, file, f_inode, i_ino) : 0;
	row->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	row->ifindex = BPF_CORE_READ(sk, __sk_common.skc_bound_dev_if);
	row->port = BPF_CORE_READ(sk, __sk_common.skc_num);
	row->remote_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (row->family == 2) {
		bpf_core_read(row->local, 4, &sk->__sk_common.skc_rcv_saddr);
		bpf_core_read(row->remote, 4, &sk->__sk_common.skc_daddr);
	} else {
		bpf_core_read(row->local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(row->remote, 16, &sk->__sk_common.skc_v6_daddr);
	}
	group = BPF_CORE_READ(sk, sk_reuseport_cb);
	if (group)
		read_group(row, sk, group);
	bpf_seq_write(seq, row, sizeof(*row));
	return 0;
}

SEC("iter/udp")
int rxpath_udp_sockets(struct bpf_iter__udp *ctx)
{
	struct sock *sk = (struct sock *)ctx->udp_sk;

	return sk ? tell(ctx->meta->seq, sk) : 0;
}

SEC("iter/tcp")
int rxpath_tcp_sockets(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;

	/* Others may not be full sockets (requests, TIME_WAIT). */
	if (!common || BPF_CORE_READ(common, skc_state) != TCP_LISTEN)
		return 0;
	return tell(ctx->meta->seq, (struct sock *)common);
}
