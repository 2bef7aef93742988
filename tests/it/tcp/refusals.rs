//! What `serve tcp` and `load tcp` refuse, and in which words.

use super::*;
use crate::http::bound_and_not_listening;

#[test]
fn a_server_that_is_not_there_or_not_ours_is_said() {
    let (_bound, nobody) = bound_and_not_listening();
    let refused = load(&["stream", &nobody.to_string()]);
    assert_refused(&refused, &["connect", "refused", "hint: nothing listens there"]);
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = stranger.local_addr().unwrap().to_string();
    for (answer, says) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "another protocol"),
        (b"", "closed the connection"),
        (b"rxptcp\x09\x00\x00\x00\x00\x00", "version 9 of the preamble"),
        (b"rxptcp\x01\x00\xff\xff\xff\xff", "too many"),
    ] {
        let listener = stranger.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut preamble = [0; 40];
            peer.read_exact(&mut preamble).unwrap();
            peer.write_all(answer).unwrap();
        });
        assert_refused(&load(&["rr", &addr]), &[says, "hint: "]);
        thread.join().unwrap();
    }
}

#[test]
fn clients_that_are_not_ours_are_refused_in_their_own_words() {
    let (mut serve, addr) = server(&[]);
    let ask = |bytes: &[u8]| {
        let mut stranger = TcpStream::connect(&addr).unwrap();
        stranger.write_all(bytes).unwrap();
        let mut text = Vec::new();
        // The rest of what was sent may be answered by a reset behind the text.
        let _ = stranger.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    let http = ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(http.starts_with("HTTP/1.0 400 ") && http.contains("rxpath serve tcp"), "{http}");
    assert!(ask(b"SSH-2.0-x\r\n").starts_with("this is `rxpath serve tcp`"));
    assert!(ask(b"rxptcp\x02\x00").contains("version 2 of the preamble"));
    serve.order("stop");
    let warning = serve.warning("refused");
    assert!(warning["text"].as_str().unwrap().contains("2 stranger, 1 version"), "{warning}");
    assert_eq!(serve.next("result")["refused_total"]["stranger"], 2);
    serve.order("close");
    assert_eq!(serve.child.wait().unwrap().code(), Some(0));
}

#[test]
fn bad_input_has_one_clear_line_a_hint_and_exit_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let (serve, addr) = server(&[]);
    let cases: [(&[&str], &str); 14] = [
        (&["serve", "tcp", &port], "is taken by another socket"),
        (&["serve", "tcp", "9.9.9.9:0"], "bind 9.9.9.9:0"),
        (&["serve", "tcp", "127.0.0.1:0", "--congestion", "vegan"], "available: "),
        (&["serve", "tcp", "127.0.0.1:0", "--buffer", "0"], "--buffer 0"),
        (&["serve", "tcp", "127.0.0.1:0", "--sleep", "1ms"], "--every"),
        (&["load", "tcp", "stream", &addr, "--congestion", "vegan"], "available: "),
        (&["load", "tcp", "stream", &addr, "--mss", "9"], "88 to 32767"),
        (&["load", "tcp", "stream", &addr, "-c", "1", "-t", "2"], "fewer than one for each"),
        (
            &["load", "tcp", "stream", &addr, "--bitrate", "1M", "--direction", "both"],
            "--pacing-rate",
        ),
        (&["load", "tcp", "rr", &addr, "--rate", "0"], "--rate 0"),
        (&["load", "tcp", "rr", &addr, "--request", "0"], "--request 0"),
        (&["load", "tcp", "rr", &addr, "-c", "100M"], "descriptors"),
        (&["load", "tcp", "rr", "127.0.0.1:0"], "port 0"),
        (&["load", "tcp", "stream", "255.255.255.255:9"], "connect 255.255.255.255:9"),
    ];
    for (args, says) in cases {
        said(Command::new(RXPATH).args(args)).ends(2).refuses("", says).prints_nothing();
    }
    serve.stop();
}
