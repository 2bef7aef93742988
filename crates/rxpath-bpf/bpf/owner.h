/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The owner of a socket: its control group and its process. The verifier removes the code that the constants rule out.
 */
#ifndef RXPATH_OWNER_H
#define RXPATH_OWNER_H

#include "layout.h"
#include "socket.h"

/* Part of each program's `config`, set by the reader before loading. */
struct owner {
	__u64 cgroup;    /* only sockets of this cgroup (version 2) and those below it, unless 0 */
	__u32 level;     /* how deep it lies */
	__u32 by_inode;  /* only sockets in `wanted` */
};

/* Inodes of the sockets that a process has open; the reader keeps it. */
MAP(wanted, HASH, 16384, __u64, __u32);

static __always_inline bool is_wanted(const volatile struct owner *owner, struct sock *sk)
{
	if (!owner->cgroup && !owner->by_inode)
		return true;
	if (!sk)
		return false;
	if (owner->by_inode) {
		__u64 inode = socket_inode(sk);

		if (!inode || !bpf_map_lookup_elem(&wanted, &inode))
			return false;
	}
	if (owner->cgroup) {
		struct cgroup *cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
		struct cgroup *above = 0;

		if (!cgroup || BPF_CORE_READ(cgroup, level) < (int)owner->level)
			return false;
		/* The array has an entry for each level down to the group itself. */
		bpf_probe_read_kernel(&above, sizeof(above),
				      (void *)__builtin_preserve_access_index(&cgroup->ancestors) +
					      (owner->level & 255) * sizeof(above));
		if (BPF_CORE_READ(above, kn, id) != owner->cgroup)
			return false;
	}
	return true;
}

#endif
