// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * A sender of UDP datagrams without sockets: BPF_PROG_TEST_RUN with live frames runs the program for each frame of a
 * page pool, and the frame leaves by the device that the program names (net/bpf/test_run.c, xdp_test_run_batch).
 *
 * A frame that is not due yet is dropped, which gives its page back: so the kernel's loop waits for the schedule.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "layout.h"
#include "log2.h"
#include "xdp.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* include/uapi/linux/bpf.h */
#define BPF_F_MMAPABLE 1024

/* The header of a payload: rxpath-load/src/udp/header.rs. */
#define PAYLOAD_HEADER 16
#define SEQUENCE_LOW 48
#define TIME_SHIFT 24
#define CHECKSUM 2

#define LATE_BITS 5
#define LATE_BUCKETS 1024

/* Set by the reader before loading. */
const volatile struct {
	/* From one frame to the next, and what is left of a ns, over `rate`; 0 rate: as fast as possible. */
	__u64 step_ns;
	__u64 step_fraction;
	__u64 rate;
	/* The first frame's distance from the start. */
	__u64 first_ns;
	__u64 first_fraction;
	__u32 ifindex;
	__u32 flows;
	/* Frames of a flow in a row. */
	__u32 batch;
	/* Bytes in front of the payload. */
	__u32 head_bytes;
	/* Whether payloads begin with a header. */
	__u32 has_header;
	/* The thread that runs the program. */
	__u32 tid;
} config;

struct flow {
	__u8 head[68];
	/* Of all that the checksum covers but the payload's header; rxpath-load/src/engine/frame.rs. */
	__u32 sum;
	/* Stream and clock of the payload's header. */
	__u64 stream;
	__u64 sequence;
};

LAYOUT(struct flow, 88);

MAP(flows, ARRAY, 1, __u32, struct flow);

/* The thread reads and writes it in place. */
struct sender {
	/* Set by the thread. 0 = not known yet. */
	__u64 start_ns;
	__u64 span_ns;
	__u64 limit;
	/* From when the span is: later than start_ns where that had passed. */
	__u64 began_ns;
	__u64 next_ns;
	__u64 fraction;
	/* Frames that were given to the device, the first and the last of them. */
	__u64 offered;
	__u64 first_ns;
	__u64 last_ns;
	/* What the device said of them (xdp_devmap_xmit). */
	__u64 taken;
	__u64 refused;
	__u64 late_max_ns;
	__u32 flow;
	__u32 in_a_row;
};

LAYOUT(struct sender, 104);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sender);
} sender SEC(".maps");

/* How late frames were, in ns: buckets of log2.h. */
MAP(late, ARRAY, LATE_BUCKETS, __u32, __u64);

static __always_inline void note_late(struct sender *s, __u64 late_ns)
{
	__u32 bucket = step_bucket(late_ns, LATE_BITS, LATE_BUCKETS);
	__u64 *count = bpf_map_lookup_elem(&late, &bucket);

	if (count)
		++*count;
	if (late_ns > s->late_max_ns)
		s->late_max_ns = late_ns;
}

/* Whether a frame is due; moves the schedule on. */
static __always_inline bool is_due(struct sender *s, __u64 now)
{
	__u64 start = *(volatile __u64 *)&s->start_ns;

	if (!start || now < start)
		return false;
	if (!s->began_ns) {
		/* A past instant means now: the schedule must not begin with a burst. */
		s->began_ns = now - start > 1000000 ? now : start;
		s->next_ns = s->began_ns + config.first_ns;
		s->fraction = config.first_fraction;
	}
	if (now - s->began_ns >= s->span_ns || s->offered >= s->limit)
		return false;
	if (!config.rate)
		return true;
	if (now < s->next_ns)
		return false;
	note_late(s, now - s->next_ns);
	s->next_ns += config.step_ns;
	s->fraction += config.step_fraction;
	if (s->fraction >= config.rate) {
		s->fraction -= config.rate;
		s->next_ns += 1;
	}
	return true;
}

/* The flow of the next frame. */
static __always_inline struct flow *turn(struct sender *s)
{
	if (config.flows > 1 && s->in_a_row >= config.batch) {
		s->in_a_row = 0;
		s->flow = s->flow + 1 < config.flows ? s->flow + 1 : 0;
	}
	++s->in_a_row;
	return bpf_map_lookup_elem(&flows, &s->flow);
}

/*
 * Headers, and the header of the payload. `head_bytes` is a constant, so that copies have a known size.
 * Returns false for a frame that is too short, which the reader does not make.
 */
static __always_inline bool write(struct xdp_md *ctx, struct flow *f, __u64 now, const __u32 head_bytes)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;
	__u64 words[2], sum;
	__u16 checksum;

	if (data + head_bytes > end)
		return false;
	/* A page that comes back has the headers of the flow that it was sent by last. */
	if (config.flows > 1)
		__builtin_memcpy(data, f->head, head_bytes);
	if (!config.has_header)
		return true;
	if (data + head_bytes + PAYLOAD_HEADER > end)
		return false;
	words[0] = f->stream | f->sequence << SEQUENCE_LOW;
	words[1] = now << TIME_SHIFT | ((f->sequence >> 16) & 0xffffff);
	__builtin_memcpy(data + head_bytes, words, sizeof(words));
	sum = f->sum;
	sum += (__u32)words[0];
	sum += words[0] >> 32;
	sum += (__u32)words[1];
	sum += words[1] >> 32;
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	/* No checksum would be a zero (RFC 768). */
	checksum = sum == 0xffff ? 0xffff : ~sum;
	__builtin_memcpy(data + head_bytes - CHECKSUM, &checksum, sizeof(checksum));
	return true;
}

SEC("xdp")
int rxpath_live_frame(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct sender *s = bpf_map_lookup_elem(&sender, &zero);
	struct flow *f;
	__u64 now;
	bool done;

	if (!s)
		return XDP_ABORTED;
	now = bpf_ktime_get_ns();
	if (!is_due(s, now))
		return XDP_DROP;
	f = turn(s);
	if (!f)
		return XDP_ABORTED;
	switch (config.head_bytes) {
	case 42:
		done = write(ctx, f, now, 42);
		break;
	case 46:
		done = write(ctx, f, now, 46);
		break;
	case 62:
		done = write(ctx, f, now, 62);
		break;
	case 66:
		done = write(ctx, f, now, 66);
		break;
	default:
		return XDP_ABORTED;
	}
	if (!done)
		return XDP_ABORTED;
	++f->sequence;
	if (!s->offered)
		s->first_ns = now;
	s->last_ns = now;
	++s->offered;
	return bpf_redirect(config.ifindex, 0);
}

/* What the driver did with up to 16 frames (kernel/bpf/devmap.c, bq_xmit_all). */
SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(rxpath_xdp_devmap_xmit, const void *from, const void *to, int sent, int drops, int err)
{
	__u32 zero = 0;
	struct sender *s;

	/* Frames of this program only: they come from the device that they leave by. */
	if (from != to || (__u32)bpf_get_current_pid_tgid() != config.tid)
		return 0;
	s = bpf_map_lookup_elem(&sender, &zero);
	if (s) {
		s->taken += sent;
		s->refused += drops;
	}
	return 0;
}
