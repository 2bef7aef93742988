//! An open loop of `load http` asks by a schedule, and times from it.

use std::time::Duration;

use super::server::Server;
use super::{ENGINE, OK, answer, codes, number, result};

with_io_uring_too! {
    an_open_loop_asks_by_schedule_and_times_from_it
    waiting_for_a_free_connection_is_in_the_response_time_and_not_in_the_service_time
}

#[test]
fn an_open_loop_asks_by_schedule_and_times_from_it() {
    let server = Server::always(OK);
    let answer = answer(&server.url(), &["-n", "400", "-c", "4", "--rate", "2k"]);
    let result = &answer["result"];
    assert_eq!(
        (number(result, "requests_total"), number(result, "target_requests_total")),
        (400, 400)
    );
    assert_eq!(result["target_rps"], 2000.0);
    assert_eq!(number(result, "unsent_requests_total"), 0);
    assert_eq!(answer["settings"]["loop"], "open");
    assert!(result["duration_s"].as_f64().unwrap() > 0.19, "{result}");
    let at = |times: &str, key: &str| result[times][key].as_f64().unwrap();
    assert!(at("response_time_us", "mean") >= at("service_time_us", "mean"));
    assert!(result["lateness_us"]["p99"].is_number());
}

#[test]
fn waiting_for_a_free_connection_is_in_the_response_time_and_not_in_the_service_time() {
    // One connection, 20 ms a reply, a request every millisecond: the last of 30 waits for the 29 before it.
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            // why: the server is slow on purpose.
            std::thread::sleep(Duration::from_millis(20));
            if !peer.say(OK) {
                return;
            }
        }
    });
    let result =
        result(&server.url(), &["-n", "30", "-c", "1", "--rate", "1k", "--timeout", "30s"]);
    let at = |times: &str, key: &str| result[times][key].as_f64().unwrap();
    assert!(at("response_time_us", "max") > 29.0 * 19_000.0, "{result}");
    // By the arithmetic request k waits 19 k ms: half of them at least 270 ms.
    assert!(at("response_time_us", "p50") > 13.0 * 19_000.0, "{result}");
    assert!(at("service_time_us", "p50") < at("response_time_us", "p50") / 2.0, "{result}");
}

#[test]
fn what_runs_behind_its_schedule_is_named() {
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            // why: the server is slow on purpose.
            std::thread::sleep(Duration::from_millis(20));
            if !peer.say(OK) {
                return;
            }
        }
    });
    let answer = answer(&server.url(), &["-d", "300ms", "-c", "1", "--rate", "1k"]);
    assert!(number(&answer["result"], "unsent_requests_total") > 100, "{answer}");
    assert!(codes(&answer).contains(&"schedule-not-kept"), "{answer}");
}
