//! Sockets and protocol.

pub mod buffers;
mod floor;
pub mod floors;
pub mod limits;
pub mod lookup;
pub mod losses;
pub mod neighbours;
pub mod placement;
pub mod tcp;
