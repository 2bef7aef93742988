use proptest::prelude::*;

use super::*;

fn at(t_ns: u64, what: EventKind, number: u32) -> Event {
    let name = match what {
        EventKind::NapiPoll => "eth0",
        EventKind::SoftirqEntry | EventKind::SoftirqExit => "NET_RX",
        _ => "eth0-rx",
    };
    let poll = what == EventKind::NapiPoll;
    Event {
        t_ns,
        cpu: 1,
        what,
        name: name.into(),
        number,
        work: poll.then_some(27),
        budget: poll.then_some(64),
        pid: 7,
        comm: "victim".into(),
    }
}

#[test]
fn an_event_is_read_by_place() {
    let mut bytes = 5u64.to_ne_bytes().to_vec();
    for number in [1u32, 6, 8193, 27, 64, 7] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(b"victim\0\0\0\0\0\0\0\0\0\0eth0\0\0\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(bytes.len(), 64);
    let read = event(&bytes);
    assert_eq!(read, Event { number: 8193, ..at(5, EventKind::NapiPoll, 8193) });
}

/// A NAPI thread sleeps between its polls: they are events, and no spans.
#[test]
fn polls_outside_softirqs_have_no_length() {
    let events = [at(10, EventKind::NapiPoll, 8), at(5_000_010, EventKind::NapiPoll, 8)];
    assert!(spans(&events).is_empty());
}

#[test]
fn two_polls_in_a_softirq_follow_each_other() {
    let events = [
        at(10, EventKind::IrqEntry, 30),
        at(14, EventKind::IrqExit, 30),
        at(20, EventKind::SoftirqEntry, 3),
        at(50, EventKind::NapiPoll, 8193),
        at(60, EventKind::NapiPoll, 8194),
        at(62, EventKind::SoftirqExit, 3),
        at(70, EventKind::NapiPoll, 8193),
    ];
    let spans = spans(&events);
    let shown: Vec<_> = spans.iter().map(|s| (s.category, s.start_ns, s.end_ns)).collect();
    assert_eq!(
        shown,
        [("irq", 10, 14), ("softirq", 20, 62), ("napi", 20, 50), ("napi", 50, 60)],
        "the last poll is outside any softirq: its start is not known"
    );
}

#[test]
fn the_file_holds_rows_and_spans() {
    let events = [at(2_000, EventKind::SoftirqEntry, 3), at(5_500, EventKind::SoftirqExit, 3)];
    let file = serde_json::to_value(chrome_trace(&events)).unwrap();
    let shown = &file["traceEvents"];
    assert_eq!(shown[1]["args"]["name"], "CPU 1");
    assert_eq!(
        (&shown[2]["ph"], &shown[2]["ts"], &shown[2]["dur"]),
        (&"X".into(), &2.0.into(), &3.5.into())
    );
    assert_eq!(shown[2]["args"]["task"], "victim (7)");
}

#[test]
fn a_poll_in_the_file_has_its_work_and_budget() {
    let events = [
        at(2_000, EventKind::SoftirqEntry, 3),
        at(5_000, EventKind::NapiPoll, 8193),
        at(5_500, EventKind::SoftirqExit, 3),
    ];
    let file = serde_json::to_value(chrome_trace(&events)).unwrap();
    let spans: Vec<_> = file["traceEvents"].as_array().unwrap().iter().skip(2).collect();
    let [softirq, poll] = spans[..] else { panic!("{file}") };
    assert_eq!(
        (&poll["name"], &poll["cat"], &poll["tid"]),
        (&"eth0".into(), &"napi".into(), &1.into())
    );
    assert_eq!((&poll["ts"], &poll["dur"]), (&2.0.into(), &3.0.into()));
    assert_eq!((&poll["args"]["work"], &poll["args"]["budget"]), (&27.into(), &64.into()));
    assert!(softirq["args"].get("work").is_none(), "{softirq}");
}

proptest! {
    #[test]
    fn any_sequence_gives_spans_in_order(steps in proptest::collection::vec((0u8..7, 0u32..3, 0u64..50), 0..60)) {
        let kinds = [
            EventKind::IrqEntry,
            EventKind::IrqExit,
            EventKind::VectorEntry,
            EventKind::VectorExit,
            EventKind::SoftirqEntry,
            EventKind::SoftirqExit,
            EventKind::NapiPoll,
        ];
        let mut now = 0;
        let events: Vec<Event> = steps.iter().map(|(kind, number, step)| {
            now += step;
            at(now, kinds[usize::from(*kind)], *number)
        }).collect();
        let spans = spans(&events);
        prop_assert!(spans.windows(2).all(|two| two[0].start_ns <= two[1].start_ns));
        prop_assert!(spans.iter().all(|span| span.start_ns <= span.end_ns));
    }
}
