use proptest::prelude::*;

use super::*;

const OK: Reply = Reply { status: 200, close: false };

/// Feeds pieces; the replies with the bytes that each took, and what the end of the connection means.
fn read(
    reader: &mut ResponseReader,
    known: &mut Known,
    pieces: &[&[u8]],
) -> Result<(Vec<(Reply, usize)>, Eof), Malformed> {
    let (mut replies, mut taken) = (Vec::new(), 0);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match reader.feed(rest, known)? {
                None => {
                    taken += rest.len();
                    break;
                }
                Some((used, reply)) => {
                    replies.push((reply, taken + used));
                    taken = 0;
                    rest = &rest[used..];
                }
            }
        }
    }
    Ok((replies, reader.eof()))
}

fn whole(text: &[u8]) -> Result<(Vec<(Reply, usize)>, Eof), Malformed> {
    read(&mut ResponseReader::new(false), &mut Known::new(), &[text])
}

/// The one reply of this text, when it is one and takes all of it.
fn one(text: &str) -> Reply {
    let (replies, end) = whole(text.as_bytes()).unwrap();
    match (&replies[..], end) {
        ([(reply, used)], Eof::Between) => {
            assert_eq!(*used, text.len(), "{text:?}");
            *reply
        }
        ([], Eof::Whole(reply)) => reply,
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn each_framing_is_told() {
    let close = |status| Reply { status, close: true };
    assert_eq!(one("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), OK);
    assert_eq!(one("HTTP/1.1 200 OK\r\ncontent-LENGTH: 0\r\n\r\n"), OK);
    assert_eq!(one("HTTP/1.1 200 OK\nContent-Length: 1\n\nx"), OK);
    assert_eq!(one("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nab"), OK);
    assert_eq!(one("HTTP/1.1 204 No Content\r\n\r\n"), Reply { status: 204, close: false });
    assert_eq!(
        one("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
        Reply { status: 304, close: false }
    );
    assert_eq!(one("HTTP/1.1 200 OK\r\n\r\nuntil the end"), close(200));
    assert_eq!(one("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n??"), close(200));
    assert_eq!(one("HTTP/1.0 404 No\r\nContent-Length: 0\r\n\r\n"), close(404));
    assert_eq!(one("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n"), OK);
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n"),
        close(200)
    );
}

#[test]
fn chunks_are_read_with_extensions_and_trailers() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 3\r\n\r\n";
    for body in [
        "0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
        "A;name=value\r\n0123456789\r\n000\r\n\r\n",
        "1 \r\nx\r\n0\r\nExpires: never\r\nA: b\r\n\r\n",
    ] {
        assert_eq!(one(&format!("{head}{body}")), OK, "{body:?}");
    }
    for body in
        ["\r\n", "x\r\n", "5\nhello", "1\r\nxy\r\n", "11111111111111111\r\n", "1\r\nx\n", "-1\r\n"]
    {
        let told = whole(format!("{head}{body}").as_bytes());
        assert!(told == Err(Malformed), "{body:?}: {told:?}");
    }
    let endless = format!("{head}1;{}", "x".repeat(9000));
    assert_eq!(whole(endless.as_bytes()), Err(Malformed));
}

#[test]
fn interim_replies_are_passed_over() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(one(text), OK);
    let cut = b"HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(whole(cut).unwrap(), (vec![], Eof::Cut));
    assert_eq!(whole(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), Err(Malformed));
}

#[test]
fn replies_to_head_have_no_body() {
    let mut reader = ResponseReader::new(true);
    let two = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (replies, end) = read(&mut reader, &mut Known::new(), &[two]).unwrap();
    assert_eq!((replies.len(), end), (2, Eof::Between));
}

#[test]
fn what_is_no_reply_is_refused() {
    let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(MAX_HEAD_BYTES));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(129));
    for text in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
        &long,
        &many,
        "\r\n\r\n",
    ] {
        let at_once = whole(text.as_bytes());
        assert!(at_once.is_err(), "{text:?}: {at_once:?}");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        let slowly = read(&mut ResponseReader::new(false), &mut Known::new(), &bytes);
        assert!(slowly.is_err(), "byte by byte, {text:?}: {slowly:?}");
    }
}

#[test]
fn an_end_in_the_middle_is_a_cut() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for end in 1..text.len() {
        let (replies, eof) = whole(&text[..end]).unwrap();
        assert_eq!((replies.len(), eof), (0, Eof::Cut), "{end}");
    }
    assert_eq!(whole(b"").unwrap().1, Eof::Between);
}

#[test]
fn a_body_of_any_length_takes_no_memory() {
    let mut reader = ResponseReader::new(false);
    let mut known = Known::new();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1u64 << 40);
    assert_eq!(reader.feed(head.as_bytes(), &mut known), Ok(None));
    let piece = vec![0u8; 65_536];
    for _ in 0..(1u64 << 40) / 65_536 / 1024 {
        assert_eq!(reader.feed(&piece, &mut known), Ok(None));
    }
    assert_eq!(reader.head.capacity(), USUAL_HEAD_BYTES);
}

#[test]
fn an_equal_reply_is_not_parsed_and_another_one_is() {
    let mut reader = ResponseReader::new(false);
    let mut known = Known::new();
    let of = |date: u32, status: u16, body: &str| {
        format!(
            "HTTP/1.1 {status} OK\r\nDate: {date:08}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    // Equal lengths and other bytes, other lengths, other framings: each is told apart.
    let stream = [
        of(1, 200, "hello"),
        of(1, 200, "hello"),
        of(2, 200, "hello"),
        of(2, 500, "hello"),
        of(2, 500, "hell"),
        of(2, 500, "HELL"),
        chunked.to_owned(),
        chunked.to_owned(),
        chunked.replace("1\r\nx", "2\r\nxy"),
        of(2, 200, ""),
    ];
    for text in stream {
        let (replies, end) = read(&mut reader, &mut known, &[text.as_bytes()]).unwrap();
        let status = text[9..12].parse().unwrap();
        assert_eq!(replies, [(Reply { status, close: false }, text.len())], "{text:?}");
        assert_eq!(end, Eof::Between);
        assert_eq!(known.find(text.as_bytes()).map(|(len, _)| len), Some(text.len() as u64));
    }
}

/// A reply as a server might write it, with what it is.
fn any_reply() -> impl Strategy<Value = (Vec<u8>, Reply)> {
    let body = proptest::collection::vec(any::<u8>(), 0..40);
    (0u8..6, prop::sample::select(vec![200u16, 301, 404, 503]), body, 1usize..9).prop_map(
        |(kind, status, body, step)| {
            let mut text = format!("HTTP/1.1 {status} Some Reason\r\nServer: x\r\n").into_bytes();
            let mut reply = Reply { status, close: false };
            match kind {
                0 => {
                    text = b"HTTP/1.1 204 No\r\nX: y\r\n\r\n".to_vec();
                    reply.status = 204;
                }
                1 | 2 => {
                    text.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                    for chunk in body.chunks(step) {
                        text.extend(format!("{:x};e\r\n", chunk.len()).bytes());
                        text.extend(chunk);
                        text.extend(b"\r\n");
                    }
                    text.extend(b"0\r\n");
                    text.extend(if kind == 2 { &b"T: u\r\n\r\n"[..] } else { b"\r\n" });
                }
                3 => {
                    let mut interim = b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n".to_vec();
                    text.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                    text.extend(body);
                    interim.extend(text);
                    text = interim;
                }
                _ => {
                    text.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                    text.extend(body);
                }
            }
            (text, reply)
        },
    )
}

proptest! {
    #[test]
    fn a_stream_reads_the_same_in_any_pieces(
        replies in proptest::collection::vec((any_reply(), 1usize..4), 1..6),
        cuts in proptest::collection::vec(0usize..2000, 0..12),
        byte_by_byte in any::<bool>(),
    ) {
        let mut stream = Vec::new();
        let mut want = Vec::new();
        for ((text, reply), times) in &replies {
            for _ in 0..*times {
                stream.extend_from_slice(text);
                want.push((*reply, text.len()));
            }
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
        if byte_by_byte {
            cuts = (0..stream.len()).collect();
        }
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|at| &stream[at[0]..at[1]]).collect();
        // With a memory of known replies and without one.
        for mut known in [Known::new(), Known::default()] {
            let told = read(&mut ResponseReader::new(false), &mut known, &pieces);
            prop_assert_eq!(told, Ok((want.clone(), Eof::Between)));
        }
    }

    #[test]
    fn no_bytes_panic_and_knowing_changes_nothing(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200,
    ) {
        let mut text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        text.extend(bytes);
        let (a, b) = text.split_at(cut.min(text.len()));
        let whole = read(&mut ResponseReader::new(false), &mut Known::default(), &[&text]);
        let cut = read(&mut ResponseReader::new(false), &mut Known::new(), &[a, b]);
        prop_assert_eq!(whole.is_err(), cut.is_err());
        if let (Ok(whole), Ok(cut)) = (whole, cut) {
            prop_assert_eq!(whole, cut);
        }
    }
}
