//! What `rxpath export` does when something fails, by the table of its page: each row has tests, under these names, and metrics
//! that show it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex_lite::Regex;
use rxpath_export::METRICS;

use crate::commands::root;

#[rustfmt::skip]
const ROWS: [(&str, &[&str]); 18] = [
    ("no BTF, a lockdown of the kernel, a verifier that refuses, no capability", &[
        "without_the_kernels_types_counters_go_on_and_the_reason_is_said_once",
        "without_a_capability_counters_go_on_and_what_is_needed_is_said_once",
        "what_the_verifier_refuses_is_no_missing_capability",
        "what_is_not_measured_has_its_reason",
    ]),
    ("memory or descriptors are short, or the kernel is busy", &[
        "loading_is_tried_again_while_what_is_short_may_come",
        "probes_that_cannot_be_attached_again_show_nothing_old_and_come_back",
        "no_counter_falls_over_any_fault_that_one_machine_can_have",
        "each_wait_is_twice_the_one_before_up_to_half_an_hour",
        "programs_that_a_deep_look_cannot_attach_are_attached_by_the_next",
        "a_program_that_is_refused_its_place_again_and_again_is_said_once",
        "a_failed_poll_is_followed_by_a_pause",
        "a_wait_goes_on_while_memory_is_short_and_ends_with_what_stays",
    ]),
    ("no list of UDP sockets (`udp_diag` cannot be loaded)", &[
        "without_a_list_of_udp_sockets_an_exporter_and_a_diagnosis_go_on",
        "a_list_that_the_kernel_does_not_have_is_asked_for_once_a_minute_and_leaves_a_gap",
    ]),
    (
        "a list of sockets that takes more than 1 % of the interval, UDP's and TCP's each by itself",
        &["lists_take_a_hundredth_of_the_time_whatever_one_takes"],
    ),
    (
        "a list of sockets that takes more than 20 ms of CPU time (some 20,000 sockets), UDP's and TCP's each by itself",
        &["a_list_that_took_long_is_read_once_in_five_minutes_and_leaves_a_gap"],
    ),
    ("a full map", &[
        "drops_at_two_thousand_ports_are_counted",
        "lost_records_that_are_told_again_count_once",
        "from_slices_without_a_row_as_much_was_taken_as_from_others",
    ]),
    ("the budget is exceeded, a flood", &[
        "what_the_cheapest_level_can_keep_is_kept",
        "a_turn_that_a_pause_pays_for_sheds_nothing",
        "a_turn_that_takes_more_than_five_minutes_allow_is_shed_and_tried_again_seldom",
        "pauses_keep_the_share_on_a_hundred_busy_cpus_and_samples_are_never_older_than_five_minutes",
        "longer_windows_come_first_then_latency_and_the_probes_last",
        "what_the_budget_costs_and_gives_again_is_said_once_each",
        "a_flood_is_watched_for_a_hundredth_of_a_cpu_and_seen_as_it_is",
    ]),
    ("a CPU goes offline", &[
        "an_exporter_without_capabilities_counts_on_while_a_cpu_goes_and_comes",
        "a_cpu_that_goes_offline_counts_once_each_time",
    ]),
    ("a NIC goes, gets another name, or its counters begin at 0", &[
        "no_counter_falls_or_jumps_while_devices_go_come_and_change_their_names",
        "no_counter_falls",
    ]),
    ("the virtual machine is paused, the clock is set", &[
        "a_window_in_which_the_machine_stood_still_is_thrown_away",
        "a_late_window_adds_only_the_exporters_own_cost",
    ]),
    ("other network namespaces", &[
        "drops_of_another_network_namespace_have_a_series_of_their_own",
        "another_namespace_is_measured_and_the_port_stays",
    ]),
    ("another kernel", &[
        "a_reason_that_this_kernel_has_no_name_for_is_another",
        "reasons_lose_their_prefix",
    ]),
    ("a second exporter", &[
        "a_second_exporter_goes_on_with_counters_only_and_says_why",
        "a_scraper_sees_counters_that_grow_and_a_signal_ends_it",
        "the_place_is_taken_once_and_free_again_afterwards",
    ]),
    ("the textfile cannot be written, a full disk", &[
        "a_file_that_cannot_be_written_for_a_while_is_counted_and_written_again",
        "the_page_is_replaced_and_nothing_is_left_beside_it",
    ]),
    ("the exporter is killed", &[
        "a_killed_exporter_leaves_no_program_in_the_kernel",
    ]),
    ("the exporter ends again and again", &[
        "the_unit_is_given_up_after_starts_that_an_installation_and_a_play_forget",
        "an_installation_starts_what_was_given_up_and_no_more",
    ]),
    ("many scrapes, slow or silent clients", &[
        "a_scraper_is_served_while_a_thousand_connections_say_nothing",
        "a_silent_connection_is_closed_after_its_time",
        "a_client_that_is_no_http_is_counted",
    ]),
    ("thousands of short pods", &[
        "the_number_of_series_is_bounded_whatever_a_host_has",
        "a_key_gets_its_place_after_two_windows_and_keeps_it",
        "a_late_heavy_key_gets_a_place_though_light_ones_always_have_something",
    ]),
];

/// The text of all Rust files below a folder.
fn sources(dir: &Path, into: &mut String) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The rows of the table, by their columns.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let table = page.split("## When something fails").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    rows.skip(1).map(|row| row.trim_end_matches(" |").split(" | ").collect()).collect()
}

#[test]
fn each_fault_of_the_table_is_shown_by_metrics_that_exist() {
    let page = fs::read_to_string(root().join("docs/reference/export.md")).unwrap();
    let named = Regex::new(r"`(rxpath_\w+)(?:\{(\w+)=)?").unwrap();
    let mut count = 0;
    for row in rows(&page) {
        let [event, _, shown] = row.as_slice() else { panic!("{row:?}") };
        for found in named.captures_iter(shown) {
            let metric = METRICS.iter().find(|metric| metric.name == &found[1]);
            let metric = metric.unwrap_or_else(|| panic!("{event}: no metric {}", &found[1]));
            let label = found.get(2).map(|label| label.as_str());
            assert!(label.is_none_or(|label| metric.labels.contains(&label)), "{event}: {shown}");
            count += 1;
        }
    }
    assert!(count >= ROWS.len(), "{count}");
}

#[test]
fn each_fault_of_the_table_has_tests_under_these_names() {
    let page = fs::read_to_string(root().join("docs/reference/export.md")).unwrap();
    let events: Vec<&str> = rows(&page).into_iter().map(|row| row[0]).collect();
    assert_eq!(events, ROWS.map(|(event, _)| event));
    let mut all = String::new();
    for dir in ["crates", "tests"] {
        sources(&root().join(dir), &mut all);
    }
    let tests = Regex::new(r"#\[test\]\s+fn (\w+)\(").unwrap();
    let tests: BTreeSet<&str> =
        tests.captures_iter(&all).map(|found| found.get(1).unwrap().as_str()).collect();
    for (event, held) in ROWS {
        assert!(!held.is_empty(), "{event}: nothing holds it");
        for name in held {
            assert!(tests.contains(name), "{event}: there is no test {name}");
        }
    }
}
