use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rxpath_core::Fact;
use rxpath_record::ledger::Place;
use rxpath_record::watch::PathStage;

use super::*;

/// Counters are the namespace's: other tests may add to them, and never take away.
#[test]
fn a_socket_that_nobody_reads_shows_on_the_path_without_bpf() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut watcher = LiveWatcher::start(WatcherOptions {
        counters_only: Some(NOT_ASKED),
        ..WatcherOptions::default()
    })
    .unwrap();
    assert_eq!(watcher.without_probes(), Some(NOT_ASKED));
    let deadline = Instant::now() + Duration::from_secs(60);
    let (frame, row) = loop {
        for _ in 0..20_000 {
            sender.send_to(&[0; 64], to).unwrap();
        }
        let frame = watcher.frame();
        let row = frame.sockets.iter().find(|row| row.local == to.to_string()).cloned();
        if let Some(row) = row.filter(|row| row.drops_pps > 0.0) {
            break (frame, row);
        }
        assert!(Instant::now() < deadline, "{frame:?}");
    };
    assert!(row.filled_ratio() > 0.5 && row.drops_total > 0, "{row:?}");
    let me = format!("({})", std::process::id());
    assert!(row.processes.iter().any(|name| name.ends_with(&me)), "{row:?}");
    let stage = |wanted| frame.stages.iter().find(|stage| stage.stage == wanted).unwrap();
    assert_eq!(frame.stages.iter().map(|row| row.stage).collect::<Vec<_>>(), PathStage::ALL);
    assert!(*stage(PathStage::Socket).drops_pps.value().unwrap() > 0.0);
    let lost =
        frame.losses.iter().filter(|row| PathStage::at(row.place) == Some(PathStage::Socket));
    let sum: f64 = lost.map(|row| row.packets_pps).sum();
    let drops_pps = *stage(PathStage::Socket).drops_pps.value().unwrap();
    assert!((sum - drops_pps).abs() < 1e-6, "{:?}", frame.losses);
    let full = frame.losses.iter().find(|row| row.place == Place::SocketBuffer).unwrap();
    assert!(full.packets_pps > 0.0, "{:?}", frame.losses);
    assert!(*stage(PathStage::Ip).rate_per_s.value().unwrap() > 0.0);
    assert!(stage(PathStage::Backlog).rate_per_s.gap().unwrap().contains("not asked for"));
    assert!(frame.gaps.contains_key("BPF probes"));
    assert!(frame.drops.iter().any(|row| row.source.contains("RcvbufErrors")));
    assert!(frame.verdict.is_some() && watcher.loses());
    assert!(!frame.cpus.is_empty() && !frame.tasks.is_empty());
    let line = rxpath_record::watch::tail_line(&frame).unwrap();
    let head =
        rxpath_record::watch::head_line(&rxpath_record::watch::WatchSettings::default()).unwrap();
    let read = rxpath_record::watch::parse(format!("{head}\n{line}\n").as_bytes()).unwrap();
    assert_eq!(read.frames[0].number, frame.number);
}

#[test]
fn frames_are_numbered_and_their_windows_do_not_overlap() {
    let mut watcher = LiveWatcher::start(WatcherOptions {
        counters_only: Some(NOT_ASKED),
        ..WatcherOptions::default()
    })
    .unwrap();
    let (first, second) = (watcher.frame(), watcher.frame());
    assert_eq!((first.number, second.number), (1, 2));
    assert!(second.at_unix_s >= first.at_unix_s);
    assert!(second.window_s > 0.0 && second.own_cpu_ratio.is_finite());
    assert!(matches!(second.stages[0].rate_per_s, Fact::Ok { .. }), "{:?}", second.stages[0]);
}
