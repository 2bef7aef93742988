//! Attaches a BPF program that drops three of four packets, as long as it runs: `at=tc|xdp|xdp-native`, `dev=IF`;
//! `at=cgroup`, `path=GROUP`.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::net::if_::if_nametoindex;

use super::counts::Counts;
use super::words::Words;
use crate::raw_bpf;

/// Instructions: the kernel's random number, and its two lowest bits decide.
fn three_of_four(drop: u64, pass: u64) -> [u64; 6] {
    [
        0x85 | 7 << 32,    // call get_prandom_u32
        0x54 | 3 << 32,    // w0 &= 3
        0x16 | 2 << 16,    // if w0 == 0 goto +2
        0xb4 | drop << 32, // w0 = drop
        0x95,              // exit
        0xb4 | pass << 32, // w0 = pass; the exit follows
    ]
}

pub fn play(words: &Words) {
    const CGROUP_SKB: u32 = 8;
    let counts = Counts::open();
    let at = words.text("at").unwrap_or("tc");
    let (kind, drop, pass, how) = match at {
        "tc" => (raw_bpf::SCHED_CLS, 2, 0, [46, 0]),
        "xdp" => (6, 1, 2, [37, 2]),
        "xdp-native" => (6, 1, 2, [37, 4]),
        "cgroup" => (CGROUP_SKB, 0, 1, [0, 0]),
        other => panic!("{other}: no such place"),
    };
    let mut code = three_of_four(drop, pass).to_vec();
    code.push(0x95);
    let program = raw_bpf::load(kind, &code, "three_of_four").expect("the program loads");
    let link = if at == "cgroup" {
        let group = File::open(words.text("path").expect("path=")).unwrap();
        raw_bpf::attach(&program, group.as_raw_fd() as u32, how)
    } else {
        let device = if_nametoindex(words.text("dev").unwrap_or("w0")).unwrap();
        raw_bpf::attach(&program, device, how)
    };
    let _link = link.expect("it can be attached");
    counts.ready();
    loop {
        std::thread::park();
    }
}
