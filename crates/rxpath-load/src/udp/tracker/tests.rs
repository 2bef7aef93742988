//! The tracker against a model that remembers every number.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::udp::header::first_stream;

/// Remembers everything.
#[derive(Default)]
struct Model {
    seen: BTreeMap<u32, BTreeSet<u64>>,
    duplicate: u64,
    reordered: u64,
}

impl Model {
    fn take(&mut self, stream: u32, number: u64) {
        let seen = self.seen.entry(stream).or_default();
        let highest = seen.last().copied();
        if !seen.insert(number) {
            self.duplicate += 1;
        } else if highest.is_some_and(|highest| number < highest) {
            self.reordered += 1;
        }
    }

    fn lost(&self) -> u64 {
        self.seen.values().map(|seen| seen.last().unwrap() + 1 - seen.len() as u64).sum()
    }
}

fn agree(datagrams: &[(u32, u64)]) {
    let (mut tracker, mut model) = (Tracker::default(), Model::default());
    for (stream, number) in datagrams {
        tracker.take(*stream, *number);
        model.take(*stream, *number);
    }
    let sum = summarize([&tracker]);
    assert_eq!(sum.lost_packets, model.lost());
    assert_eq!(sum.duplicate_packets, model.duplicate);
    assert_eq!(sum.reordered_packets, model.reordered);
    assert_eq!(sum.streams_count, model.seen.len() as u64);
    assert_eq!(sum.beyond_window_packets, 0);
}

/// A run of numbers, some left out, some twice, some late by less than the window.
fn traffic() -> impl Strategy<Value = Vec<(u32, u64)>> {
    let one = (0u32..3, 1u64..200, 0u64..400, 0u8..10);
    proptest::collection::vec(one, 1..600).prop_map(|steps| {
        let mut next = [0u64; 3];
        let mut out = Vec::new();
        for (stream, gap, back, kind) in steps {
            let at = &mut next[stream as usize];
            match kind {
                0 => *at += gap,
                1 => *at += gap * 100,
                2 | 3 if *at > 0 => {
                    out.push((stream, at.saturating_sub(back + 1)));
                    continue;
                }
                _ => {}
            }
            out.push((stream, *at));
            *at += 1;
        }
        out
    })
}

proptest! {
    #[test]
    fn agrees_with_the_model(datagrams in traffic()) {
        agree(&datagrams);
    }

    #[test]
    fn permuted_blocks_agree(seed in any::<u64>(), block in 1usize..4000) {
        let mut numbers: Vec<u64> = (0..8000).collect();
        let mut state = seed | 1;
        for chunk in numbers.chunks_mut(block) {
            for i in (1..chunk.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                chunk.swap(i, (state >> 33) as usize % (i + 1));
            }
        }
        agree(&numbers.iter().map(|n| (9, *n)).collect::<Vec<_>>());
    }
}

#[test]
fn in_order_nothing_is_lost() {
    agree(&(0..100_000).map(|n| (1, n)).collect::<Vec<_>>());
}

#[test]
fn a_jump_past_the_window_forgets_what_was_there() {
    let far = WINDOW * 3 + 5;
    agree(&[(1, 0), (1, far), (1, far - 1), (1, far - 1), (1, far - WINDOW / 2)]);
}

#[test]
fn a_number_below_the_window_is_late_and_said() {
    let mut tracker = Tracker::default();
    for number in [WINDOW * 2, 0] {
        tracker.take(1, number);
    }
    let sum = summarize([&tracker]);
    assert_eq!((sum.beyond_window_packets, sum.reordered_packets), (1, 1));
    assert_eq!(sum.lost_packets, WINDOW * 2 - 1);
}

#[test]
fn streams_beyond_the_bound_are_counted_untracked() {
    let mut tracker = Tracker::default();
    for stream in 0..MAX_STREAMS as u32 + 3 {
        tracker.take(stream.wrapping_mul(65_537), 0);
    }
    assert_eq!(tracker.untracked, 3);
    assert_eq!(summarize([&tracker]).streams_count, MAX_STREAMS as u64);
}

#[test]
fn a_stream_split_over_threads_loses_nothing() {
    let (mut one, mut two) = (Tracker::default(), Tracker::default());
    for number in 0..1000 {
        if number % 3 == 0 { one.take(7, number) } else { two.take(7, number) }
    }
    let sum = summarize([&one, &two]);
    assert_eq!((sum.lost_packets, sum.streams_count), (0, 1));
}

#[test]
fn what_came_is_told_by_sender_where_there_are_several() {
    let (mut one, mut two) = (Tracker::default(), Tracker::default());
    for number in 0..10 {
        one.take(first_stream(4, 0), number);
        two.take(first_stream(4, 0), 10 + number);
        two.take(first_stream(5, 2) | 1, number);
    }
    two.take(first_stream(5, 2) | 1, 9);
    let of = |sender, packets| SenderPackets { sender, packets };
    assert_eq!(summarize([&one, &two]).senders, [of(0, 20), of(2, 11)]);
    assert_eq!(summarize([&one]).senders, [], "a sender alone");
}
