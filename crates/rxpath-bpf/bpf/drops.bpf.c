// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Packets that the kernel dropped: where (the instruction that freed them), why (the drop reason), from which device,
 * for which socket. Counted in the kernel; the reader resolves addresses and numbers to names.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include <bpf/bpf_core_read.h>
#include "addressed.h"
#include "counting.h"
#include "cpus.h"
#include "layout.h"
#include "lost.h"
#include "owner.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the reader before loading. */
const volatile struct {
	__u32 has_socket; /* the tracepoint passes the receiving socket (6.11 and later) */
	__u32 ifindex;    /* only this device, unless 0 */
	__u32 netns;      /* only this namespace, unless 0 */
	__u32 port;       /* only this local port, unless 0 */
	struct owner owner;
	struct cpus_wanted cpus; /* on which was dropped */
} config;

struct drop_key {
	__u64 location;
	__u64 inode; /* of the socket; 0 without one */
	__u32 reason;
	__u32 ifindex;
	__u32 netns;
	__u16 protocol; /* EtherType */
	__u16 port;     /* of the socket, or the packet's destination port */
};

struct drop_row {
	__u64 packets;
	__u64 bytes;
	__u64 first_ns;
	__u64 last_ns;
	__u32 pid; /* the task in whose time the last one was dropped */
	__u32 transport; /* IPPROTO_* */
	char comm[16];
	char dev[16];
};

LAYOUT(struct drop_key, 32);
LAYOUT(struct drop_row, 72);

MAP(drops, HASH, 8192, struct drop_key, struct drop_row);

/* Drops that did not fit there, without socket and port: a sender chooses the port, and must not hide the reasons. */
MAP(folded, HASH, 2048, struct drop_key, struct drop_row);

/* The row of this key in one of the maps, made when it is not there and there is room. */
static __always_inline struct drop_row *row_of(void *map, const struct drop_key *key, struct net_device *dev, __u64 now)
{
	struct drop_row *row = bpf_map_lookup_elem(map, key);
	struct drop_row fresh = {};

	if (row)
		return row;
	fresh.first_ns = now;
	if (dev)
		bpf_probe_read_kernel_str(fresh.dev, sizeof(fresh.dev), dev->name);
	bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/* A full socket, with more than the fields common to all kinds. */
static __always_inline struct sock *full_socket(struct sock *sk)
{
	__u8 state = sk ? BPF_CORE_READ(sk, __sk_common.skc_state) : 0;

	return state == TIME_WAIT || state == NEW_SYN_RECV ? 0 : sk;
}

/*
 * A datagram in a UDP socket's queue has its size in the place of the device (include/linux/skbuff.h `dev_scratch`),
 * which is no address of the kernel's.
 */
static __always_inline bool was_queued(struct net_device *dev)
{
	return (__s64)dev > 0;
}

/* The namespace of the running task. */
static __always_inline __u32 own_netns(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, nsproxy, net_ns, ns.inum);
}

static __always_inline int dropped(struct sk_buff *skb, void *location, __u32 reason, struct sock *sk)
{
	struct net_device *dev = skb->dev;
	struct drop_key key = {};
	struct drop_row *row;
	__u64 now = bpf_ktime_get_ns();
	__u32 transport;

	key.location = (__u64)location;
	key.reason = reason;
	key.protocol = bpf_ntohs(skb->protocol);
	transport = 0;
	if ((key.protocol == ETH_IP || key.protocol == ETH_IPV6) && skb->network_header != 0xffff)
		transport = addressed(skb->head + skb->network_header, &key.port);
	if (was_queued(dev)) {
		dev = 0;
		/* The reader itself drops it, for example for a wrong checksum. */
		key.netns = own_netns();
	}
	if (dev) {
		/* A packet in the IP layer may have lost its device: then this reads whatever is there. */
		key.ifindex = BPF_CORE_READ(dev, ifindex);
		key.netns = BPF_CORE_READ(dev, nd_net.net, ns.inum);
	}
	if (!sk)
		sk = skb->sk;
	if (sk && !key.netns)
		key.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	sk = full_socket(sk);
	if (sk)
		key.inode = socket_inode(sk);
	if ((config.ifindex && config.ifindex != key.ifindex) || (config.netns && config.netns != key.netns))
		return 0;
	if (!is_wanted(&config.owner, sk))
		return 0;
	if (config.port && config.port != key.port)
		return 0;
	row = row_of(&drops, &key, dev, now);
	if (!row) {
		key.inode = 0;
		key.port = 0;
		row = row_of(&folded, &key, dev, now);
	}
	if (!row) {
		count_lost();
		return 0;
	}
	/* All CPUs count in the same row. */
	__sync_fetch_and_add(&row->packets, 1);
	__sync_fetch_and_add(&row->bytes, skb->len);
	row->last_ns = now;
	row->transport = transport;
	row->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(row->comm, sizeof(row->comm));
	return 0;
}

static __always_inline int on_drop(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	struct sock *sk = 0;

	if (!counting || !is_cpu_wanted(&config.cpus, bpf_get_smp_processor_id()))
		return 0;
	/* The verifier leaves out what the constant rules out, so older kernels need not have the argument. */
	if (config.has_socket)
		sk = (struct sock *)ctx[3];
	return dropped(skb, (void *)ctx[1], (__u32)ctx[2], sk);
}

/* Its arguments are those of the running kernel, so it is not defined by BPF_PROG, and counts its cost itself. */
SEC("tp_btf/kfree_skb")
int rxpath_kfree_skb(__u64 *ctx)
{
	__u64 begun = cost_first();
	struct cost_row *row = cost_of(0);
	int answer;

	begun = cost_begun(row, begun);
	answer = on_drop(ctx);
	cost_ended(row, begun);
	return answer;
}
