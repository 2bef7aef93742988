/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The inode of a socket, as the links in /proc/PID/fd name it. 0 when no file is left.
 */
#ifndef RXPATH_SOCKET_H
#define RXPATH_SOCKET_H

static __always_inline __u64 socket_inode(struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);

	return socket ? BPF_CORE_READ(socket, file, f_inode, i_ino) : 0;
}

#endif
