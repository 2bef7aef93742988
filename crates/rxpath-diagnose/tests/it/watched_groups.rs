//! Groups on a watched host in which one socket gets all, and it is not known who would read the others.

use rxpath_diagnose::diagnose;
use rxpath_record::evidence::{SocketOwner, SocketUse, WindowEvidence};
use rxpath_record::verdict::{Confidence, Stage};

use crate::made::{socket, text};
use crate::watched::{dropping, of, reader};

/// A socket that got nothing. It was watched who reads it, and nobody could be asked who waits for it.
fn idle(index: u32, local: &str) -> SocketUse {
    SocketUse {
        readers: Some(vec![]),
        queue_mean_bytes: 0.0,
        queue_max_bytes: 0,
        ..of(local, 812, "named", socket(index, 0, 0))
    }
}

/// One thread is full with the first of three sockets.
fn one_gets_all() -> WindowEvidence {
    let mut e = dropping(vec![reader(812, 1, 1, 1.0)], 1);
    (e.sockets[0].readers, e.sockets[0].delivered_packets) = (Some(vec![1]), 5_000);
    e.sockets.extend([1, 2].map(|index| idle(index, "0.0.0.0:53")));
    e
}

fn stage_with(change: impl Fn(&mut WindowEvidence)) -> Stage {
    let mut e = one_gets_all();
    change(&mut e);
    diagnose(&e).stage
}

#[test]
fn a_group_whose_idle_readers_could_not_be_asked_is_uneven_and_no_reader_is_said_to_have_time() {
    let verdict = diagnose(&one_gets_all());
    assert_eq!((verdict.stage, verdict.confidence), (Stage::ReuseportImbalance, Confidence::Fair));
    assert_eq!(verdict.cpu, Some(1));
    let said = "socket 0 of 3 gets 100 % of the datagrams, and its reader, on CPU 1, is full; \
                2 other sockets, whose readers are not known, got none";
    assert!(verdict.sentence.ends_with(said), "{}", verdict.sentence);
    let told = text(&verdict);
    assert!(told.contains("who would read 2 of the 3 sockets, which got nothing"), "{told}");
    assert!(!told.contains("had time for more"), "{told}");
    // Flows to a socket without a reader would be lost: that comes first.
    assert!(verdict.remedies[0].contains("whether a thread reads each socket"), "{told}");
}

#[test]
fn idle_sockets_that_nobody_waits_for_are_no_spare_readers() {
    let asked = |sockets: &mut [SocketUse]| {
        for socket in sockets.iter_mut() {
            socket.waiters = Some(vec![]);
        }
    };
    assert_eq!(stage_with(|e| asked(&mut e.sockets[1..])), Stage::Application);
    // The threads of one of the two did not answer.
    let mut e = one_gets_all();
    asked(&mut e.sockets[1..2]);
    let verdict = diagnose(&e);
    assert_eq!(verdict.stage, Stage::ReuseportImbalance);
    assert!(verdict.sentence.contains("; 1 other socket, whose"), "{}", verdict.sentence);
}

#[test]
fn a_thread_that_reads_several_sockets_of_the_group_may_read_all() {
    assert_eq!(stage_with(|e| e.sockets[1].readers = Some(vec![1])), Stage::Application);
    // Another thread is full too, with little from the second socket.
    let second = |e: &mut WindowEvidence| {
        e.receiver_threads.push(reader(812, 2, 2, 0.99));
        (e.sockets[1].readers, e.sockets[1].delivered_packets) = (Some(vec![2]), 100);
    };
    assert_eq!(stage_with(second), Stage::ReuseportImbalance);
    // Threads that share the overloaded socket may share all.
    let shared = |e: &mut WindowEvidence| {
        e.receiver_threads.push(reader(812, 2, 2, 0.99));
        e.sockets[0].readers = Some(vec![1, 2]);
    };
    assert_eq!(stage_with(shared), Stage::Application);
}

#[test]
fn an_idle_service_of_another_port_or_address_is_no_part_of_the_group() {
    for local in ["0.0.0.0:54", "192.0.2.1:53", "[::]:53"] {
        let other = |e: &mut WindowEvidence| {
            e.sockets.truncate(1);
            e.sockets.push(idle(1, local));
        };
        assert_eq!(stage_with(other), Stage::Application, "{local}");
    }
}

#[test]
fn a_socket_that_the_groups_hash_does_not_choose_is_no_part_of_it() {
    let others = |e: &mut WindowEvidence| {
        e.sockets[1..].iter_mut().for_each(|socket| socket.connected = true);
    };
    assert_eq!(stage_with(others), Stage::Application);
    assert_eq!(stage_with(|e| e.sockets[0].connected = true), Stage::Application);
}

#[test]
fn a_socket_in_which_something_waits_did_not_get_nothing() {
    let waits = |e: &mut WindowEvidence| {
        e.sockets[1..].iter_mut().for_each(|socket| socket.queue_max_bytes = 768);
    };
    assert_eq!(stage_with(waits), Stage::Application);
}

#[test]
fn an_idle_socket_of_another_process_is_part_of_the_group() {
    let owner = SocketOwner { pid: 813, name: "named".into() };
    let other = |e: &mut WindowEvidence| {
        e.sockets[1..].iter_mut().for_each(|socket| socket.owners = vec![owner.clone()]);
    };
    assert_eq!(stage_with(other), Stage::ReuseportImbalance);
}

/// Whether they got anything is not known then.
#[test]
fn without_the_reads_drops_alone_make_no_group_uneven() {
    let unwatched = |e: &mut WindowEvidence| {
        e.sockets.iter_mut().for_each(|it| (it.readers, it.delivered_packets) = (None, 0));
    };
    assert_ne!(stage_with(unwatched), Stage::ReuseportImbalance);
}
