/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Flows of received packets, by the task whose time they took.
 */
#ifndef RXPATH_FLOWS_H
#define RXPATH_FLOWS_H

#include "addressed.h"
#include "layout.h"

/* Flows of packets in taken softirqs, by the interrupted task. */
struct flow_key {
	__u64 start_ns;
	__u32 pid;
	__u32 cpu;
	__u32 ifindex;
	__u32 netns;
	__u16 transport; /* IPPROTO_*, 0 for packets that are not IP */
	__u16 port;      /* destination, of TCP and UDP */
	__u32 pad;
	__u8 to[16];     /* destination address, of IPv4 as ::ffff:a.b.c.d; 0 where it is not known */
};

struct flow_row {
	__u64 packets;
	char dev[16];
};

LAYOUT(struct flow_key, 48);
LAYOUT_AT(struct flow_key, to, 32);
LAYOUT(struct flow_row, 24);

MAP(flows, HASH, 8192, struct flow_key, struct flow_row);

MAP(folded_flows, HASH, 4096, struct flow_key, struct flow_row);

/* The row of this flow in one of the maps, made when it is not there and there is room. */
static __always_inline struct flow_row *flow_row(void *map, const struct flow_key *key, struct net_device *dev,
						 __u64 *made)
{
	struct flow_row *row = bpf_map_lookup_elem(map, key);
	struct flow_row fresh = {};

	if (row)
		return row;
	bpf_probe_read_kernel_str(fresh.dev, sizeof(fresh.dev), dev->name);
	if (!bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST))
		++*made;
	return bpf_map_lookup_elem(map, key);
}

/* Counts a packet for its flow and the running task; false when there is no room for it. */
static __always_inline bool count_flow(struct sk_buff *skb, __u64 *made)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct net_device *dev = skb->dev;
	struct flow_key key = {};
	struct flow_row *row;
	__u16 protocol;

	key.start_ns = task->pid ? task->start_time : 0;
	key.pid = task->pid;
	key.cpu = bpf_get_smp_processor_id();
	key.ifindex = dev->ifindex;
	key.netns = dev->nd_net.net->ns.inum;
	protocol = bpf_ntohs(skb->protocol);
	/* Here the packet begins with its IP header. Drivers may leave it in fragments, where it is not looked for. */
	if ((protocol == ETH_IP || protocol == ETH_IPV6) && skb->len - skb->data_len >= 28) {
		key.transport = addressed(skb->data, &key.port);
		destination(skb->data, key.to);
	}
	row = flow_row(&flows, &key, dev, made);
	if (!row) {
		/* A sender chooses port and address: further flows are counted together. */
		key.port = 0;
		__builtin_memset(key.to, 0, sizeof(key.to));
		row = flow_row(&folded_flows, &key, dev, made);
	}
	if (!row)
		return false;
	row->packets++;
	return true;
}

#endif
