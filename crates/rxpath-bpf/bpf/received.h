/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets that a CPU has received and not yet delivered, in the order of their delivery, and which of them has just
 * become ready in a socket.
 *
 * That tracepoint passes the socket, but no packet. Mostly the packet is the last of the socket's queue. A reader on
 * another CPU may have taken it already, or TCP may have merged it with the one before. Then it is the last one that a
 * transport protocol has taken over. The packet's `dev` shows this: TCP and raw sockets clear it (net/ipv4/tcp_ipv4.c
 * tcp_v4_rcv, net/core/sock.c sock_queue_rcv_skb), UDP writes sizes there (net/ipv4/udp.c udp_set_dev_scratch). Neither
 * is a kernel address. Until then `dev` is the address of a device.
 *
 * Packets before a delivered one will not be delivered any more: they were dropped, or others make them ready (another
 * CPU for both, where several receive for one UDP socket since 6.18; a task whose call has locked the TCP socket).
 */
#ifndef RXPATH_RECEIVED_H
#define RXPATH_RECEIVED_H

/* A power of two. A poll ends after 64 packets, and lists are shorter: what is pushed out was not delivered. */
#define RECEIVED 64

struct received {
	__u64 skb; /* its address */
	struct from from;
	__u32 segments; /* that a socket without GRO may still make of it, unless it is one datagram */
	__u32 pad;
};

struct received_list {
	__u32 first; /* numbers of the first that is not delivered, and of the next to come */
	__u32 next;
	__u64 task; /* in whose time they were received: in that of another it is another softirq */
	struct received all[RECEIVED];
};

/* Datagrams of an aggregate (GSO, GRO); 0 for a single one. */
static __always_inline __u32 segments_of(struct sk_buff *skb)
{
	struct skb_shared_info *info = (struct skb_shared_info *)(BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, end));

	return BPF_CORE_READ(info, gso_size) ? BPF_CORE_READ(info, gso_segs) : 0;
}

static __always_inline void note_received(struct received_list *list, struct sk_buff *skb, const struct from *from)
{
	struct received *place = &list->all[list->next & (RECEIVED - 1)];
	__u64 task = bpf_get_current_task();

	if (list->task != task) {
		list->task = task;
		list->first = list->next;
	}
	place->skb = (__u64)skb;
	place->from = *from;
	place->segments = segments_of(skb);
	list->next++;
	if (list->next - list->first > RECEIVED)
		list->first = list->next - RECEIVED;
}

static __always_inline void forget_received(struct received_list *list)
{
	list->first = list->next;
}

/* When the newest of them was received; 0 when there is none. */
static __always_inline __u64 newest_ns(struct received_list *list)
{
	if (list->first == list->next || list->task != bpf_get_current_task())
		return 0;
	return list->all[(list->next - 1) & (RECEIVED - 1)].from.ns;
}

/* Whether a transport protocol has taken this packet over. It may be freed by now: its memory still shows it. */
static __always_inline bool is_taken_over(__u64 address)
{
	struct sk_buff *skb = (struct sk_buff *)address;

	return (__s64)BPF_CORE_READ(skb, dev) >= 0;
}

/*
 * How many came after the packet that is `last` in a socket's queue, or after the last one that was taken over;
 * RECEIVED for none. A function that the verifier looks at once: within its caller it would follow each way out of each
 * turn of the loops.
 */
__noinline __u32 received_since(struct received_list *list, __u64 last)
{
	__u32 count;

	if (!list)
		return RECEIVED;
	count = list->next - list->first;
	/* The newest first: the address of a packet that was dropped is soon another's. */
	for (__u32 back = 0; back < RECEIVED; back++) {
		if (back >= count)
			break;
		if (list->all[(list->next - 1 - back) & (RECEIVED - 1)].skb == last)
			return back;
	}
	for (__u32 back = 0; back < RECEIVED; back++) {
		if (back >= count)
			break;
		if (is_taken_over(list->all[(list->next - 1 - back) & (RECEIVED - 1)].skb))
			return back;
	}
	return RECEIVED;
}

/*
 * An aggregate that a UDP socket without GRO takes apart: its datagrams are packets of their own, and it is gone by the
 * time the first of them is ready (net/ipv4/udp.c, udp_queue_rcv_skb). The oldest of which some are missing is the one:
 * those before it were delivered. Gives how many came after it; RECEIVED for none.
 */
__noinline __u32 aggregate_since(struct received_list *list)
{
	__u32 count;

	if (!list)
		return RECEIVED;
	count = list->next - list->first;
	for (__u32 at = 0; at < RECEIVED; at++) {
		struct received *one = &list->all[(list->first + at) & (RECEIVED - 1)];

		if (at >= count)
			break;
		if (one->segments) {
			one->segments--;
			return count - 1 - at;
		}
	}
	return RECEIVED;
}

/* The packet that has just become ready in this socket: from when it is, and it is no longer on the list. */
static __always_inline bool take_received(struct received_list *list, struct sock *sk, struct from *from)
{
	bool is_udp = sk->sk_protocol == UDP || sk->sk_protocol == UDP_LITE;
	__u32 since = received_since(list, (__u64)BPF_CORE_READ(sk, sk_receive_queue.prev));
	bool is_aggregate = false;

	if (since >= RECEIVED && is_udp) {
		since = aggregate_since(list);
		is_aggregate = since < RECEIVED;
	}

	/* Raw sockets get a copy, and a listener's last packet of a handshake keeps its device: they are told where it is
	 * alone. Not of UDP: there the softirq may make ready what another CPU received. */
	if (since >= RECEIVED && list->next - list->first == 1 && !is_udp)
		since = 0;
	if (since >= RECEIVED)
		return false;
	*from = list->all[(list->next - 1 - since) & (RECEIVED - 1)].from;
	/* Of an aggregate more may come. */
	list->first = list->next - since - is_aggregate;
	return true;
}

#endif
