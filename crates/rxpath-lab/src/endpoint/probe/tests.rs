use std::collections::BTreeSet;
use std::net::TcpStream;

use super::*;

const NONCE: &str = "0123456789abcdef";

/// Tries on a busy machine, where a thread may wait longer than a host for an answer.
const TRIES: usize = 50;

/// A free port. Each test has a loopback address of its own: no other test takes the port while it is closed.
fn free(address: &str, tcp: bool) -> SocketAddr {
    let any = SocketAddr::new(address.parse().unwrap(), 0);
    if tcp {
        TcpListener::bind(any).unwrap().local_addr().unwrap()
    } else {
        ProbeSocket::bind(any).unwrap().local().unwrap()
    }
}

fn ask(to: SocketAddr, tcp: bool, nonce: &str) -> ProbeSend {
    ProbeSend {
        from: "127.0.0.1".parse().unwrap(),
        to,
        tcp,
        nonce: nonce.into(),
        hops: 1,
        sizes: vec![64, 1_400],
        waits: true,
    }
}

/// Sends probes until all are answered.
fn answered_datagrams(ask: &ProbeSend) {
    let mut tries = (0..TRIES).map(|_| datagrams(ask).unwrap());
    let sent = tries.find(|sent| sent.answered == ask.sizes).expect("answers to all");
    assert_eq!(sent.refused, None);
}

#[test]
fn datagrams_with_the_secret_are_answered_and_others_are_not() {
    let at = free("127.0.81.1", false);
    let mut probes = HostProbes(Some(listen(at, (false, 1), NONCE.into()).unwrap()));
    answered_datagrams(&ask(at, false, NONCE));
    let other = datagrams(&ask(at, false, "fedcba9876543210")).unwrap();
    assert_eq!(other.answered, Vec::<u32>::new());
    let heard = probes.end();
    // One that is answered late is sent again.
    let sizes: BTreeSet<u32> = heard.iter().map(|probe| probe.bytes).collect();
    assert_eq!(sizes, [64, 1_400].into(), "{heard:?}");
    assert!(heard.iter().all(|probe| probe.hops_left == Some(1) && probe.device.is_some()));
    let is_free = || {
        // why: a program that another test starts has a copy of each socket until its exec.
        std::thread::sleep(Duration::from_millis(10));
        ProbeSocket::bind(at).is_ok()
    };
    assert!((0..TRIES).any(|_| is_free()), "the port is free again");
}

#[test]
fn clocks_are_compared_by_the_answers_to_datagrams() {
    let at = free("127.0.81.2", false);
    let mut probes = HostProbes(Some(listen(at, (false, 1), NONCE.into()).unwrap()));
    let twenty = ProbeSend { sizes: vec![0; 20], ..ask(at, false, NONCE) };
    // Late answers are left out, and a comparison has its limit of time.
    let mut tries = (0..TRIES).map(|_| exchanges(&twenty).unwrap());
    let made = tries.find(|made| made.len() == 20).expect("20 answers in one comparison");
    for exchange in made {
        let Exchange { asked_ns, there, back_ns } = exchange;
        // Both ends have one clock.
        assert!(asked_ns <= there.got_ns && there.answered_ns <= back_ns, "{exchange:?}");
        assert!(there.got_ns <= there.answered_ns, "{exchange:?}");
    }
    probes.end();
    assert!(exchanges(&ask(at, false, NONCE)).unwrap().is_empty(), "nobody answers");
}

#[test]
fn a_datagram_that_is_not_answered_does_not_end_the_comparison() {
    // An answer that comes late is none either.
    assert!((0..TRIES).any(|_| compares_after_a_loss()), "no answer after the loss");
}

/// Whether there were answers although the first datagram had none.
fn compares_after_a_loss() -> bool {
    let socket = ProbeSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = socket.local().unwrap();
    let stop = Arc::<AtomicBool>::default();
    let until = Arc::clone(&stop);
    let answering = std::thread::spawn(move || {
        let lost = socket.receive(&mut [0; 256], 20 * CONNECT_LIMIT).unwrap();
        answer_datagrams(&socket, NONCE.as_bytes(), ArrivalClock::start(), &until);
        lost.is_some()
    });
    let made = exchanges(&ProbeSend { sizes: vec![0; 5], ..ask(at, false, NONCE) }).unwrap();
    stop.store(true, Ordering::Relaxed);
    assert!(answering.join().unwrap(), "the first one came");
    !made.is_empty()
}

#[test]
fn why_no_datagram_could_be_sent_is_kept() {
    // No port 0 takes a datagram (net/ipv4/udp.c `udp_sendmsg`).
    let refused = exchanges(&ask("127.0.0.1:0".parse().unwrap(), false, NONCE)).unwrap_err();
    assert!(refused.to_string().contains("send probes"), "{refused}");
}

#[test]
fn an_end_that_reads_late_notes_when_the_datagram_came() {
    let socket = || ProbeSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (asking, answering) = (socket(), socket());
    let nonce = NONCE.as_bytes();
    for number in 0..TRIES as u64 {
        // A late answer to an earlier one is passed over.
        let stamp = number.to_be_bytes();
        let probe = [nonce, &stamp].concat();
        let begin = [answer_to(nonce, probe.len() as u32), stamp.to_vec()].concat();
        let arrivals = ArrivalClock::start();
        asking.send(&probe, answering.local().unwrap()).unwrap();
        // why: a program that the scheduler lets wait.
        std::thread::sleep(GLANCE);
        let late_ns = monotonic_ns();
        let stop = AtomicBool::new(false);
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| answer_datagrams(&answering, nonce, arrivals, &stop));
            let answer = answered(&asking, &begin);
            stop.store(true, Ordering::Relaxed);
            answer
        });
        // The kernel begins to stamp a moment after the first socket asked for it.
        if answer.is_some_and(|it| clock_pair(&it.rest).unwrap().got_ns < late_ns) {
            return;
        }
    }
    panic!("no answer, or the program's own reading each time");
}

#[test]
fn many_at_once_are_sent_without_a_wait() {
    let at = free("127.0.81.3", false);
    let mut probes = HostProbes(Some(listen(at, (false, 1), NONCE.into()).unwrap()));
    let burst = ProbeSend { sizes: vec![64; 50], waits: false, ..ask(at, false, NONCE) };
    assert_eq!(datagrams(&burst).unwrap(), SentProbes::default());
    // Behind them in the queue of the same socket.
    answered_datagrams(&ask(at, false, NONCE));
    assert!(probes.end().len() >= 52);
}

#[test]
fn a_connection_with_the_secret_is_answered_and_the_port_can_be_taken_at_once() {
    let at = free("127.0.81.4", true);
    let mut probes = HostProbes(Some(listen(at, (true, 1), NONCE.into()).unwrap()));
    let asked = ask(at, true, NONCE);
    // A busy machine may be late.
    assert!((0..TRIES).any(|_| connection(&asked).answered == [64, 1_400]), "no answer");
    let other = connection(&ask(at, true, "fedcba9876543210"));
    assert!(other.answered.is_empty() && other.refused.is_some(), "{other:?}");
    assert_eq!(probes.end().len(), 1);
    let nobody = connection(&ask(at, true, NONCE));
    assert!(nobody.refused.unwrap().contains("refused"));
    let taken = TcpListener::bind(at).unwrap();
    let error = listen(at, (true, 1), NONCE.into()).err().unwrap().to_string();
    assert!(error.starts_with(&format!("cannot open tcp/{} for probes: ", at.port())), "{error}");
    drop(taken);
}

#[test]
fn connections_of_silent_strangers_do_not_hold_up_the_one_with_the_secret() {
    let at = free("127.0.81.5", true);
    let mut probes = HostProbes(Some(listen(at, (true, 1), NONCE.into()).unwrap()));
    let is_answered = || {
        // More than are open at the same time.
        let strangers: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(at).unwrap()).collect();
        let sent = connection(&ask(at, true, NONCE));
        drop(strangers);
        sent.answered == [64, 1_400]
    };
    // A busy machine may be late.
    assert!((0..5).any(|_| is_answered()), "no answer");
    assert!(!probes.end().is_empty());
}

#[test]
fn a_stranger_that_says_the_secret_slowly_or_says_another_one_is_not_answered() {
    let at = free("127.0.81.6", true);
    let mut probes = HostProbes(Some(listen(at, (true, 1), NONCE.into()).unwrap()));
    let mut said = [0; 1];
    let mut wrong = TcpStream::connect(at).unwrap();
    wrong.write_all(&[b'x'; NONCE.len()]).unwrap();
    assert!(!wrong.read(&mut said).is_ok_and(|read| read > 0));
    let mut slow = TcpStream::connect(at).unwrap();
    // A part of it, and no more until the other end has given up.
    slow.write_all(&NONCE.as_bytes()[..3]).unwrap();
    assert!(!slow.read(&mut said).is_ok_and(|read| read > 0));
    assert!(probes.end().is_empty());
}
