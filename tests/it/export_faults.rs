//! What goes wrong while `rxpath export` runs: it is stopped for a while, its file cannot be written, a client talks nonsense.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use crate::export::{get, start_with, target, value};

const WINDOWS: &str = "rxpath_window_seconds_total";
const LATE: &str = "rxpath_windows_discarded_total{why=\"late\"}";

/// The value of a series, once it is above `least`; panics after a minute.
fn above(address: &str, series: &str, least: f64) -> f64 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let page = get(address);
        if let Some(found) = value(&page, series).filter(|found| *found > least) {
            return found;
        }
        assert!(Instant::now() < deadline, "{series} is not above {least}: {page}");
        // why: the pace of looking; the deadline above ends it.
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_window_in_which_the_machine_stood_still_is_thrown_away() {
    let options = ["--no-bpf", "--interval", "100ms", "--check-every", "0s"];
    let options = [options.as_slice(), &["--listen", "127.0.0.1:0"]].concat();
    let (running, address) = start_with(&options);
    let (begun, before) = (Instant::now(), above(&address, WINDOWS, 0.0));
    let late = value(&get(&address), LATE).unwrap();
    kill(running.pid(), Signal::SIGSTOP).unwrap();
    // why: a window is late after three seconds; nothing runs that could be waited for.
    sleep(Duration::from_secs(4));
    kill(running.pid(), Signal::SIGCONT).unwrap();
    above(&address, LATE, late);
    let counted = value(&get(&address), WINDOWS).unwrap() - before;
    let passed = begun.elapsed().as_secs_f64();
    assert!(counted < passed - 3.0, "{counted} s of {passed} s are counted");
    // And it goes on.
    above(&address, WINDOWS, before + counted);
}

/// A folder in the file's place cannot be replaced, not even by root.
#[test]
fn a_file_that_cannot_be_written_for_a_while_is_counted_and_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rxpath.prom");
    let file = path.to_str().unwrap();
    let options = ["--no-bpf", "--interval", "100ms", "--check-every", "0s", "--textfile", file];
    let options = [options.as_slice(), &["--listen", "127.0.0.1:0"]].concat();
    let (_running, address) = start_with(&options);
    let errors = "rxpath_collect_errors_total{source=\"textfile\"}";
    above(&address, WINDOWS, 0.0);
    let deadline = Instant::now() + Duration::from_secs(60);
    // The exporter may write between the two.
    while fs::create_dir(&path).is_err() {
        assert!(Instant::now() < deadline, "{file} is always there");
        let _ = fs::remove_file(&path);
    }
    above(&address, errors, 0.0);
    fs::remove_dir(&path).unwrap();
    while !path.is_file() {
        assert!(Instant::now() < deadline, "{file} is not written again");
        // why: the pace of looking; the deadline above ends it.
        sleep(Duration::from_millis(20));
    }
    assert!(value(&fs::read_to_string(&path).unwrap(), errors) > Some(0.0));
    let others: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|one| one.unwrap().path()).collect();
    assert!(others.len() <= 2, "pages that could not be put into place are left: {others:?}");
}

#[test]
fn a_client_that_is_no_http_is_counted() {
    let options = ["--no-bpf", "--interval", "100ms", "--check-every", "0s"];
    let options = [options.as_slice(), &["--listen", "127.0.0.1:0"]].concat();
    let (_running, address) = start_with(&options);
    let errors = "rxpath_collect_errors_total{source=\"http\"}";
    above(&address, WINDOWS, 0.0);
    assert_eq!(value(&get(&address), errors), Some(0.0));
    let mut stream = TcpStream::connect(target(&address)).unwrap();
    stream.write_all(b"\x16\x03\x01 hello\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    assert!((above(&address, errors, 0.0) - 1.0).abs() < 1e-9);
}
