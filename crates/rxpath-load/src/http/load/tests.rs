//! The client against a simulated server: the expected percentiles follow by arithmetic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use nix::errno::Errno;
use proptest::prelude::*;
use rxpath_stats::Histogram;

use crate::http::load::client::{Client, ClientConfig};
use crate::http::load::message::Message;
use crate::http::load::meter::{Kind, LiveCounters, Meter};
use crate::http::load::sockets::Sockets;
use crate::http::load::wire::{Sent, Wire};
use crate::pace::{Pace, Pacing, Share};
use crate::tally::Shared;
use crate::usage::UsageMeter;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// One server that answers one request after the other, and stalls at times.
#[derive(Clone, Copy)]
struct Server {
    service_ns: u64,
    /// Stalls for this long at the start of every second.
    stall_ns: u64,
    /// The connection is lost instead of answered, once in this many requests.
    loses_each: u64,
}

/// What will come: instant, slot, generation, and whether it is a reply (or the end of the connection).
type Coming = Reverse<(u64, usize, u32, bool, bool)>;

struct Virtual {
    now_ns: u64,
    free_ns: u64,
    server: Server,
    coming: BinaryHeap<Coming>,
    requests: u64,
    /// None.
    sockets: Sockets,
}

impl Wire for Virtual {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn sockets(&mut self) -> &mut Sockets {
        &mut self.sockets
    }

    fn open(&mut self, slot: usize, generation: u32) -> Result<(), Errno> {
        self.coming.push(Reverse((self.now_ns, slot, generation, true, false)));
        Ok(())
    }

    fn outcome(&mut self, _slot: usize) -> Result<(), Errno> {
        Ok(())
    }

    fn send(
        &mut self,
        slot: usize,
        generation: u32,
        message: &Message,
        range: Range<usize>,
    ) -> Sent {
        for _ in 0..range.len() / message.len {
            let begin = self.free_ns.max(self.now_ns);
            let into_second = begin % SECOND;
            let begin = begin + self.server.stall_ns.saturating_sub(into_second);
            self.free_ns = begin + self.server.service_ns;
            self.requests += 1;
            let lost = self.requests.is_multiple_of(self.server.loses_each);
            self.coming.push(Reverse((self.free_ns, slot, generation, false, lost)));
        }
        Sent::Bytes(range.len())
    }

    fn close(&mut self, _slot: usize, _generation: u32) {}
}

/// What a simulated load came to.
struct Outcome {
    response: Histogram,
    service: Histogram,
    replies: u64,
    begun: u64,
    target: u64,
    lost: u64,
    in_flight: u64,
}

#[derive(Clone, Copy)]
struct Case {
    server: Server,
    connections: usize,
    pipeline: usize,
    rate: Option<u64>,
    seconds: u64,
}

fn simulate(case: Case) -> Outcome {
    let message = Message {
        bytes: b"GET / HTTP/1.1\r\n\r\n".repeat(case.pipeline).into(),
        len: 18,
        head: String::new(),
        bodiless: false,
    };
    let (shared, live) = (Shared::new(1), LiveCounters::default());
    let config = ClientConfig {
        message: &message,
        shared: &shared,
        connections: case.connections,
        pipeline: case.pipeline,
        keepalive: true,
        timeout_ns: 60 * SECOND,
        end_ns: 0,
        requests: u64::MAX,
        give_up_ns: u64::MAX,
    };
    let wire = Virtual {
        now_ns: SECOND,
        free_ns: 0,
        server: case.server,
        coming: BinaryHeap::new(),
        requests: 0,
        sockets: Sockets::new("127.0.0.1:1".parse().unwrap(), None, 0),
    };
    let meter = Meter::new(&shared.tallies[0], &live, UsageMeter::new(None), true);
    let mut client = Client::new(wire, meter, config);
    let share = Share { rate_per_s: case.rate.unwrap_or(0), each: 1, thread: 0, threads: 1 };
    let pace = case.rate.map(|_| Pace::new(SECOND, share, Pacing::Sleep));
    client.start(SECOND, SECOND + case.seconds * SECOND, pace);
    while !client.is_over() {
        let until = client.now_ns + client.turn();
        let next = client.wire.coming.peek().map(|Reverse(coming)| coming.0);
        client.wire.now_ns = next.map_or(until, |next| next.min(until)).max(client.now_ns);
        client.now_ns = client.wire.now_ns;
        while let Some(Reverse((at, slot, generation, connects, lost))) =
            client.wire.coming.peek().copied()
            && at <= client.now_ns
        {
            client.wire.coming.pop();
            match (client.conns[slot].generation == generation, connects, lost) {
                (false, ..) => {}
                (true, true, _) => client.connected(slot),
                (true, false, true) => client.fail(slot, Kind::Read, None),
                (true, false, false) => client.received(slot, REPLY),
            }
        }
    }
    let remains = client.remains();
    Outcome {
        response: live.response.histogram(),
        service: client.meter.service.take().unwrap(),
        replies: shared.sum(|tally| &tally.units),
        begun: remains.begun,
        target: remains.target,
        lost: live.lost.get(),
        in_flight: remains.in_flight,
    }
}

const NEVER: u64 = u64::MAX;

/// Within this share of the value.
fn is_near(got: u64, want_ms: f64, ratio: f64) -> bool {
    let want = want_ms * MS as f64;
    (got as f64 - want).abs() <= want * ratio
}

#[test]
fn a_planted_stall_shows_with_its_arithmetic_from_the_first_second() {
    // 20 k/s, 10 us a reply, 100 ms of stall in each second. A request that is due x ms into the stall waits
    // 100 - x ms for its end and then for the x ms of requests before it, which take x / 5 ms: 100 - 0.8 x, which
    // reaches zero at x = 125. So 12.5 % of all requests wait; one in a hundred is due in the first 10 ms.
    let server = Server { service_ns: 10_000, stall_ns: 100 * MS, loses_each: NEVER };
    let case = Case { server, connections: 100, pipeline: 1, rate: Some(20_000), seconds: 1 };
    for seconds in [1, 5] {
        let got = simulate(Case { seconds, ..case });
        assert_eq!((got.target, got.begun), (20_000 * seconds, 20_000 * seconds));
        assert_eq!(got.replies + got.in_flight, got.begun);
        let at = |q| got.response.quantile_ns(q);
        assert!(is_near(at(0.99), 100.0 - 0.8 * 10.0, 0.005), "p99 {}", at(0.99));
        assert!(is_near(at(0.999), 100.0 - 0.8, 0.005), "p99.9 {}", at(0.999));
        assert!(at(0.5) <= 11 * 1000 && at(0.87) <= 11 * 1000, "p87 {}", at(0.87));
        // The mean of what waits is 50 ms.
        assert!(
            is_near(got.response.mean_ns() as u64, 0.125 * 50.0, 0.02),
            "{}",
            got.response.mean_ns()
        );
        // Only 100 requests of a second stood in the server: the service times hide the rest.
        assert!(got.service.quantile_ns(0.99) < 2 * MS, "{}", got.service.quantile_ns(0.99));
    }
    // The closed loop omits them as well: 100 of about 90,000 a second see the stall.
    let closed = simulate(Case { rate: None, seconds: 5, ..case });
    assert!(closed.response.quantile_ns(0.99) < 2 * MS);
    assert!(closed.response.quantile_ns(1.0) > 99 * MS);
}

#[test]
fn a_schedule_faster_than_the_server_leaves_requests_unsent() {
    let server = Server { service_ns: 100_000, stall_ns: 0, loses_each: NEVER };
    let case = Case { server, connections: 8, pipeline: 1, rate: Some(20_000), seconds: 2 };
    let got = simulate(case);
    assert_eq!(got.target, 40_000);
    assert!(got.replies.abs_diff(20_000) <= 1, "{}", got.replies);
    assert_eq!(got.begun, got.replies + got.in_flight);
    // The last reply answers the request that was due in the middle of the time.
    assert!(is_near(got.response.quantile_ns(1.0), 1000.0, 0.01));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_request_is_answered_lost_or_on_its_way(
        connections in 1usize..20, pipeline in 1usize..5, rate in prop::option::of(1u64..30_000),
        service_us in 1u64..300, stall_ms in 0u64..300, loses_each in 2u64..1000,
    ) {
        let server =
            Server { service_ns: service_us * 1000, stall_ns: stall_ms * MS, loses_each };
        let case = Case { server, connections, pipeline, rate, seconds: 1 };
        let got = simulate(case);
        prop_assert_eq!(got.begun, got.replies + got.lost + got.in_flight);
        prop_assert!(got.in_flight <= (connections * pipeline) as u64);
        prop_assert_eq!(got.response.count(), got.replies);
        if let Some(rate) = rate {
            prop_assert_eq!(got.target, rate);
            prop_assert!(got.begun <= rate);
        }
        prop_assert!(got.response.mean_ns() >= got.service.mean_ns() * 0.999);
    }
}
