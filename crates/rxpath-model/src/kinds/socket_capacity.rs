//! How many datagrams an unread UDP socket holds.
//!
//! **Source** `__udp_enqueue_schedule_skb` (net/ipv4/udp.c). Linux 6.18: admitted while the queue with the new
//! datagram's truesize fits `sk_rcvbuf`, or the queue is empty. Before: admitted while the queue alone fits, which is
//! one datagram more. `truesize` is the kernel's memory per datagram, not its payload: measure it with SO_MEMINFO.

use crate::inputs::{Inputs, Outputs, Problem};

/// Datagrams held by the rule since 6.18.
pub fn capacity(rcvbuf_bytes: u64, truesize_bytes: u64) -> u64 {
    (rcvbuf_bytes / truesize_bytes.max(1)).max(1)
}

/// Kernel memory of a queued datagram with this payload, as plain senders on one host give it.
///
/// **Source** 320 bytes of `skb_shared_info` and 64 of headers plus the payload, in a slab of 576 bytes or the next
/// power of two, and 256 for `sk_buff` (`SKB_TRUESIZE`, include/linux/skbuff.h). **Caveat** NICs that fill pages have
/// 2304 to 4352.
pub fn estimated_truesize(payload_bytes: u64) -> u64 {
    let needed = payload_bytes.min(1 << 32) + 384;
    let head = if needed <= 576 { 576 } else { needed.next_power_of_two() };
    head + 256
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let rcvbuf = inputs.whole("sk_rcvbuf", 0..=1_000_000_000_000)?;
    let truesize = inputs.whole("truesize", 1..=1_000_000_000_000)?;
    Ok(Outputs::default()
        .value("n_new", capacity(rcvbuf, truesize))
        .value("n_old", rcvbuf / truesize + 1))
}
