/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets of a socket that are followed from arrival to read, in order of arrival.
 *
 * Each packet counts. The first waiting packets are followed one by one. In a longer queue one packet stands for
 * several, from the middle of them (`stride`). So a stall of the reader has as many waits as packets arrived in it.
 *
 * The read of a packet is known by its sequence number (TCP), or by the number of datagrams to read up to and including
 * it. A read already in progress when the packet arrives is counted too, so a datagram's wait can be one read short.
 * Datagrams that another CPU queues at the same moment may be counted as before it, so the wait can be that many reads
 * long.
 *
 * Not every read is visible: splice and readers within the kernel bypass the hook, and a damaged datagram is dropped at
 * the read. A packet that is followed for long but no longer queued is abandoned, so that no later read is taken for
 * its own.
 *
 * All state is in the socket's own storage and is freed with the socket: a packet is followed until it is read or its
 * socket closes. Softirqs and readers on several CPUs use the state under its lock.
 */
#ifndef RXPATH_FOLLOWED_H
#define RXPATH_FOLLOWED_H

#include "layout.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* net/core/bpf_sk_storage.c */
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	__u64 map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

/* Packets of a socket that are followed at a time, and how many of them stand only for themselves. */
#ifndef FOLLOWED
#define FOLLOWED 56
#endif
#define ALONE (FOLLOWED - 40)

/* A reader that has taken a packet comes to the hook sooner than this. */
#define LONG_NS 10000000

/* include/uapi/linux/bpf.h: the kernel knows it by its name. */
struct bpf_spin_lock {
	__u32 val;
};

/* Where a packet came from, and when. */
struct from {
	__u64 ns;
	__u32 ifindex;
	__u32 netns;
};

struct waiting {
	__u64 ns;      /* time of arrival */
	__u32 until;   /* the read that takes it; TCP: the sequence number behind it */
	__u32 packets; /* that it stands for */
};

struct followed {
	struct bpf_spin_lock lock;
	__u32 first; /* places of the oldest and of the next to come; as many as `count` are between */
	__u32 next;
	__u32 count;
	__u32 reads;   /* datagrams read so far, while the hook was in place */
	__s32 owed;    /* packets that arrived, less those that are stood for */
	__u32 ifindex; /* of the newest */
	__u32 netns;
	__u64 turn;    /* in which packets were counted last */
	__u64 packets; /* that those between stand for */
	struct waiting all[FOLLOWED];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct followed);
} waiting SEC(".maps");

/* Since when each read is seen. Of what became ready before, reads may have been missed: it is given up. */
MAP(reads_since, ARRAY, 1, __u32, __u64);

static __always_inline __u64 reads_seen_since(void)
{
	__u32 zero = 0;
	__u64 *since = bpf_map_lookup_elem(&reads_since, &zero);

	return since ? *since : 0;
}

/* Packets for which the next one stands, when so many are followed: twice as many after each four. The last 40 places are
 * enough for a queue of 8,000. */
static __always_inline __s32 stride(__u32 count)
{
	return count < ALONE ? 1 : 2 << ((count - ALONE) >> 2);
}

/* Datagrams that wait to be read; negative when the reader moves them from one queue to the other. */
static __always_inline __s32 queued_in(struct sock *sk)
{
	__u32 queued = sk->sk_receive_queue.qlen;
	__u32 moved;

	if (sk->sk_protocol != UDP && sk->sk_protocol != UDP_LITE)
		return queued;
	moved = BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
	if (queued != *(volatile __u32 *)&sk->sk_receive_queue.qlen)
		return -1;
	if (moved != BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen))
		return -1;
	return queued + moved;
}

/* What has been read of a socket: of TCP the bytes up to a sequence number, of others nothing that would be known. */
static __always_inline bool is_read(struct sock *sk, __u32 until)
{
	struct tcp_sock *tcp = sk->sk_protocol == TCP ? bpf_skc_to_tcp_sock(sk) : 0;

	return tcp && (__s32)(tcp->copied_seq - until) >= 0;
}

/* Whether what waits longest went unseen: no more is queued than the packets that came after it. */
static __always_inline bool went_unseen(struct sock *sk, const struct waiting *oldest, __u64 now, __s32 after)
{
	__s32 queued;

	if (oldest->ns < reads_seen_since())
		return true;
	if (now - oldest->ns < LONG_NS)
		return false;
	if (sk->sk_protocol == TCP)
		return is_read(sk, oldest->until);
	queued = queued_in(sk);
	/* While the reader moves packets from one queue to the other, how many are queued is not known. */
	return queued >= 0 && queued <= after;
}

/* A copy of the longest-waiting entry, without the lock. It may be torn: good enough to check whether it is old. */
static __always_inline bool oldest_of(struct followed *all, struct waiting *oldest)
{
	__u32 first = all->first;

	if (!all->count || first >= FOLLOWED)
		return false;
	*oldest = all->all[first];
	return true;
}

/* Records a packet that has just arrived; under the lock. */
static __always_inline void note_arrival(struct followed *all, const struct from *ready, __u32 until)
{
	__s32 each = stride(all->count), ahead = each >> 1;
	__u32 next = all->next;

	all->ifindex = ready->ifindex;
	all->netns = ready->netns;
	if (all->count >= FOLLOWED || all->owed < each - ahead || next >= FOLLOWED)
		return;
	all->all[next].ns = ready->ns;
	all->all[next].until = until;
	all->all[next].packets = all->owed + ahead;
	all->packets += all->owed + ahead;
	all->owed = -ahead;
	all->next = next + 1 < FOLLOWED ? next + 1 : 0;
	all->count++;
}

enum arrival {
	IS_FOLLOWED,
	/* A reader of another CPU was faster than this hook. */
	IS_READ,
};

/* Follows the packet that has just become ready to its read, or has it stood for. */
static __always_inline enum arrival follow(struct sock *sk, const struct from *ready, __u64 turn)
{
	struct tcp_sock *tcp;
	struct followed *all;
	struct waiting oldest;
	bool is_stale;
	__u32 until;
	__s32 queued = 0;

	if (sk->__sk_common.skc_state == TCP_LISTEN)
		return IS_FOLLOWED;
	if (sk->sk_protocol == TCP) {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp || tcp->rcv_nxt == tcp->copied_seq)
			return IS_FOLLOWED;
		until = tcp->rcv_nxt;
	} else {
		/* Reads of other streams give no information about packets. */
		if (sk->sk_type != SOCK_DGRAM && sk->sk_type != SOCK_RAW)
			return IS_FOLLOWED;
		queued = queued_in(sk);
		if (!queued)
			return IS_READ;
		until = 0;
	}
	all = bpf_sk_storage_get(&waiting, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!all)
		return IS_FOLLOWED;
	is_stale = oldest_of(all, &oldest) && went_unseen(sk, &oldest, ready->ns, 1);
	bpf_spin_lock(&all->lock);
	if (is_stale) {
		all->first = all->next;
		all->count = 0;
		all->packets = 0;
	}
	if (all->turn != turn) {
		all->turn = turn;
		all->owed = 0;
	}
	if (sk->sk_protocol != TCP)
		until = all->reads + queued;
	all->owed++;
	if (queued >= 0)
		note_arrival(all, ready, until);
	bpf_spin_unlock(&all->lock);
	return IS_FOLLOWED;
}

/* A read, and what it shows about packets. */
struct one_read {
	__u32 before; /* TCP: what was read before it, and with it, as sequence numbers */
	__u32 until;
	bool is_tcp;
	bool is_counted; /* among the reads of the socket */
	bool has_all;    /* nothing is queued */
};

static __always_inline bool describe_read(struct sock *sk, __u32 bytes, struct one_read *read)
{
	struct tcp_sock *tcp;

	read->is_tcp = sk->sk_protocol == TCP;
	if (read->is_tcp) {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp)
			return false;
		read->until = tcp->copied_seq;
		read->before = read->until - bytes;
		return true;
	}
	return true;
}

/* A datagram that fails its checksum at the read does not count as read: check the queue, too, whether it is empty. */
static __always_inline bool is_drained(struct sock *sk, const struct one_read *read)
{
	return !read->is_tcp && !read->has_all && !sk->sk_receive_queue.qlen && !queued_in(sk);
}

/* Takes the oldest packet out that this read, or one before it, has taken; whether there was one. */
static __always_inline bool take_read(struct followed *all, struct one_read *read, struct waiting *taken)
{
	bool is_taken = false;
	__u32 first, reached;

	bpf_spin_lock(&all->lock);
	if (!read->is_tcp && !read->is_counted)
		all->reads++;
	read->is_counted = true;
	reached = read->is_tcp ? read->until : all->reads;
	first = all->first;
	if (all->count && first < FOLLOWED &&
	    (read->has_all || (__s32)(reached - all->all[first].until) >= 0)) {
		*taken = all->all[first];
		all->first = first + 1 < FOLLOWED ? first + 1 : 0;
		all->count--;
		all->packets -= taken->packets;
		is_taken = true;
	}
	bpf_spin_unlock(&all->lock);
	return is_taken;
}

/* Followed and unread packets of a socket. */
struct unread {
	__u64 packets;
	__u64 oldest_ns; /* since when the oldest waits */
};

/* One for each socket that has a storage; all 0 where nothing is followed. */
SEC("iter/bpf_sk_storage_map")
int rxpath_still_followed(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct unread unread = {};
	struct sock *sk = ctx->sk;
	struct followed *all;
	struct waiting oldest;

	if (!sk)
		return 0;
	/* The value that the iterator gives may be read at constant offsets only. */
	all = bpf_sk_storage_get(&waiting, sk, 0, 0);
	if (!all)
		return 0;
	if (oldest_of(all, &oldest) && !went_unseen(sk, &oldest, bpf_ktime_get_ns(), 0)) {
		unread.packets = all->packets;
		unread.oldest_ns = oldest.ns;
	}
	bpf_seq_write(ctx->meta->seq, &unread, sizeof(unread));
	return 0;
}

#endif
