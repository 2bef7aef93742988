/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet of a socket that is followed from its arrival there to its read; of each socket one at a time.
 *
 * Its read is known by its sequence number (TCP), or by the number of datagrams that have to be read before it and with it.
 * A read that was under way when the packet came is one of those, so that a datagram's wait may end one read early; and one
 * that another CPU queued at the same moment may be counted as before it, so that it may end late by those. Where several
 * threads read one socket, a wait that ends while the socket's queue is empty may be missed.
 *
 * Not each packet is read where it can be seen: splice and readers within the kernel pass the hook by, and a damaged
 * datagram goes at the read. What is followed for long and no longer queued is given up, so that no later read is taken for
 * its own.
 *
 * It is kept in the socket's own storage, which is gone with the socket: a packet that is never read is waited for no
 * longer than its socket lives. Softirqs and readers of several CPUs meet here. The state belongs to whom its exchange
 * succeeds for, and what else is kept is written only by the one that claimed it.
 */
#ifndef RXPATH_FOLLOWED_H
#define RXPATH_FOLLOWED_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* net/core/bpf_sk_storage.c */
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	__u64 map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

/* The low half of a state: reads up to and with the packet's own. 0: none is followed. */
#define READS(state) ((__u32)(state))
/* It is being written. */
#define CLAIMED 0xffffffffu
/* The high half counts the packets that were followed, so that a read never counts for the next one. */
#define NEXT(state) ((((state) >> 32) + 1) << 32)
#define ENDED(state) (((state) >> 32) << 32)

/* Reads of several threads that meet at one socket: more in a row than this are not expected. */
#define ATTEMPTS 4

/* A reader that has taken a packet comes to the hook sooner than this. */
#define LONG_NS 10000000

/* A packet, and from when. */
struct from {
	__u64 ns;
	__u32 ifindex;
	__u32 netns;
};

struct followed {
	__u64 state;
	struct from ready;
	__u32 end; /* TCP: the sequence number behind it */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct followed);
} waiting SEC(".maps");

/* Since when each read is seen. Of what became ready before, reads may have been missed: it is given up. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} reads_since SEC(".maps");

static __always_inline bool is_missed(const struct followed *packet)
{
	__u32 zero = 0;
	__u64 *since = bpf_map_lookup_elem(&reads_since, &zero);

	return since && packet->ready.ns < *since;
}

/* Datagrams that wait to be read; 0 when none does, or when the reader moves them from one queue to the other. */
static __always_inline __u32 unread(struct sock *sk)
{
	__u32 queued = BPF_CORE_READ(sk, sk_receive_queue.qlen);
	__u32 moved;

	if (sk->sk_protocol != UDP && sk->sk_protocol != UDP_LITE)
		return queued;
	moved = BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
	if (queued != BPF_CORE_READ(sk, sk_receive_queue.qlen))
		return 0;
	if (moved != BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen))
		return 0;
	return queued + moved;
}

/* Reads up to and with that of the packet that has just become ready; 0 when that can't be known. */
static __always_inline __u32 reads_to_come(struct sock *sk, __u32 *end)
{
	struct tcp_sock *tcp;

	if (sk->sk_protocol == TCP) {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp || tcp->rcv_nxt == tcp->copied_seq)
			return 0;
		*end = tcp->rcv_nxt;
		return 1;
	}
	/* Reads of other streams say nothing of packets. */
	if (sk->sk_type != SOCK_DGRAM && sk->sk_type != SOCK_RAW)
		return 0;
	return unread(sk);
}

/* Whether the packet that is followed went unseen long ago: no more is queued than what came after it. */
static __always_inline bool went_unseen(struct sock *sk, struct followed *packet, __u64 now, __u32 after)
{
	struct tcp_sock *tcp;

	if (READS(packet->state) == CLAIMED)
		return false;
	if (is_missed(packet))
		return true;
	if (now - packet->ready.ns < LONG_NS)
		return false;
	if (sk->sk_protocol != TCP)
		return unread(sk) <= after;
	tcp = bpf_skc_to_tcp_sock(sk);
	return tcp && (__s32)(tcp->copied_seq - packet->end) >= 0;
}

/* Follows the packet that has just become ready to its read, unless one before it is still followed. */
static __always_inline void follow(struct sock *sk, const struct from *ready)
{
	struct followed *packet;
	__u64 before, claimed;
	__u32 end = 0, reads;

	if (sk->__sk_common.skc_state == TCP_LISTEN)
		return;
	packet = bpf_sk_storage_get(&waiting, sk, 0, 0);
	if (packet && READS(packet->state) && !went_unseen(sk, packet, ready->ns, 1))
		return;
	reads = reads_to_come(sk, &end);
	if (!reads)
		return;
	if (!packet)
		packet = bpf_sk_storage_get(&waiting, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!packet)
		return;
	before = *(volatile __u64 *)&packet->state;
	claimed = NEXT(before) | CLAIMED;
	if (READS(before) == CLAIMED || __sync_val_compare_and_swap(&packet->state, before, claimed) != before)
		return;
	packet->ready = *ready;
	packet->end = end;
	/* An exchange, and no store: what was written before it is seen before it. */
	__sync_lock_test_and_set(&packet->state, NEXT(before) | reads);
}

/* Counts a read of datagrams; the state after it. */
static __always_inline bool count_read(struct followed *packet, __u64 *state)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		__u64 before = *state, now;

		if (!READS(before) || READS(before) == CLAIMED)
			return false;
		now = __sync_val_compare_and_swap(&packet->state, before, before - 1);
		if (now == before) {
			*state = before - 1;
			return true;
		}
		/* Another packet is followed: this read came before it. */
		if (now >> 32 != before >> 32)
			return false;
		*state = now;
	}
	return false;
}

/* Whether the read that has just ended, of so many bytes, is that of the packet that is followed: then from when it was
 * ready. */
static __always_inline bool ends_with(struct sock *sk, __u32 bytes, struct from *from)
{
	struct followed *packet = bpf_sk_storage_get(&waiting, sk, 0, 0);
	struct tcp_sock *tcp;
	__u64 state;

	if (!packet || !READS(packet->state))
		return false;
	/* An exchange that changes nothing: what is read after it is not older. */
	state = __sync_fetch_and_or(&packet->state, 0);
	if (!READS(state) || READS(state) == CLAIMED)
		return false;
	*from = packet->ready;
	if (is_missed(packet)) {
		__sync_val_compare_and_swap(&packet->state, state, ENDED(state));
		return false;
	}
	if (sk->sk_protocol == TCP) {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp || (__s32)(tcp->copied_seq - packet->end) < 0)
			return false;
		/* Of several threads that read one socket, one ends it. */
		if (__sync_val_compare_and_swap(&packet->state, state, ENDED(state)) != state)
			return false;
		/* What was behind it before this read was taken by another that nothing showed. */
		return (__s32)(tcp->copied_seq - bytes - packet->end) < 0;
	}
	if (!count_read(packet, &state))
		return false;
	if (!READS(state))
		return true;
	/* A datagram that fails its checksum at the read is none that was read. */
	if (!BPF_CORE_READ(sk, sk_receive_queue.qlen) && !unread(sk))
		__sync_val_compare_and_swap(&packet->state, state, ENDED(state));
	return false;
}

/* A byte for each socket that has a storage: 1 where a packet is followed, 0 otherwise. */
SEC("iter/bpf_sk_storage_map")
int rxpath_still_followed(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct followed *packet = ctx->value;
	struct sock *sk = ctx->sk;
	__u64 state;
	__u8 told;

	if (!packet || !sk)
		return 0;
	state = *(volatile __u64 *)&packet->state;
	if (READS(state) && went_unseen(sk, packet, bpf_ktime_get_ns(), 0)) {
		__sync_val_compare_and_swap(&packet->state, state, ENDED(state));
		state = 0;
	}
	told = READS(state) != 0;
	bpf_seq_write(ctx->meta->seq, &told, sizeof(told));
	return 0;
}

#endif
