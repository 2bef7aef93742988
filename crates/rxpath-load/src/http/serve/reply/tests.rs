//! Tests of this module.

use super::*;
use proptest::prelude::*;

/// The bytes that a queue stands for, by pieces of one write after the other.
fn written(
    mut queue: ReplyQueue,
    reply_table: &ReplyTable,
    step: usize,
) -> (Vec<u8>, [u64; KINDS]) {
    let (mut bytes, mut done) = (Vec::new(), [0; KINDS]);
    while let Some((piece, is_all)) = queue.piece(reply_table) {
        let taken = piece.len().min(step);
        bytes.extend_from_slice(&piece[..taken]);
        queue.advance(reply_table, taken as u64, &mut done);
        assert_eq!(queue.is_empty(), is_all && taken == piece.len());
    }
    (bytes, done)
}

/// The same by gathering writes.
fn gathered(mut queue: ReplyQueue, reply_table: &ReplyTable) -> Vec<u8> {
    let (mut bytes, mut done) = (Vec::new(), [0; KINDS]);
    while !queue.is_empty() {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let used = queue.pieces(reply_table, &mut slices);
        let before = bytes.len();
        for slice in &slices[..used] {
            bytes.extend_from_slice(slice);
        }
        queue.advance(reply_table, (bytes.len() - before) as u64, &mut done);
    }
    bytes
}

fn queue(kinds: &[Kind]) -> ReplyQueue {
    let mut queue = ReplyQueue::default();
    for kind in kinds {
        queue.push(*kind);
    }
    queue
}

/// The reply as it is on the wire.
fn plain(kind: Kind, body: u64) -> Vec<u8> {
    let mut bytes = kind.head(body).into_bytes();
    if kind.has_body() {
        bytes.resize(bytes.len() + body as usize, b'x');
    }
    bytes
}

proptest! {
    #[test]
    fn a_queue_is_its_replies_in_order(
        kinds in proptest::collection::vec(proptest::sample::select(Kind::ALL.to_vec()), 1..40),
        repeat in 1usize..200, step in 1usize..100_000, body in 0u64..300,
    ) {
        let kinds: Vec<Kind> = kinds.iter().flat_map(|kind| vec![*kind; 1 + repeat % 7 * 20]).collect();
        let reply_table = ReplyTable::new(body);
        let want: Vec<u8> = kinds.iter().flat_map(|kind| plain(*kind, body)).collect();
        let (got, done) = written(queue(&kinds), &reply_table, step);
        prop_assert!(got == want);
        prop_assert_eq!(done.iter().sum::<u64>(), kinds.len() as u64);
        prop_assert!(gathered(queue(&kinds), &reply_table) == want);
    }
}

#[test]
fn a_body_longer_than_a_block_is_whole() {
    const BODY: u64 = 200_001;
    let reply_table = ReplyTable::new(BODY);
    let kinds = [Kind::Ok, Kind::OkHead, Kind::Ok];
    let want: Vec<u8> = kinds.iter().flat_map(|kind| plain(*kind, BODY)).collect();
    assert!(written(queue(&kinds), &reply_table, 70_000).0 == want);
    assert!(gathered(queue(&kinds), &reply_table) == want);
    assert!(reply_table.filler.len() < BODY as usize, "no copy of the body is kept");
}

#[test]
fn a_queue_that_is_never_empty_keeps_its_size() {
    let reply_table = ReplyTable::new(70);
    let turns = [Kind::Ok, Kind::OkHead].repeat(50);
    let (mut waiting, mut done) = (queue(&turns), [0; KINDS]);
    let bytes: u64 = turns.iter().map(|kind| reply_table.len(*kind)).sum();
    for _ in 0..1000 {
        // All but the last reply is written, and as many more come.
        waiting.append(&mut queue(&turns));
        waiting.advance(&reply_table, bytes, &mut done);
        assert_eq!(waiting.runs(), 100);
    }
    assert!(waiting.held_bytes() <= 4 * 100 * size_of::<Run>(), "{}", waiting.held_bytes());
    assert_eq!(size_of::<Run>(), 2);
}

#[test]
fn pipelined_replies_are_one_piece() {
    let reply_table = ReplyTable::new(70);
    let (piece, is_all) = queue(&[Kind::Ok; 100]).piece(&reply_table).unwrap();
    assert_eq!((piece.len() as u64, is_all), (100 * reply_table.len(Kind::Ok), true));
}

#[test]
fn every_kind_is_at_its_number() {
    for (number, kind) in Kind::ALL.iter().enumerate() {
        assert_eq!(*kind as usize, number);
        let head = kind.head(5);
        assert!(head.starts_with(&format!("HTTP/1.1 {} ", kind.status())), "{head}");
        assert!(head.ends_with("\r\n\r\n"));
    }
}
