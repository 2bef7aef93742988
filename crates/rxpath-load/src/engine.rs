//! The interface to the kernel: clocks, threads, sockets, batches of messages. All unsafe code of this crate is here.

pub mod batch;
pub mod clock;
pub mod direct;
pub mod epoll;
pub mod frame;
pub mod hops;
pub mod listen;
pub(crate) mod memory;
pub mod packet;
pub mod socket;
pub mod spin;
pub mod steer;
pub mod tcp;
pub mod tcp_info;
pub mod thread;
pub(crate) mod uring;
pub(crate) mod xsk;
pub mod zerocopy;
