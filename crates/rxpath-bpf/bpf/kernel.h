/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel's types as far as the programs here read them. Offsets are not taken from this file: CO-RE moves
 * each access to where the running kernel has the field. Names and types follow Linux 6.1 to 6.18; what changed
 * between them says so.
 */
#ifndef RXPATH_KERNEL_H
#define RXPATH_KERNEL_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_XSKMAP = 17,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1
#define BPF_RB_NO_WAKEUP 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

/* include/linux/socket.h */
#define AF_INET 2
#define AF_INET6 10
#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000

/* include/linux/net.h */
#define SOCK_DGRAM 2
#define SOCK_RAW 3

/* include/uapi/linux/if_ether.h */
#define ETH_IP 0x0800
#define ETH_IPV6 0x86dd

/* include/uapi/linux/in.h */
#define TCP 6
#define UDP 17
#define UDP_LITE 136

/* include/net/tcp_states.h; those of the first and the last are no full sockets. */
#define TIME_WAIT 6
#define TCP_LISTEN 10
#define NEW_SYN_RECV 12

/* include/linux/interrupt.h */
#define NET_TX_VECTOR 2
#define NET_RX_VECTOR 3
#define TASKLET_VECTOR 6
#define HRTIMER_VECTOR 8

/* include/trace/events/lock.h */
#define LCB_F_SPIN 1
#define LCB_F_MUTEX 32

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* include/linux/hrtimer_types.h, workqueue_types.h */
struct hrtimer {
	void *function;
};

struct work_struct {
	void *func;
};

struct nsproxy;
struct css_set;

/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay;
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	__u64 start_time;
	char comm[16];
	struct sched_entity se;
	struct sched_info sched_info;
	struct nsproxy *nsproxy;
	struct css_set *cgroups;
};

/* arch/x86/include/asm/ptrace.h */
struct pt_regs {
	unsigned long orig_ax;
};

/* include/net/net_namespace.h, include/linux/ns_common.h */
struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

/* include/linux/nsproxy.h */
struct nsproxy {
	struct net *net_ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

/* include/linux/netdevice.h */
struct net_device {
	char name[16];
	int ifindex;
	possible_net_t nd_net;
};

struct napi_struct {
	struct net_device *dev;
	unsigned int napi_id;
};

/* include/linux/interrupt.h */
struct irqaction {
	const char *name;
};

/* include/uapi/linux/in6.h; named in sock_common only */
struct in6_addr {
	__u8 bytes[16];
};

/* include/linux/types.h */
typedef struct {
	__s64 counter;
} atomic64_t;

/* include/net/sock.h */
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct socket {
	struct file *file;
};

/* include/linux/kernfs.h */
struct kernfs_node {
	__u64 id;
};

/* include/linux/cgroup-defs.h; ancestors since 6.1 (7f203bc89eb6) */
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[1];
};

/* Of a task: its group in the hierarchy of version 2. */
struct css_set {
	struct cgroup *dfl_cgrp;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

/* include/linux/skbuff.h */
struct sk_buff_head {
	struct sk_buff *prev; /* the last of the queue */
	__u32 qlen;
};

struct sock_reuseport;

typedef struct {
	int counter;
} atomic_t;

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	struct {
		atomic_t rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
	__u16 sk_type;
	__u16 sk_protocol;
	struct socket *sk_socket;
	struct sock_cgroup_data sk_cgrp_data;
	struct sock_reuseport *sk_reuseport_cb;
};

/* include/linux/udp.h */
struct udp_sock {
	struct sk_buff_head reader_queue;
};

/* include/linux/tcp.h */
struct tcp_sock {
	__u32 rcv_nxt;
	__u32 copied_seq;
};

/* include/linux/skbuff.h */
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	__u8 l4_hash : 1; /* the hash is of addresses and ports */
	int skb_iif;
	__u32 hash;
	__be16 protocol;
	__u16 transport_header;
	__u16 network_header;
	unsigned int end; /* offset from head on 64-bit kernels, where BPF runs */
	unsigned char *head;
	unsigned char *data;
	unsigned int len;
	unsigned int data_len;
};

/* include/linux/skbuff.h, at `end` */
struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
};

/* include/linux/bpf.h; the members of contexts of iterators are 8 bytes apart on every machine (__bpf_md_ptr). */
struct bpf_iter_meta {
	struct seq_file *seq;
};

#pragma clang attribute pop

#endif
