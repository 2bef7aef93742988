//! The netlink protocol: sockets, messages and the families of generic netlink.
//!
//! The question it answers: *how is the kernel asked, without another program's text in between?* Every socket works in the
//! network namespace of the thread that opened it. Synchronous: no runtime, one question at a time. What is asked is in
//! [`crate::read::netlink`], what is changed in [`crate::write::netlink`].

pub(crate) mod genl;
pub mod ioctl;
pub mod link;
pub mod link_events;
pub mod link_settings;
pub mod napi;
pub mod neigh;
pub mod netdev;
pub mod netfilter;
pub mod next_hop;
pub mod nft_tables;
pub mod qdisc;
pub mod queues;
pub mod route;
pub mod sockdiag;
pub mod socket;
pub mod wire;

pub use link::{Link, VethSpec, XdpMode, XdpProgram};
pub use link_events::LinkEvents;
pub use qdisc::{Qdisc, QdiscSpec};
pub use queues::{QueueAsk, Queues};
pub use sockdiag::{SkMemInfo, TcpInfo, TcpSocket, TcpState, UdpSocket};
pub use socket::Netlink;
