//! `rxpath capacity`: what has no answer is refused.

use crate::program::rxpath;

#[test]
fn what_has_no_answer_is_refused_in_one_line_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("question = \"?\"\n{text}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let counted = scenario("counted.toml", "[load]\ncount = 1000\n");
    let absent = scenario("absent.toml", "[serve]\nabsent = true\n");
    let foreign = scenario("foreign.toml", "[load]\ncommand = \"trafgen -n 1\"\n");
    let cases: [(&[&str], &str); 16] = [
        (&["sctp"], "invalid value 'sctp' for '<PROTOCOL>'"),
        (&["tcp-stream"], "a TCP stream has no rate to search: the load sets its own rate"),
        (&["udp", "--scenario", "tcp-queues"], "tcp-queues runs a TCP stream"),
        (&["udp", "--scenario", "http-threads"], "speaks http, not udp"),
        (
            &["udp", "--scenario", &foreign],
            "the load is another program, whose rate rxpath cannot set",
        ),
        (&["udp", "--scenario", &counted], "ends after a count, so it has no rate to search"),
        (&["udp", "--scenario", &absent], "nothing listens, so no rate holds"),
        (
            &["udp", "--scenario", "udp-pinning", "--variant", "nope"],
            "has no variant `nope`; it has unpinned, pinned",
        ),
        (&["udp", "--scenario", "nosuch"], "no scenario is called `nosuch`"),
        (&["http", "--slo", "p98<2ms"], "`p98` is none of loss, mean, p50, p90, p99, p99.9"),
        (&["http", "--slo", "p99<2"], "the limit 2 has no unit; for example `p99<2ms`"),
        (&["udp", "--slo", "p99<2ms"], "a datagram has no reply to wait for"),
        (&["udp", "--width", "0%"], "--width 0%: two bounds cannot be equal"),
        (&["udp", "--max", "50"], "--max 50: the search begins no lower than 100/s"),
        (&["udp", "--quick", "--rfc2544"], "cannot be used with"),
        (&["udp", "--time", "0s"], "the time must be above 0"),
    ];
    for (words, wanted) in cases {
        let out = dir.path().join("out");
        let words = [&["capacity"][..], words, &["--out", out.to_str().unwrap()]].concat();
        let done = rxpath(&words).ends(2).prints_nothing().refuses("", wanted);
        let is_hint = |line: &str| line.starts_with("hint: ");
        assert!(done.err.lines().skip(1).all(is_hint), "one line: {done:?}");
        assert!(!out.exists(), "{words:?}");
    }
}
