//! Packets made by hand, as the root tests make them.

#[path = "../root/planted/frames.rs"]
#[allow(dead_code)]
pub mod frames;

/// The ends of the wire.
mod place {
    pub const TX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    pub const RX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
}
