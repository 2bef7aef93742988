//! UDP: senders and receivers that count every datagram.

pub mod result;
