//! Sockets and protocol.

pub mod buffers;
