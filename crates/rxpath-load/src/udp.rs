//! UDP: senders and receivers that count every datagram.

pub mod header;
pub mod load;
pub mod result;
pub mod sender_clock;
pub mod serve;
pub mod tracker;
pub mod wire;
pub mod xdp;
