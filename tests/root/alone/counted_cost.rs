//! The cost that programs count themselves: which of their runs are timed.

use std::net::UdpSocket;

use rxpath_bpf::account::Account;
use rxpath_bpf::cost::FEW;
use rxpath_bpf::probe::Probe;

use crate::bed::{Bed, until};

/// Runs of all programs on all CPUs, and how many of them were timed (`struct cost_row`, bpf/cost.h).
fn runs(account: &Account) -> [u64; 2] {
    let cpus = account.loaded().values("costs", 0).unwrap();
    let words = cpus.iter().flat_map(|cpu| cpu.chunks_exact(8));
    let words: Vec<u64> = words.map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    words.chunks_exact(3).fold([0; 2], |[runs, timed], row| [runs + row[0], timed + row[1]])
}

/// What was run and timed over some runs at least: on a quiet machine they would take a second and more.
fn over(account: &Account, most: u64) -> [u64; 2] {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap();
    let before = runs(account);
    until("the programs run", || {
        for _ in 0..100 {
            socket.send_to(&[7; 32], own).unwrap();
        }
        runs(account)[0] >= before[0] + most
    });
    let now = runs(account);
    [now[0] - before[0], now[1] - before[1]]
}

#[test]
fn each_run_is_timed_or_one_of_many_as_the_reader_asks() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let account = Account::live().unwrap();
    let [counted, timed] = over(&account, 3_000);
    assert!(timed > 0 && timed < counted / 4, "{timed} of {counted}");
    account.loaded().time_one_of(1).unwrap();
    let [counted, timed] = over(&account, 1_000);
    // A run in progress at a reading is counted and not timed yet.
    assert!(timed.abs_diff(counted) <= 100, "{timed} of {counted}");
    account.loaded().time_one_of(FEW).unwrap();
    let [counted, timed] = over(&account, 3_000);
    assert!(timed < counted / 4, "{timed} of {counted}");
}
