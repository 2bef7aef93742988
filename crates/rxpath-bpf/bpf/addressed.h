/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The destination of a packet, from its headers.
 */
#ifndef RXPATH_ADDRESSED_H
#define RXPATH_ADDRESSED_H

#include <bpf/bpf_endian.h>

/* Transport protocol and destination port of a packet, from its IP header on; 0 for packets that are not IP. */
static __always_inline __u32 addressed(unsigned char *ip, __u16 *port)
{
	__u8 first = 0, transport = 0;
	__u16 at;
	__be16 to = 0;

	if (bpf_probe_read_kernel(&first, 1, ip))
		return 0;
	if (first >> 4 == 4) {
		bpf_probe_read_kernel(&transport, 1, ip + 9);
		at = (first & 15) * 4;
	} else if (first >> 4 == 6) {
		bpf_probe_read_kernel(&transport, 1, ip + 6);
		at = 40;
	} else {
		return 0;
	}
	if (transport == TCP || transport == UDP) {
		bpf_probe_read_kernel(&to, sizeof(to), ip + at + 2);
		*port = bpf_ntohs(to);
	}
	return transport;
}

/* Destination address of a packet, from its IP header on: 16 bytes, of IPv4 as ::ffff:a.b.c.d. */
static __always_inline void destination(unsigned char *ip, __u8 to[16])
{
	__u8 first = 0;

	if (bpf_probe_read_kernel(&first, 1, ip))
		return;
	if (first >> 4 == 4) {
		to[10] = to[11] = 0xff;
		bpf_probe_read_kernel(to + 12, 4, ip + 16);
	} else if (first >> 4 == 6) {
		bpf_probe_read_kernel(to, 16, ip + 24);
	}
}

#endif
