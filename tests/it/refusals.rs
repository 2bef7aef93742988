//! What cannot be done is refused in one line with exit status 2, before anything is made.

use std::process::Command;

/// Exit status and standard error of `rxpath` with these words.
fn refused(words: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn bad_scenarios_and_options_say_what_would_be_right() {
    let cases: [(&[&str], &str); 6] = [
        (&["udp-pinning", "--bogus"], "unexpected argument '--bogus'"),
        (&["nosuch"], "no scenario is called `nosuch`; bundled are million-pps"),
        (&["udp-pinning", "--set", "load.sise=3"], "did you mean `size`?"),
        (
            &["udp-pinning", "--set", "variant.nope.load.gso=3"],
            "variants known here: unpinned, pinned",
        ),
        (&["udp-pinning", "--set", "load.cpu=7777"], "CPU 7777 is not online"),
        (&["/no/such/file.toml"], "/no/such/file.toml"),
    ];
    for (words, wanted) in cases {
        let words: Vec<&str> = ["run"].iter().chain(words).copied().collect();
        let (code, stderr) = refused(&words);
        assert_eq!(code, Some(2), "{words:?}: {stderr}");
        assert!(stderr.starts_with("rxpath: ") && stderr.contains(wanted), "{words:?}: {stderr}");
        assert!(
            stderr.lines().skip(1).all(|line| line.starts_with("hint: ")),
            "one line: {stderr}"
        );
    }
}

#[test]
fn addresses_and_cpus_that_cannot_be_had_are_named() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let cases: [(&[&str], &str); 5] = [
        (&["serve", "udp", &taken], "in use"),
        // TEST-NET-3 (RFC 5737) is nobody's address.
        (&["serve", "udp", "203.0.113.7:4321"], "203.0.113.7:4321"),
        (&["serve", "udp", "127.0.0.1:0", "--cpu", "7777"], "--cpu 7777"),
        (&["load", "udp", &taken, "--flood", "--cpu", "7777"], "--cpu 7777"),
        (&["serve", "udp", "127.0.0.1:0", "--cpu", "0", "--threads", "2"], "--threads 2"),
    ];
    for (words, wanted) in cases {
        let (code, stderr) = refused(words);
        assert_eq!(code, Some(2), "{words:?}: {stderr}");
        assert!(stderr.starts_with("rxpath: ") && stderr.contains(wanted), "{words:?}: {stderr}");
        assert_eq!(stderr.lines().filter(|line| line.starts_with("rxpath: ")).count(), 1);
    }
}

#[test]
fn datagrams_over_the_mtu_are_told_before_the_run() {
    let words = ["run", "udp-pinning", "--set", "load.size=4000", "--dry-run", "--json"];
    let done = Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap();
    let plan = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{plan}");
    for wanted in
        ["datagrams-fragmented", "do not fit the MTU of 1500", "IP cuts each into 3 fragments"]
    {
        assert!(plan.contains(wanted), "{wanted}: {plan}");
    }
}
