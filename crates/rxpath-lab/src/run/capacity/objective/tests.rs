//! How objectives are read, and what they say of trials.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rxpath_load::http::load::result::LoadResult;
use rxpath_load::tcp::result::TransactionsResult;
use rxpath_record::evidence::ThreadUse;

use super::*;

fn trial(metrics: &[(&str, f64)]) -> Trial {
    let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Trial { metrics, ..Trial::default() }
}

fn datagrams(offered: f64, delivered: f64, loss: f64) -> Trial {
    let metrics = [("offered_pps", offered), ("delivered_pps", delivered), ("loss_ratio", loss)];
    trial(&metrics)
}

fn client(result: &impl serde::Serialize) -> BTreeMap<String, serde_json::Value> {
    [("load".to_owned(), serde_json::json!({ "result": result }))].into()
}

fn objectives(latency: Option<&str>) -> Objectives {
    let mut all = Objectives { loss_ratio: 0.001, latency: None };
    if let Some(text) = latency {
        all.add(text, Protocol::Http).unwrap();
    }
    all
}

fn of_udp(trial: &Trial) -> TrialOutcome {
    objectives(None).judge(trial, 100.0, Protocol::Udp).unwrap().outcome
}

#[test]
fn what_is_typed_is_read() {
    for (text, loss_ratio) in [("loss=0.1%", 0.001), ("loss<1 %", 0.01), ("loss=0", 0.0)] {
        let mut all = Objectives { loss_ratio: 0.5, latency: None };
        all.add(text, Protocol::Udp).unwrap();
        assert_eq!(all, Objectives { loss_ratio, latency: None }, "{text}");
    }
    let latency = |text| objectives(Some(text)).latency.unwrap().to_string();
    assert_eq!(latency("p99<2ms"), latency(" p99 <= 2ms"));
    assert_eq!(latency("p99.9<500us").split('<').next(), Some("p99.9"));
}

#[test]
fn what_is_no_objective_is_refused_in_a_line_with_an_example() {
    for (text, part) in [
        ("p98<2ms", "`p98` is none of loss, mean, p50, p90, p99, p99.9"),
        ("p99", "it has no limit"),
        ("p99<2", "the limit 2 has no unit; for example `p99<2ms`"),
        ("p99=2ms", "write `p99<2ms`"),
        ("p99<0s", "nothing answers in no time"),
        ("p99<soon", "`p99<soon`: `soon` is not"),
        ("loss=0.1", "the loss 0.1 has no unit; for example `loss=0.1%`"),
        ("loss=-1%", "a loss is from 0 %"),
        ("loss=100%", "a loss is from 0 %"),
        ("loss=", "a loss is from 0 %"),
    ] {
        let error = Objectives::parse(text, Protocol::Http).unwrap_err();
        assert!(error.contains(part) && error.lines().count() == 1, "{text}: {error}");
    }
}

#[test]
fn a_trial_of_datagrams_is_judged_by_loss_and_by_keeping_up() {
    assert_eq!(of_udp(&datagrams(100.0, 100.0, 0.001)), Good { loss_ratio: 0.001 });
    assert_eq!(of_udp(&datagrams(100.0, 99.0, 0.01)), Bad { loss_ratio: 0.01 });
    // A large buffer took the rest.
    assert_eq!(of_udp(&datagrams(100.0, 95.0, 0.0)), Bad { loss_ratio: 0.0 });
    assert_eq!(of_udp(&datagrams(90.0, 90.0, 0.0)), Short);
    // More than it takes already.
    assert_eq!(of_udp(&datagrams(90.0, 80.0, 0.1)), Bad { loss_ratio: 0.1 });
    // The end of the trial delivered what the ramp had left.
    assert_eq!(of_udp(&datagrams(100.0, 101.0, -0.01)), Good { loss_ratio: 0.0 });
    assert_eq!(objectives(None).judge(&trial(&[]), 100.0, Protocol::Udp), None);
}

#[test]
fn a_loss_that_is_allowed_is_no_failure_to_keep_up() {
    let tenth = Objectives { loss_ratio: 0.1, ..Objectives::default() };
    let of = |trial: &Trial, protocol| tenth.judge(trial, 100.0, protocol).unwrap().outcome;
    let udp = |delivered, loss| of(&datagrams(100.0, delivered, loss), Protocol::Udp);
    assert_eq!(udp(93.0, 0.07), Good { loss_ratio: 0.07 });
    assert_eq!(udp(89.0, 0.11), Bad { loss_ratio: 0.11 });
    // A buffer hides a loss that is too large.
    assert_eq!(udp(85.0, 0.05), Bad { loss_ratio: 0.05 });
    let requests = |answered| of(&trial(&[("achieved_rps", answered)]), Protocol::Http);
    assert!(matches!(requests(93.0), Good { .. }));
    assert!(matches!(requests(85.0), Bad { .. }));
}

#[test]
fn a_disturbed_trial_is_void_whatever_it_showed() {
    let of = |made: Trial| of_udp(&Trial { void: Some("another program".into()), ..made });
    let void = |is_good, loss_ratio| Void { is_good, loss_ratio };
    assert_eq!(of(datagrams(100.0, 100.0, 0.0)), void(Some(true), 0.0));
    assert_eq!(of(datagrams(100.0, 50.0, 0.5)), void(Some(false), 0.5));
    assert_eq!(of(datagrams(90.0, 90.0, 0.0)), void(None, 0.0));
    assert_eq!(of(trial(&[("offered_pps", 100.0)])), void(Some(false), 1.0));
    assert_eq!(of(trial(&[])), void(None, 1.0));
}

#[test]
fn a_trial_of_requests_is_judged_by_latency_and_by_answers() {
    let judge = |latency: Option<&str>, answered: f64, p99: f64| {
        let made = trial(&[("achieved_rps", answered), ("response_time_p99_us", p99)]);
        objectives(latency).judge(&made, 100.0, Protocol::Http).unwrap()
    };
    assert!(matches!(judge(None, 99.0, 9e6).outcome, Good { .. }));
    assert!(matches!(judge(Some("p99<2ms"), 99.0, 1999.0).outcome, Good { .. }));
    assert!(matches!(judge(Some("p99<2ms"), 99.0, 2000.0).outcome, Bad { .. }));
    assert!(matches!(judge(Some("p90<2ms"), 99.0, 1.0).outcome, Bad { .. }));
    let slow = judge(None, 90.0, 100.0);
    assert!(matches!(slow.outcome, Bad { .. }) && slow.latency_us == Some(100.0));
    assert!((slow.loss_ratio - 0.1).abs() < 1e-9);
}

#[test]
fn the_quantile_of_few_requests_is_the_clients_own() {
    let mut made = trial(&[("achieved_rps", 100.0)]);
    let times = Quantiles { p99: 1500.0, ..Quantiles::default() };
    let result = LoadResult { response_time_us: Some(times), ..LoadResult::default() };
    made.workloads = client(&result);
    let judge = |latency| objectives(Some(latency)).judge(&made, 100.0, Protocol::Http).unwrap();
    assert_eq!(judge("p99<2ms").latency_us, Some(1500.0));
    assert!(matches!(judge("p99<2ms").outcome, Good { .. }));
    assert!(matches!(judge("p99<1ms").outcome, Bad { .. }));
}

#[test]
fn a_busy_client_before_an_idle_server_falls_short() {
    let mut made = trial(&[("achieved_tps", 50.0)]);
    let thread = |running_ratio| vec![ThreadUse { running_ratio, ..ThreadUse::default() }];
    made.evidence.sender_threads = thread(0.99);
    made.evidence.receiver_threads = thread(0.3);
    let judge = |made: &Trial| objectives(None).judge(made, 100.0, Protocol::TcpRr).unwrap();
    assert_eq!(judge(&made).outcome, Short);
    made.evidence.receiver_threads = thread(0.99);
    assert!(matches!(judge(&made).outcome, Bad { .. }));
}

#[test]
fn failed_requests_are_a_share_of_all() {
    for protocol in [Protocol::Http, Protocol::TcpRr, Protocol::TcpCrr] {
        let judge = |failed: f64, done: u64| {
            let mut made = trial(&[(protocol.main_metric(), 100.0), ("errors_count", failed)]);
            let tcp = TransactionsResult { transactions_total: done, ..Default::default() };
            let http = LoadResult { requests_total: done, ..LoadResult::default() };
            made.workloads = if protocol == Protocol::Http { client(&http) } else { client(&tcp) };
            objectives(None).judge(&made, 100.0, protocol).unwrap().outcome
        };
        assert_eq!(judge(10.0, 90), Bad { loss_ratio: 0.1 }, "{protocol:?}");
        assert_eq!(judge(10.0, 99_990), Good { loss_ratio: 1e-4 }, "{protocol:?}");
        assert_eq!(judge(0.0, 99_990), Good { loss_ratio: 0.0 }, "{protocol:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(loss|p99|p99.9|mean|.{0,4})[=<]{0,2}.{0,8}") {
        match Objectives::parse(&text, Protocol::Http) {
            Ok(read) => {
                prop_assert!((0.0..1.0).contains(&read.loss_ratio));
                prop_assert!(read.latency.is_none_or(|latency| latency.below.0 > 0));
            }
            Err(why) => prop_assert!(!why.is_empty()),
        }
    }
}
