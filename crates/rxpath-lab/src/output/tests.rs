//! Recorded outputs of the real programs, and what is said when they are not what was expected.

use super::*;

const UDP_CLIENT: &str = include_str!("../../../../testdata/output/iperf3-3.12-udp-client.json");
const UDP_SERVER: &str = include_str!("../../../../testdata/output/iperf3-3.12-udp-server.json");
const TCP_CLIENT: &str = include_str!("../../../../testdata/output/iperf3-3.12-tcp-client.json");
const TCP_SERVER: &str = include_str!("../../../../testdata/output/iperf3-3.12-tcp-server.json");
const REFUSED: &str = include_str!("../../../../testdata/output/iperf3-3.12-refused.json");
const WRK: &str = include_str!("../../../../testdata/output/wrk-4.1.0.txt");
const WRK_LATENCY: &str = include_str!("../../../../testdata/output/wrk-4.1.0-latency-404.txt");
const WRK_REFUSED: &str = include_str!("../../../../testdata/output/wrk-4.1.0-refused.txt");

fn near(metrics: &Metrics, name: &str, expected: f64) {
    let found = metrics[name];
    assert!((found - expected).abs() <= expected.abs() * 1e-9, "{name}: {found}, not {expected}");
}

#[test]
fn iperf3_udp_counts_what_came_not_what_was_seen() {
    for text in [UDP_CLIENT, UDP_SERVER] {
        let metrics = read(&Parser::Iperf3, text).unwrap();
        near(&metrics, "delivered_packets", 76_786.0 - 19_489.0);
        near(&metrics, "delivered_bytes", 1_833_504.0);
        near(&metrics, "lost_packets", 19_489.0);
        near(&metrics, "duration_s", 1.000_098);
    }
    near(&read(&Parser::Iperf3, UDP_CLIENT).unwrap(), "sent_packets", 76_786.0);
    // The server does not know it: no metric rather than a zero.
    assert!(!read(&Parser::Iperf3, UDP_SERVER).unwrap().contains_key("sent_packets"));
}

#[test]
fn iperf3_tcp_has_bytes_and_no_packets() {
    let client = read(&Parser::Iperf3, TCP_CLIENT).unwrap();
    near(&client, "delivered_bytes", 1_219_231_744.0);
    near(&client, "sent_bytes", 1_225_523_200.0);
    near(&client, "retransmits_count", 5.0);
    assert!(!client.contains_key("delivered_packets"));
    near(&read(&Parser::Iperf3, TCP_SERVER).unwrap(), "delivered_bps", 9_725_145_323.006_485);
}

#[test]
fn wrk_units_become_base_units() {
    let metrics = read(&Parser::Wrk, WRK).unwrap();
    near(&metrics, "latency_mean_us", 7200.0);
    near(&metrics, "latency_max_us", 77_980.0);
    near(&metrics, "requests_total", 436.0);
    near(&metrics, "duration_s", 1.01);
    near(&metrics, "received_bytes", 182.23 * 1024.0);
    near(&metrics, "mean_rps", 431.14);
    near(&metrics, "non_2xx_count", 0.0);
    let metrics = read(&Parser::Wrk, WRK_LATENCY).unwrap();
    near(&metrics, "latency_p99_us", 19_440.0);
    near(&metrics, "non_2xx_count", 509.0);
}

#[test]
fn json_pointers_name_what_is_missing() {
    let parser = |pointer: &str| Parser::Json([("sent".to_owned(), pointer.to_owned())].into());
    let text = "log line\n{\"a\":{\"b\":[1,2]},\"s\":\"7.5\",\"t\":\"seven\"}\n";
    near(&read(&parser("/a/b/1"), text).unwrap(), "sent", 2.0);
    near(&read(&parser("/s"), text).unwrap(), "sent", 7.5);
    let error = |pointer: &str| read(&parser(pointer), text).unwrap_err();
    assert_eq!(error("/a/c"), "metric `sent`: nothing at /a/c");
    assert_eq!(error("/t"), "metric `sent`: /t is \"seven\", not a number");
    assert_eq!(error("/a"), "metric `sent`: /a is {\"b\":[1,2]}, not a number");
}

#[test]
fn regex_groups_are_metrics() {
    let pattern = r"(?P<sent_packets>[0-9,]+) sent(?:, (?P<lost_packets>\d+) lost)?".to_owned();
    let parser = Parser::Regex(pattern);
    assert_eq!(metric_names(&parser), ["sent_packets", "lost_packets"]);
    near(&read(&parser, "1,234 sent, 5 lost").unwrap(), "sent_packets", 1234.0);
    assert_eq!(read(&parser, "7 sent").unwrap().len(), 1);
    let error = read(&parser, "nothing of the kind").unwrap_err();
    assert!(error.ends_with("does not match; it begins with `nothing of the kind`"), "{error}");
}

#[test]
fn a_program_that_failed_says_why_in_its_own_words() {
    let error = |parser: &Parser, text: &str| read(parser, text).unwrap_err();
    assert_eq!(
        error(&Parser::Iperf3, REFUSED),
        "iperf3 failed: unable to connect to server: Connection refused"
    );
    assert_eq!(
        error(&Parser::Wrk, WRK_REFUSED),
        "wrk failed: unable to connect to 127.0.0.1:8766 Connection refused"
    );
    let text = error(&Parser::Iperf3, "Connecting to host 10.0.0.1, port 5201\n");
    assert!(
        text.starts_with("the output is not what the iperf3 parser reads: no JSON document"),
        "{text}"
    );
    assert!(text.ends_with("it begins with `Connecting to host 10.0.0.1, port 5201`"), "{text}");
    assert!(error(&Parser::Wrk, "").contains("there is no `Thread Stats`"));
    let cut = &WRK[..WRK.find("requests in").unwrap()];
    assert!(
        error(&Parser::Wrk, cut).contains("no line with requests_total"),
        "{}",
        error(&Parser::Wrk, cut)
    );
}

proptest::proptest! {
    #[test]
    fn no_output_panics(text in "\\PC{0,200}", at in 0usize..3000) {
        let cut = |whole: &str| whole.chars().take(at).collect::<String>();
        for text in [text, cut(UDP_CLIENT), cut(WRK_LATENCY)] {
            let _ = read(&Parser::Iperf3, &text);
            let _ = read(&Parser::Wrk, &text);
        }
    }
}
