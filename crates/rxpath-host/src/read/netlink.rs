//! What the kernel answers over netlink: one topic in each file below.
//!
//! The question it answers: *which links, addresses, qdiscs, features and sockets are there, and what
//! do their counters say?*

pub mod addr;
pub mod audit;
pub mod ethtool;
pub mod link;
pub mod link_events;
pub mod link_settings;
pub mod napi;
pub mod neigh;
pub mod netdev;
pub mod netfilter;
pub mod nft_tables;
pub mod qdisc;
pub mod queues;
pub mod route;
pub mod sockdiag;

pub use link::{NetworkLink, XdpMode, XdpProgram};
pub use link_events::LinkEvents;
pub use qdisc::DeviceQdisc;
pub use queues::{QueueAsk, Queues};
pub use sockdiag::{SkMemInfo, TcpDiagInfo, TcpSocket, TcpState, UdpSocket};
