//! The netlink protocol: sockets, messages and the families of generic netlink.
//!
//! The question it answers: *how is the kernel asked, without another program's text in between?* Every socket works in the
//! network namespace of the thread that opened it. Synchronous: no runtime, one question at a time. What is asked is in
//! [`crate::read::netlink`], what is changed in [`crate::write::netlink`].

pub(crate) mod genl;
pub mod socket;
pub mod wire;

pub use socket::Netlink;
