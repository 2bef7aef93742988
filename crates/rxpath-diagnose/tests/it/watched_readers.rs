//! Readers on a watched host that are stopped, held back, or that do not read at all.

use rxpath_diagnose::diagnose;
use rxpath_record::evidence::{Halt, SocketUse, Throttled, WindowEvidence};
use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, Stage};

use crate::made::{lost, socket, text};
use crate::watched::{dropping, of, reader};

/// A service that lost half of what came: 100,000 datagrams in a second.
fn overloaded(running: f64, waiting: f64) -> WindowEvidence {
    let mut e = dropping(vec![reader(812, 1, 1, running)], 1);
    e.receiver_threads[0].waiting_ratio = waiting;
    e.ledger.offered_packets = 100_000;
    e.ledger.delivered_packets = 50_000;
    e.ledger.drops = vec![lost(Place::SocketBuffer, "Udp.RcvbufErrors", 50_000)];
    e.sockets[0].drops_packets = 50_000;
    e.sockets[0].samples = 100;
    e.sockets[0].queue_mean_bytes = 0.5 * e.sockets[0].rcvbuf_bytes as f64;
    e
}

#[test]
fn a_stopped_or_frozen_reader_is_named_and_gets_no_larger_buffer() {
    for (halted, words) in [
        (Halt::Signal, "a signal stopped it"),
        (Halt::Tracer, "a debugger or tracer holds it"),
        (Halt::Freezer, "its control group is frozen"),
    ] {
        let mut e = overloaded(0.0, 0.0);
        e.receiver_threads[0].halted = Some(halted);
        let verdict = diagnose(&e);
        assert_eq!(
            (verdict.stage, verdict.confidence),
            (Stage::ApplicationDescheduled, Confidence::Strong)
        );
        assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
        assert!(!verdict.remedies.join(" ").contains("buffer"), "{:?}", verdict.remedies);
        // Another thread of the service runs: that one is judged.
        e.receiver_threads.push(reader(812, 2, 1, 0.99));
        assert_ne!(diagnose(&e).stage, Stage::ApplicationDescheduled);
    }
}

#[test]
fn a_cpu_quota_is_no_other_program_on_the_cpu() {
    let mut e = overloaded(0.15, 0.83);
    let used_up =
        |ratio, used_up_ratio| Some(Throttled { group: "/app.slice".into(), ratio, used_up_ratio });
    let quota = |ratio| used_up(ratio, 0.0);
    e.receiver_threads[0].throttled = quota(0.8);
    let verdict = diagnose(&e);
    assert_eq!(verdict.stage, Stage::ApplicationDescheduled);
    assert!(verdict.sentence.contains("CPU quota of its control group /app.slice"), "{verdict:?}");
    assert!(!text(&verdict).contains("nice"), "{}", text(&verdict));
    // A quota that hardly acted explains nothing of the waiting.
    e.receiver_threads[0].throttled = quota(0.02);
    assert!(diagnose(&e).sentence.contains("kept off its CPU"));
    // Others kept it off as long; but in most periods it had all that it may have.
    e.receiver_threads[0].throttled = used_up(0.39, 0.9);
    assert!(diagnose(&e).sentence.contains("CPU quota"));
    e.receiver_threads[0].throttled = used_up(0.39, 0.4);
    assert!(diagnose(&e).sentence.contains("kept off its CPU"));
}

/// Two processes have a socket of a group each; one of them reads nothing from its own, which overflows.
fn half_a_group() -> WindowEvidence {
    let mut e = dropping(vec![reader(812, 1, 1, 0.2), reader(813, 2, 1, 0.0)], 1);
    let other = of("0.0.0.0:53", 813, "named", socket(1, 0, 5_000));
    (e.sockets[0].drops_packets, e.sockets[0].delivered_packets) = (0, 5_000);
    e.sockets[0].readers = Some(vec![1]);
    e.sockets.push(SocketUse { readers: Some(vec![]), ..other });
    e
}

#[test]
fn a_socket_of_a_group_that_nobody_reads_is_named_with_its_program() {
    let mut e = half_a_group();
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Application, Confidence::Strong));
    let words = "no thread read from it in the window: named (813) has its socket, one of 2";
    assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
    assert!(verdict.remedies.join(" ").contains("replaced"), "{:?}", verdict.remedies);
    // Its program can not read: that is why.
    e.receiver_threads[1].halted = Some(Halt::Signal);
    let verdict = diagnose(&e);
    assert_eq!(verdict.stage, Stage::ApplicationDescheduled);
    assert!(verdict.sentence.contains("a signal stopped it"), "{}", verdict.sentence);
    // Somebody does read it: it is a matter of his time.
    let mut e = half_a_group();
    e.sockets[1].readers = Some(vec![2]);
    assert!(!diagnose(&e).sentence.contains("no thread read"));
}

#[test]
fn a_program_that_did_not_run_at_all_did_not_read_either() {
    let mut e = dropping(vec![reader(812, 1, 1, 0.0)], 1);
    (e.sockets[0].queue_mean_bytes, e.sockets[0].samples) = (212_000.0, 50);
    let told = |e: &WindowEvidence| diagnose(e).sentence;
    assert!(told(&e).contains("no thread of it ran in the window"), "{}", told(&e));
    e.receiver_threads[0].running_ratio = 0.01;
    assert!(told(&e).contains("waits for something else"), "{}", told(&e));
}

#[test]
fn waiting_beats_running_only_where_it_explains_most_of_the_loss() {
    // As much again could have been read: all that was lost.
    assert_eq!(diagnose(&overloaded(0.5, 0.49)).stage, Stage::ApplicationDescheduled);
    // A fifth more: the reader is too slow, and the waiting is told beside it.
    let verdict = diagnose(&overloaded(0.84, 0.15));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Application, Confidence::Fair));
    assert!(verdict.sentence.contains("waited for its CPU 15 %"), "{}", verdict.sentence);
    // It never got a CPU, so that it read nothing, and how fast it would read is not known.
    let mut starved = overloaded(0.0, 1.0);
    starved.ledger.delivered_packets = 0;
    starved.sockets[0].readers = Some(vec![]);
    starved.sockets[0].delivered_packets = 0;
    assert_eq!(diagnose(&starved).stage, Stage::ApplicationDescheduled);
    // It slept longer than it waited.
    assert_eq!(diagnose(&overloaded(0.13, 0.16)).stage, Stage::SocketQueue);
}

#[test]
fn a_queue_that_is_always_full_is_helped_by_no_buffer() {
    let mut e = overloaded(0.1, 0.0);
    assert_eq!(diagnose(&e).stage, Stage::SocketQueue);
    e.sockets[0].queue_mean_bytes = 0.98 * e.sockets[0].rcvbuf_bytes as f64;
    let verdict = diagnose(&e);
    assert_eq!(verdict.stage, Stage::Application);
    assert!(verdict.sentence.contains("waits for something else"), "{}", verdict.sentence);
    assert!(!verdict.remedies[0].contains("buffer"), "{:?}", verdict.remedies);
    // Few samples are no mean.
    e.sockets[0].samples = 3;
    assert_eq!(diagnose(&e).stage, Stage::SocketQueue);
}
