//! The TCP loops allocate nothing per call or transaction: a counting allocator watches the worker threads.

#![allow(clippy::unwrap_used)]

mod counting;

use std::time::{Duration, Instant};

use rxpath_load::engine::clock;
use rxpath_load::tcp::load::options::{StreamDirection, StreamOptions, TransactionOptions};
use rxpath_load::tcp::load::stream::StreamClient;
use rxpath_load::tcp::load::transactions::{ConnectRequestResponse, RequestResponse};
use rxpath_load::tcp::preamble::SendMethod;
use rxpath_load::tcp::serve::Serve;
use rxpath_load::tcp::serve::options::{ReceiveMethod, ServeOptions};
use rxpath_load::values::defaults;
use rxpath_load::workload::WorkloadHandle;

use counting::{allocations, exempt_this_thread, in_quietest};

/// What a client has done, in the unit that is waited for.
type Done<W> = fn(&<W as WorkloadHandle>::Interval) -> u64;

fn until<W: WorkloadHandle>(client: &W, of: Done<W>, done: u64) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while of(&client.interval()) < done {
        assert!(Instant::now() < deadline, "only {}", of(&client.interval()));
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Allocations of all workers while the client goes from one count to another.
fn between<W: WorkloadHandle>(mut client: W, of: Done<W>, [from, to]: [u64; 2]) -> u64 {
    client.start(clock::now_ns());
    until(&client, of, from);
    let mut done = from;
    in_quietest(|| {
        done += to - from;
        until(&client, of, done);
    })
}

// One test: the other threads of a test binary would count as workers.
#[test]
fn the_loops_allocate_nothing() {
    const MIB: u64 = 1 << 20;
    exempt_this_thread();
    for receive in [ReceiveMethod::Read, ReceiveMethod::Zerocopy] {
        let mut options: ServeOptions = defaults("127.0.0.1:0").unwrap();
        options.receive = receive;
        let serve = Serve::open(options).unwrap();
        let addr = serve.settings().addr;
        for send in [SendMethod::Copy, SendMethod::Zerocopy] {
            for (direction, connections) in [
                (StreamDirection::Send, 1),
                (StreamDirection::Receive, 1),
                (StreamDirection::Both, 3),
            ] {
                let mut options: StreamOptions = defaults(addr).unwrap();
                (options.send, options.direction) = (send, direction);
                (options.common.connections, options.common.verify) = (Some(connections), true);
                let made = between(
                    StreamClient::open(options).unwrap(),
                    |so_far| so_far.delivered_bytes + so_far.sent_bytes,
                    [24 * MIB, 40 * MIB],
                );
                assert_eq!(made, 0, "{send:?} {direction:?} {receive:?}");
            }
        }
    }
    let serve = Serve::open(defaults("127.0.0.1:0").unwrap()).unwrap();
    for (connections, rate_tps) in [(1, None), (8, None), (8, Some(5_000))] {
        let mut options: TransactionOptions = defaults(serve.settings().addr).unwrap();
        options.common.connections = Some(connections);
        (options.request_bytes, options.response_bytes) = (200, 3000);
        options.rate_tps = rate_tps;
        // Not their bytes: the first ones come before the server has begun the run, which allocates once.
        let done: Done<RequestResponse> = |so_far| so_far.transactions_total;
        let counts = [100, 2_000];
        let made = between(RequestResponse::open(options.clone()).unwrap(), done, counts);
        assert_eq!(made, 0, "rr {connections} {rate_tps:?}");
        let made = between(ConnectRequestResponse::open(options).unwrap(), done, counts);
        assert_eq!(made, 0, "crr {connections} {rate_tps:?}");
    }
    assert!(allocations() > 0, "the allocator counts");
}
