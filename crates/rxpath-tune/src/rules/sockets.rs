//! Sockets and protocol.

pub mod buffers;
pub mod floors;
pub mod lookup;
pub mod placement;
pub mod tcp;
