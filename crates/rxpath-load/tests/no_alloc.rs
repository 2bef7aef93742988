//! The loops allocate nothing per datagram: a counting allocator watches the worker threads.

#![allow(clippy::unwrap_used)]

mod counting;

use std::time::{Duration, Instant};

use rxpath_load::engine::clock;
use rxpath_load::udp::load::Load;
use rxpath_load::udp::load::options::LoadOptions;
use rxpath_load::udp::serve::Serve;
use rxpath_load::udp::serve::options::ServeOptions;
use rxpath_load::values::defaults;
use rxpath_load::workload::WorkloadHandle;

use counting::{allocations, exempt_this_thread, in_quietest};

/// Waits until the receiver has read this many.
fn until(serve: &Serve, packets: u64) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while serve.interval().packets < packets {
        assert!(Instant::now() < deadline, "only {} datagrams", serve.interval().packets);
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn allocations_between(serve: ServeOptions, load: impl FnOnce(&mut LoadOptions)) -> u64 {
    let serve = Serve::open(serve).unwrap();
    let mut options: LoadOptions = defaults(serve.settings().addr).unwrap();
    load(&mut options);
    let mut sender = Load::open(options).unwrap();
    sender.start(clock::now_ns());
    // The first datagrams make the streams known and learn the truesize.
    let mut packets = 2_000;
    until(&serve, packets);
    in_quietest(|| {
        packets += 18_000;
        until(&serve, packets);
    })
}

// One test: the other threads of a test binary would count as workers.
#[test]
fn the_loops_allocate_nothing() {
    exempt_this_thread();
    let plain: ServeOptions = defaults("127.0.0.1:0").unwrap();
    assert_eq!(allocations_between(plain.clone(), |_| {}), 0, "plain");
    let mut aggregates = plain.clone();
    (aggregates.gro, aggregates.stamps) = (true, true);
    assert_eq!(allocations_between(aggregates, |load| load.gso = Some(64)), 0, "GSO, GRO, stamps");
    let paced = |load: &mut LoadOptions| (load.rate_pps, load.flows) = (Some(50_000), Some(16));
    assert_eq!(allocations_between(plain, paced), 0, "paced, 16 flows");
    assert!(allocations() > 0, "the allocator counts");
}
