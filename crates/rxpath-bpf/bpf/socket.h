/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * By what a process knows its socket: the inode that the links in /proc/PID/fd name. 0 when no file is left.
 */
#ifndef RXPATH_SOCKET_H
#define RXPATH_SOCKET_H

static __always_inline __u64 socket_inode(struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);

	return socket ? BPF_CORE_READ(socket, file, f_inode, i_ino) : 0;
}

#endif
