// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * UDP datagrams to one port, taken from the device before the kernel makes packets of them: handed to the AF_XDP socket
 * of their queue, or dropped. Everything else passes: other ports, options, fragments, extension headers. Checksums are
 * not verified.
 */
#include "kernel.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "layout.h"
#include "xdp.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* include/uapi/linux/if_ether.h */
#define ETH_8021Q 0x8100
#define ETH_8021AD 0x88a8
/* include/net/ip.h: more fragments follow, or not the first one. */
#define IP_FRAGMENT 0x3fff
#define VLAN_ID 0x0fff

struct ethernet {
	__u8 to[6];
	__u8 from[6];
	__be16 protocol;
};

struct vlan {
	__be16 tag;
	__be16 protocol;
};

struct ipv4 {
	__u8 version_words;
	__u8 tos;
	__be16 bytes;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__u8 from[4];
	__u8 to[4];
};

struct ipv6 {
	__be32 flow;
	__be16 bytes;
	__u8 protocol;
	__u8 hops;
	__u32 from[4];
	__u32 to[4];
};

struct udp {
	__be16 from;
	__be16 to;
	__be16 bytes;
	__u16 checksum;
};

/* Set by the reader before loading. */
const volatile struct {
	__u32 to[4]; /* of IPv4 the first word; zero = any */
	__u32 v6;
	__u32 port;
	__u32 vlan; /* tag of the frames; 0 = none */
} config;

/* What became of the frames of a queue. */
struct counts {
	__u64 matched;
	__u64 redirected;
	__u64 dropped;
	__u64 passed; /* matched, but the queue has no socket */
	__u64 others; /* not matched, and passed */
};

LAYOUT(struct counts, 40);

MAP(queues, PERCPU_ARRAY, 1, __u32, struct counts);

MAP(sockets, XSKMAP, 1, __u32, __u32);

static __always_inline bool is_ours4(const struct ipv4 *ip, void *end)
{
	__u32 to;

	if ((void *)(ip + 1) > end || ip->version_words != 0x45 || ip->protocol != UDP)
		return false;
	if (ip->fragment & bpf_htons(IP_FRAGMENT))
		return false;
	__builtin_memcpy(&to, ip->to, sizeof(to));
	return !config.to[0] || config.to[0] == to;
}

static __always_inline bool is_ours6(const struct ipv6 *ip, void *end)
{
	if ((void *)(ip + 1) > end || ip->protocol != UDP)
		return false;
	if (!(config.to[0] | config.to[1] | config.to[2] | config.to[3]))
		return true;
	return ip->to[0] == config.to[0] && ip->to[1] == config.to[1] && ip->to[2] == config.to[2] &&
	       ip->to[3] == config.to[3];
}

static __always_inline bool is_ours(const struct xdp_md *ctx)
{
	void *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethernet *ethernet = at;
	const struct udp *udp;
	__u32 tag = 0;
	__be16 protocol;

	at += sizeof(*ethernet);
	if (at > end)
		return false;
	protocol = ethernet->protocol;
	if (protocol == bpf_htons(ETH_8021Q) || protocol == bpf_htons(ETH_8021AD)) {
		const struct vlan *vlan = at;

		at += sizeof(*vlan);
		if (at > end)
			return false;
		tag = bpf_ntohs(vlan->tag) & VLAN_ID;
		protocol = vlan->protocol;
	}
	if (tag != config.vlan)
		return false;
	if (config.v6) {
		if (protocol != bpf_htons(ETH_IPV6) || !is_ours6(at, end))
			return false;
		at += sizeof(struct ipv6);
	} else {
		if (protocol != bpf_htons(ETH_IP) || !is_ours4(at, end))
			return false;
		at += sizeof(struct ipv4);
	}
	udp = at;
	return (void *)(udp + 1) <= end && udp->to == bpf_htons(config.port);
}

/* The counters of the queue of a datagram that is ours; NULL for a frame that passes. */
static __always_inline struct counts *matched(const struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	struct counts *counts = bpf_map_lookup_elem(&queues, &queue);

	if (!counts)
		return 0;
	if (!is_ours(ctx)) {
		counts->others++;
		return 0;
	}
	counts->matched++;
	return counts;
}

SEC("xdp")
int rxpath_redirect(struct xdp_md *ctx)
{
	struct counts *counts = matched(ctx);
	int what;

	if (!counts)
		return XDP_PASS;
	what = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
	if (what == XDP_REDIRECT)
		counts->redirected++;
	else
		counts->passed++;
	return what;
}

SEC("xdp")
int rxpath_drop(struct xdp_md *ctx)
{
	struct counts *counts = matched(ctx);

	if (!counts)
		return XDP_PASS;
	counts->dropped++;
	return XDP_DROP;
}
