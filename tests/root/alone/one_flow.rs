//! Packets of a CPU by their hash: those of one flow have one bucket, those of many flows have many.

use std::net::UdpSocket;

use rxpath_bpf::filter::Filter;
use rxpath_bpf::stages::hashed::HashedPackets;
use rxpath_bpf::stages::{Pace, Stages};

use crate::bed::{Bed, RX_IP, TX_IP, until};

const PORT: u16 = 4816;
/// Packets of the one flow, and flows that have a few each.
const WANTED: u64 = 1_000;
const MANY: usize = 400;

#[test]
fn one_flow_fills_one_bucket_and_many_flows_fill_most() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    // Here only RPS has the kernel compute a hash.
    rx.set_dev_attr("veth", "queues/rx-0/rps_cpus", "1").unwrap();
    let _service = rx.run(|_| UdpSocket::bind((RX_IP, PORT)).unwrap()).unwrap();
    let bound = |count: usize| -> Vec<UdpSocket> {
        let one = |_| UdpSocket::bind((TX_IP, 0)).unwrap();
        tx.run(move |_| (0..count).map(one).collect()).unwrap()
    };
    let (one, many) = (bound(1), bound(MANY));
    let stages = Stages::start(&Filter::default(), Pace::Every).unwrap();
    let of_cpu = || stages.read().unwrap().1.into_iter().find(|row| row.cpu == 0).unwrap();
    let send = |from: &[UdpSocket]| {
        for socket in from {
            socket.send_to(&[7; 32], (RX_IP, PORT)).unwrap();
        }
    };
    let before = of_cpu();
    let since = |before: &HashedPackets| of_cpu().since(Some(before));
    until("the packets of one flow are in one bucket", || {
        (0..50).for_each(|_| send(&one));
        since(&before).buckets.iter().any(|packets| *packets >= WANTED)
    });
    let seen = since(&before);
    let (most, all) = (seen.buckets.iter().max().unwrap(), seen.buckets.iter().sum::<u64>());
    // Sent for long enough, any packets fill some bucket. The rest is traffic of others on this CPU.
    assert!(seen.received >= WANTED && 2 * most > all, "{seen:?}");
    let before = of_cpu();
    until("those of many flows are in most", || {
        many.chunks(50).for_each(send);
        since(&before).buckets.iter().filter(|packets| **packets > 0).count() > 48
    });
}
