//! Tests of this module.

use super::*;
use proptest::prelude::*;

const RULES: Rules = Rules { max_head: 256, max_body: 4096, work_steps: 0 };
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Feeds the pieces; gives the statuses and what comes after.
fn talk(pieces: &[&str]) -> (Vec<Kind>, ConnectionAction) {
    let (mut scratch, mut dialogue) = (Scratch::new(RULES), Dialogue::default());
    let mut next = ConnectionAction::Open;
    for piece in pieces {
        assert_eq!(next, ConnectionAction::Open, "nothing is fed to a closed connection");
        next = dialogue.feed(&mut scratch, piece.as_bytes());
    }
    (scratch.queue.kinds().collect(), next)
}

fn request(line: &str, fields: &str) -> String {
    format!("{line}\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn pipelined_requests_are_all_answered() {
    assert_eq!(talk(&[&GET.repeat(50)]), (vec![Kind::Ok; 50], ConnectionAction::Open));
    let mixed = format!("{GET}{}{GET}", request("HEAD /x HTTP/1.1", ""));
    assert_eq!(talk(&[&mixed]), (vec![Kind::Ok, Kind::OkHead, Kind::Ok], ConnectionAction::Open));
}

#[test]
fn a_request_in_pieces_is_one_request() {
    let pieces: Vec<String> = GET.repeat(2).chars().map(String::from).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    assert_eq!(talk(&pieces), (vec![Kind::Ok; 2], ConnectionAction::Open));
}

#[test]
fn a_connection_holds_room_for_the_start_of_a_head_only() {
    let mut scratch = Scratch::new(Rules { max_head: 16 * 1024, ..RULES });
    let rest = " HTTP/1.1\r\nHost: a\r\n\r\n";
    let much = rest.to_owned() + &GET.repeat(300) + "GET /";
    // Many connections in turn: what one gives back, the next one gets.
    for _ in 0..3 {
        let mut dialogue = Dialogue::default();
        for text in ["GET /", &much, &much] {
            dialogue.feed(&mut scratch, text.as_bytes());
            let held = dialogue.held.as_ref().unwrap();
            assert!(held == b"GET /" && held.capacity() <= HELD_BYTES, "{}", held.capacity());
        }
        dialogue.feed(&mut scratch, rest.as_bytes());
    }
}

#[test]
fn bodies_are_skipped() {
    let sized = request("POST / HTTP/1.1", "Content-Length: 5\r\n");
    let chunked = request("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n");
    let text = format!("{sized}hello{GET}{chunked}3\r\nabc\r\n0\r\n\r\n{GET}");
    assert_eq!(talk(&[&text]), (vec![Kind::Ok; 4], ConnectionAction::Open));
    // A request that a body holds is no request.
    let nested = format!("{}{GET}", request("POST / HTTP/1.1", "Content-Length: 27\r\n"));
    assert_eq!(talk(&[&nested]).0.len(), 1);
}

#[test]
fn closing_is_honoured() {
    let close = request("GET / HTTP/1.1", "Connection: close\r\n");
    assert_eq!(talk(&[&close]), (vec![Kind::OkClose], ConnectionAction::Close));
    assert_eq!(talk(&[&(close + GET)]), (vec![Kind::OkClose], ConnectionAction::Linger));
    assert_eq!(talk(&["GET / HTTP/1.0\r\n\r\n"]), (vec![Kind::OkClose], ConnectionAction::Close));
    let post = request("POST / HTTP/1.1", "Connection: close\r\nContent-Length: 2\r\n");
    assert_eq!(talk(&[&post, "a", "b"]), (vec![Kind::OkClose], ConnectionAction::Close));
}

#[test]
fn refusals_close_after_what_came_before() {
    let bad = format!("{GET}DELETE / HTTP/1.1\r\nHost: a\r\n\r\n{GET}");
    assert_eq!(talk(&[&bad]), (vec![Kind::Ok, Kind::MethodNotAllowed], ConnectionAction::Linger));
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(300));
    assert_eq!(talk(&[&long]), (vec![Kind::HeadTooLarge], ConnectionAction::Linger));
    let whole = request("GET / HTTP/1.1", &format!("A: {}\r\n", "a".repeat(300)));
    assert_eq!(talk(&[&whole]), (vec![Kind::HeadTooLarge], ConnectionAction::Linger));
    for (length, kind) in [
        ("5000", Kind::ContentTooLarge),
        ("18446744073709551615", Kind::ContentTooLarge),
        ("18446744073709551616", Kind::BadRequest),
    ] {
        let big = request("POST / HTTP/1.1", &format!("Content-Length: {length}\r\n"));
        assert_eq!(talk(&[&big]), (vec![kind], ConnectionAction::Linger), "{length}");
    }
}

#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let head = request("POST / HTTP/1.1", "Content-Length: 2\r\nExpect: 100-continue\r\n");
    assert_eq!(talk(&[&head, "ab"]).0, [Kind::Continue, Kind::Ok]);
    // One that did not wait is not.
    assert_eq!(talk(&[&(head + "ab")]).0, [Kind::Ok]);
}

#[test]
fn another_request_is_not_taken_for_the_known_one() {
    let head = request("HEAD / HTTP/1.1", "");
    let post = request("POST / HTTP/1.1", "Content-Length: 1\r\n");
    let text = format!("{GET}{head}{GET}{post}x{GET}");
    let want = vec![Kind::Ok, Kind::OkHead, Kind::Ok, Kind::Ok, Kind::Ok];
    assert_eq!(talk(&[&text]), (want, ConnectionAction::Open));
}

fn part() -> impl Strategy<Value = Vec<u8>> {
    let texts = [
        GET.to_owned(),
        request("HEAD / HTTP/1.1", "Connection: keep-alive\r\n"),
        request("POST / HTTP/1.1", "Content-Length: 3\r\n") + "abc",
        request("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n") + "2\r\nab\r\n0\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n".to_owned(),
        "\r\n".to_owned(),
        "PUT".to_owned(),
    ];
    prop_oneof![
        4 => proptest::sample::select(texts.to_vec()).prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn pieces_make_no_difference(parts in proptest::collection::vec(part(), 0..8), size in 1u8..) {
        let mut bytes = vec![size];
        bytes.extend(parts.concat());
        prop_assert!(fuzz(&bytes));
    }
}
