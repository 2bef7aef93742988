//! A build for the host's architecture is what gets sent: one next to the program, or one that was given.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::site::Site;
use super::{SOON, new_site, site};

pub(super) const ARCH: &str = std::env::consts::ARCH;

fn version(program: &Path) -> Vec<u8> {
    Command::new(program).arg("--version").output().map_or_else(|_| Vec::new(), |it| it.stdout)
}

/// The static build of the same sources where `make static` made one, else a copy of the program with another hash.
fn build(site: &Site) -> Vec<u8> {
    let made =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/release/rxpath-{ARCH}"));
    let program = Path::new(env!("CARGO_BIN_EXE_rxpath"));
    if version(&made) == version(program) {
        return fs::read(made).unwrap();
    }
    [fs::read(site.path("rxpath")).unwrap(), b"another hash".to_vec()].concat()
}

#[test]
fn a_build_for_the_host_is_sent_and_an_experiment_runs_by_it() {
    let Some(site) = new_site() else { return };
    let bytes = build(&site);
    let beside = site.path(&format!("rxpath-{ARCH}"));
    fs::write(&beside, &bytes).unwrap();
    let check = site.rxpath(&["hosts", "check", &site.inventory]).ends(0);
    for alias in ["gen1", "sut"] {
        assert!(check.err.contains(&format!("{alias}: sending rxpath ({beside})")), "{check:?}");
        assert_eq!(sent(&site, alias), bytes);
    }
    let out = site.path("runs");
    let words = ["run", "udp-pinning", "--hosts", &site.inventory, "--out", &out, "--trials", "1"];
    let quick = super::QUICK.iter().flat_map(|set| ["--set", set]);
    let words: Vec<&str> = words.into_iter().chain(["--keep-noisy"]).chain(quick).collect();
    let run = site.rxpath(&words);
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    assert!(!run.err.contains("sending rxpath"), "{run:?}");
    site.holds_nothing(SOON);
    // A file that was given comes before the one in the directory.
    let given = site.path("given");
    fs::write(&given, [bytes, b"more".to_vec()].concat()).unwrap();
    let words = format!("{ARCH}={given}");
    let steal =
        ["steal", "--host", "sut.lab", "--binary", &words, "-d", "300ms", "--irq-entry", "1"];
    site.rxpath(&[&steal[..], &["--json"]].concat())
        .warns(&format!("sut.lab: sending rxpath ({given})"))
        .prints("\"rxpath/steal/");
}

/// The one copy on a host.
fn sent(site: &Site, alias: &str) -> Vec<u8> {
    let cache = format!("{}-{alias}", site.path("cache"));
    let copies: Vec<_> = fs::read_dir(cache).unwrap().flatten().collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    fs::read(copies[0].path().join("rxpath")).unwrap()
}

/// The program in which one text is another one of its length.
pub(super) fn altered(site: &Site, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(site.path("rxpath")).unwrap();
    let windows = bytes.windows(from.len()).enumerate();
    let found = windows.filter(|(_, window)| *window == from.as_bytes()).map(|(at, _)| at);
    let found: Vec<usize> = found.collect();
    assert!(!found.is_empty(), "{from:?} is not in the program");
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

/// By the words of the real loader, and of the shell where there is none.
#[test]
fn a_build_that_does_not_start_on_a_host_is_named_with_what_it_lacks() {
    let Some(site) = site() else { return };
    for (from, to, what) in [
        (
            "GLIBC_2.34\0",
            "GLIBC_9.99\0",
            "its C library is older than the one this binary was built with: ",
        ),
        ("libc.so.6\0", "libc.so.9\0", "a library that this binary needs is missing there: "),
        (
            "/ld-linux-",
            "/ld-other-",
            "this binary does not start there, as if for another C library: ",
        ),
    ] {
        let given = site.path("given");
        fs::write(&given, altered(&site, from, to)).unwrap();
        let words = format!("{ARCH}={given}");
        site.rxpath(&["check", "--host", "sut.lab", "--binary", &words])
            .ends(3)
            .warns(&format!("sut.lab: {what}"))
            .warns("hint: make static, or --binary ARCH=FILE with a static build");
    }
}
