/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What XDP programs are given and answer (include/uapi/linux/bpf.h). */
#ifndef RXPATH_XDP_H
#define RXPATH_XDP_H

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

enum { XDP_ABORTED = 0, XDP_DROP = 1, XDP_PASS = 2, XDP_REDIRECT = 4 };

#endif
