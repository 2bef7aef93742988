//! The report as text: structure, escaping, determinism, runs that are not whole.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::prelude::Run;
use crate::{html, markdown};
use rxpath_core::measured::{
    CpuBreakdown, IrqCalibration, IrqLine, NapiPolls, StageName, StageTimes, TakenBy, TaskTime,
    VictimTime,
};
use rxpath_core::ntp::NtpState;
use rxpath_core::{CpuList, Division, Log2, PathSide};
use rxpath_record::comparison::MeasuredEffect;
use rxpath_record::hosts::{ClockDrift, ControlCost, HostStart, HostTrial, PairPackets};
use rxpath_record::ledger::{Drop, PacketBounds, Place, RemainderBounds};
use rxpath_record::manifest::HostPart;
use rxpath_record::metric;
use rxpath_record::stolen::{CpuPaid, StolenCpuTime, VictimRecord};
use rxpath_record::traced::{CpuTraced, DeviceTraced, NapiTraced, Traced};
use rxpath_stats::Looks;
use rxpath_stats::difference::difference;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs").join(name)
}

fn open(path: &Path) -> Run {
    Run::open(path).unwrap()
}

/// A copy of a fixture in which `edit` changed the text of one file.
fn edited(name: &str, file: &str, edit: impl Fn(&str) -> String) -> (tempfile::TempDir, Run) {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    let path = dir.path().join(file);
    fs::write(&path, edit(&fs::read_to_string(&path).unwrap())).unwrap();
    let run = open(dir.path());
    (dir, run)
}

/// Headings and figure titles, indented by level.
fn outline(page: &str) -> String {
    let mut out = String::new();
    for level in page.split("<h").skip(1) {
        let depth = level.chars().next().and_then(|c| c.to_digit(10)).unwrap_or(0) as usize;
        if depth > 0 {
            let text = level.split_once('>').map_or("", |(_, rest)| rest);
            let text = text.split("</h").next().unwrap_or_default();
            let _ = writeln!(out, "{}{text}", "  ".repeat(depth - 1));
        }
    }
    out
}

#[test]
fn the_order_of_the_page_is_the_documented_one() {
    for name in ["million-pps", "one-variant", "partial", "recorded-demo"] {
        insta::assert_snapshot!(format!("outline-{name}"), outline(&html(&open(&fixture(name)))));
    }
}

#[test]
fn markdown_is_short_and_whole() {
    for name in ["million-pps", "one-variant", "partial", "recorded-demo"] {
        insta::assert_snapshot!(format!("markdown-{name}"), markdown(&open(&fixture(name))));
    }
}

#[test]
fn equal_runs_give_equal_bytes() {
    let first = html(&open(&fixture("million-pps")));
    assert_eq!(first, html(&open(&fixture("million-pps"))));
    // Other pages in between must not show.
    let _ = html(&open(&fixture("one-variant")));
    assert_eq!(first, html(&open(&fixture("million-pps"))));
}

#[test]
fn strings_of_a_run_cannot_become_markup() {
    let evil = "</style><script>x</script><img src=x onerror=y>\"'";
    let quoted = serde_json::to_string(evil).unwrap();
    for (file, victim) in [
        ("manifest.json", "\"naive\""),
        ("manifest.json", "\"rx/Udp.RcvbufErrors\""),
        ("environment.json", "\"6.18.5-made-up\""),
        ("events.jsonl", "\"serve.batch\""),
    ] {
        let (_dir, run) = edited("million-pps", file, |text| {
            assert!(text.contains(victim));
            text.replace(victim, &quoted)
        });
        let page = html(&run);
        assert!(!page.contains("<script") && !page.contains("<img"), "{file} {victim}");
        assert_eq!(page.matches("</style>").count(), 1, "{file} {victim}");
        assert!(page.contains("&lt;script&gt;"), "{file} {victim} is shown as text");
        assert!(!markdown(&run).contains("<script"), "{file} {victim}");
    }
}

#[test]
fn the_policy_forbids_everything_but_the_pages_own_style() {
    let page = html(&open(&fixture("million-pps")));
    assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:"));
    for sign in ["http://", "https://", "@import", "url(//", "javascript:"] {
        let places: Vec<&str> =
            page.match_indices(sign).map(|(at, _)| &page[at..at + 40]).collect();
        let foreign = places.iter().filter(|place| !place.starts_with("http://www.w3.org/"));
        assert_eq!(foreign.count(), 0, "{sign}: {places:?}");
    }
}

#[test]
fn what_is_wrong_with_a_run_stands_at_the_top() {
    type Edit = fn(&str) -> String;
    let cases: [(&str, Edit, &str); 4] = [
        ("manifest.json", |text| text.replace("rxpath/run/1.0", "rxpath/run/9.0"), "newer rxpath"),
        ("manifest.json", |text| text[..text.len() / 2].into(), "is not JSON"),
        (
            "manifest.json",
            |text| text.replacen("\"offered_packets\":7", "\"offered_packets\":8", 1),
            "does not add up",
        ),
        ("events.jsonl", |text| text[..text.len() - 40].into(), "cut"),
    ];
    for (file, edit, sign) in cases {
        let (_dir, run) = edited("million-pps", file, edit);
        let page = html(&run);
        let top = page.find("This run is incomplete").expect(sign);
        let body = page.find("<main>").unwrap();
        assert!(top < body && page[top..body].contains(sign), "{sign}: {}", &page[top..body]);
        assert!(page.contains("Every trial"), "{sign}: the rest is shown");
        assert!(markdown(&run).contains("Incomplete:"), "{sign}");
    }
}

#[test]
fn a_ledger_that_does_not_close_is_said_so() {
    let closed = html(&open(&fixture("million-pps")));
    assert!(closed.contains("The ledger closes."));
    let (_dir, run) = edited("million-pps", "manifest.json", |text| {
        text.replacen("\"unaccounted_packets\":0", "\"unaccounted_packets\":77", 1)
    });
    let open = html(&run);
    assert!(open.contains("The ledger does not close.") && open.contains("77 datagrams"), "{open}");
}

#[test]
fn what_was_expected_is_answered() {
    let comparison = |outcome: &str, metric: &str, expected: Option<&str>| {
        let value = serde_json::json!({
            "metric": metric, "base": "a", "variant": "b", "ratio": 2.0, "interval": null, "range": null,
            "outcome": outcome, "pairs_count": 6, "expected": expected,
        });
        crate::words::expected(&serde_json::from_value(value).unwrap())
    };
    let (rate, time) = ("delivered_pps", "service_time_p50_us");
    for (outcome, metric, expected, told) in [
        ("better", rate, Some("up"), "up: confirmed"),
        ("worse", rate, Some("up"), "up: contradicted"),
        ("better", time, Some("down"), "down: confirmed"),
        ("same", rate, Some("same"), "same: confirmed"),
        ("inconclusive", rate, Some("up"), "up: undecided"),
        ("better", rate, None, "–"),
    ] {
        assert_eq!(comparison(outcome, metric, expected), told);
    }
}

#[test]
fn comparisons_whose_base_is_zero_are_in_page_and_text() {
    let mut run = open(&fixture("million-pps"));
    let share = [(0.0, 0.25); 6];
    let time = [(0.0, 13.0); 6];
    for (at, (metric, pairs)) in
        [("loss_ratio", share), ("service_time_p99_us", time)].into_iter().enumerate()
    {
        let found = difference(&pairs, metric::scale(metric), 0.03, Looks::of(5, 20)).unwrap();
        run.manifest.comparisons[at].metric = metric.into();
        run.manifest.comparisons[at].effect = MeasuredEffect::of(&found, metric);
    }
    for text in [html(&run), markdown(&run)] {
        assert!(text.contains("+25.00 percentage points"), "{text}");
        assert!(text.contains("no ratio: the base is 0; +13 us"), "{text}");
        assert!(!text.contains("too few"), "{text}");
    }
}

fn host(side: PathSide, device: &str, ahead_ns: i64) -> HostPart {
    let ntp = NtpState { is_synchronised: true, max_error_us: 12_000, ..NtpState::default() };
    HostPart {
        device: device.into(),
        driver: "ice".into(),
        clock_ahead_ns: ahead_ns,
        clock_error_ns: 19_000,
        device_mbps: Some(25_000),
        hops_at_most: Some(1),
        ntp: Some(ntp),
        drift: Some(ClockDrift { ahead_ppm: 1.3, error_ppm: 0.5, span_ns: 9_000_000_000 }),
        ..HostPart::of(side)
    }
}

#[test]
fn hosts_are_a_picture_with_their_cards_rates_and_losses_and_their_clocks_a_table() {
    let mut run = open(&fixture("million-pps"));
    assert!(!html(&run).contains("Who sends to whom"));
    run.manifest.hosts = [
        ("gen1".to_owned(), host(PathSide::Tx, "ens1f0", -2_000_000)),
        ("<b>sut".to_owned(), host(PathSide::Rx, "ens2", 0)),
    ]
    .into();
    let page = html(&run);
    for part in [
        "Who sends to whom",
        "gen1 to &lt;b&gt;sut",
        "ens1f0 · ice · 25Gb/s",
        "1 hop",
        " offered</text>",
        " lost</text>",
        "\u{2212}2 ms",
        "± 38 µs",
        "1.3 +-0.5 ppm over 9s",
        "ahead at the start",
        ">at the start</td>",
        "synchronised, to +-12ms at most",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let pair = |receiver: &str, delivered| PairPackets {
        sender: "gen1".into(),
        receiver: receiver.into(),
        offered_packets: 1_000,
        delivered_packets: Some(delivered),
    };
    let cost = ControlCost {
        span_ns: 1_000_000_000,
        cpu_ns: 4_000_000,
        control_bytes: 120,
        cpus: CpuList((5..=9).collect()),
    };
    for trial in &mut run.manifest.trials {
        trial.pairs = vec![pair("<b>sut", 1_000), pair("sut2", 500)];
        let host = |at_ns| HostTrial {
            endpoint_cost: Some(cost.clone()),
            start: Some(HostStart { at_ns, error_ns: 25_000, late_ns: 0 }),
            ..HostTrial::of(PathSide::Tx)
        };
        trial.hosts.insert("gen1".to_owned(), host(0));
        trial.hosts.insert("gen2".to_owned(), host(310_000));
    }
    run.manifest.hosts.insert("sut2".into(), host(PathSide::Rx, "ens3", 0));
    let page = html(&run);
    for load in [" · 25.0 % lost</text>", " · 0 % lost</text>", " · 50.0 % lost</text>"] {
        assert!(page.contains(load), "{load}");
    }
    let heads = "| variant | sender | receiver | offered | delivered | lost, of offered |\n| --- | --- | --- | ---: |";
    assert!(markdown(&run).contains(heads), "{}", markdown(&run));
    for part in ["Cost of measuring", "120 B/s", "5-9", "Starts of the senders", "0.31ms +-0.05ms"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn the_picture_of_hosts_says_that_pairs_were_chosen() {
    let mut run = open(&fixture("million-pps"));
    let hosts = ["gen1", "sut", "sut2"].map(str::to_owned);
    let [sender, first, second] = hosts.clone();
    let parts = [PathSide::Tx, PathSide::Rx, PathSide::Rx].map(|side| host(side, "ens1f0", 0));
    run.manifest.hosts = hosts.into_iter().zip(parts).collect();
    let chosen = "the pairs that the inventory chose";
    assert!(!html(&run).contains(chosen));
    run.manifest.hosts.get_mut(&sender).unwrap().sends_to = vec![first, second];
    assert!(html(&run).contains(chosen));
}

#[test]
fn a_ledger_within_bounds_does_not_account_for_all() {
    let mut run = open(&fixture("recorded-demo"));
    // It says the same in words of its own.
    run.manifest.headline.clear();
    let closed = "are accounted for.";
    assert!(html(&run).contains(closed));
    for trial in &mut run.manifest.trials {
        trial.ledger.unaccounted_packets = None;
        trial.ledger.unaccounted_bounds =
            Some(RemainderBounds { least_packets: -90, most_packets: 41 });
    }
    let page = html(&run);
    assert!(page.contains("The ledger closes within bounds."), "{page}");
    assert!(page.contains("may be accounted for: "), "{page}");
    assert!(!page.contains(closed), "{page}");
}

#[test]
fn a_ledger_says_how_many_of_its_trials_are_in_medians() {
    let mut run = open(&fixture("recorded-demo"));
    let page = html(&run);
    assert!(page.contains(" in 12 valid trials are accounted for."));
    // When this run was made, the A/A trials were in the medians.
    assert!(page.contains("The A/A block is in the medians of this run"));
    run.manifest.variants[0].trials_count = 5;
    let page = html(&run);
    assert!(page.contains("The A/A block is in no median."));
    let wanted = " in 12 valid trials (10 of them in medians) are accounted for.";
    assert!(page.contains(wanted), "{page}");
}

#[test]
fn a_loss_within_bounds_is_no_share_of_one_number() {
    let mut run = open(&fixture("recorded-demo"));
    for trial in &mut run.manifest.trials {
        trial.ledger.drops = vec![Drop {
            place: Place::Network,
            counter: "tx - rx".into(),
            packets: 7_000,
            derived: true,
            exact: false,
            bounds: Some(PacketBounds { least_packets: 5, most_packets: Some(90_000) }),
            cross_checks: Vec::new(),
        }];
    }
    let text = markdown(&run);
    assert!(text.contains("| 7,000 (between 5 and 90,000) | – |"), "{text}");
    let page = html(&run);
    assert!(page.contains("<span>between 5 and 90,000</span>"), "{page}");
}

fn who_paid() -> StolenCpuTime {
    let time = Division { on_cpu_s: 1.9, own_s: 1.4, net_rx_s: 0.5, ..Division::default() };
    let by = TakenBy { dev: "backlog".into(), net_s: 0.5, packets: 12_345, ..TakenBy::default() };
    let row = CpuBreakdown { cpu: 1, time, ..CpuBreakdown::default() };
    StolenCpuTime {
        window_s: 2.0,
        victim: Some(VictimRecord {
            cpu: 1,
            row: VictimTime {
                asked_s: 2.0,
                got_by_work_s: Some(1.25),
                time,
                taken_by: vec![by],
                ..VictimTime::default()
            },
            deferred_s: 0.1,
            ..VictimRecord::default()
        }),
        cpus: vec![CpuPaid { row, landed_packets: Some(54_321) }],
        tasks: vec![TaskTime { comm: "<b>evil".into(), time, ..TaskTime::default() }],
        interrupt: IrqCalibration {
            source: "measured".into(),
            interval_us: [5.5, 6.7],
            ..IrqCalibration::default()
        },
        ..StolenCpuTime::default()
    }
}

fn what_was_traced() -> Traced {
    Traced {
        cpus: vec![CpuTraced { time_squeeze_count: Some(98_765), ..CpuTraced::default() }],
        devices: vec![DeviceTraced {
            dev: "veth".into(),
            side: "tx".into(),
            cpus: vec![2, 3, 4],
            ..DeviceTraced::default()
        }],
        irqs: vec![IrqLine {
            name: "eth0-rx".into(),
            interval_ns: Log2::of(&[0, 0, 0, 0, 5]),
            ..IrqLine::default()
        }],
        napis: vec![NapiTraced {
            side: "rx".into(),
            row: NapiPolls {
                dev: "veth".into(),
                packets_per_poll: Log2::of(&[0, 3, 0, 7]),
                ..NapiPolls::default()
            },
        }],
        stages: vec![StageTimes {
            stage: StageName::SocketToRead,
            latencies_count: 3,
            unread_count: 41_017,
            latency_ns: Log2::of(&[0, 0, 3]),
            ..StageTimes::default()
        }],
        ..Traced::default()
    }
}

#[test]
fn who_paid_and_what_was_traced_are_sections_of_runs_that_observed_it() {
    let mut run = open(&fixture("million-pps"));
    assert!(!html(&run).contains("id=\"stolen\"") && !html(&run).contains("id=\"traced\""));
    for trial in &mut run.manifest.trials {
        trial.stolen = Some(who_paid());
        trial.traced = Some(what_was_traced());
    }
    let page = html(&run);
    for part in [
        "Who paid",
        "1.250 s (62.5 %)",
        "backlog: 0.500 s, 12,345 packets",
        "54,321",
        "&lt;b&gt;evil",
        "5.5 to 6.7 µs, measured",
        "Packets of a poll",
        "4 to 7",
        "veth (rx)",
        "veth (tx)",
        "2-4",
        "98,765",
        "eth0-rx",
        "15ns",
        "socket to its read",
        "41,017",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let text = markdown(&run);
    assert!(
        text.contains("| got |")
            && text.contains("| known work |")
            && text.contains("1.250 s (62.5 %)"),
        "{text}"
    );
}
