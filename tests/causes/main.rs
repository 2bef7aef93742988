//! Causes of loss, and of no loss, that nobody planted for the rules: `make causes`. Each is made in namespaces of its own by
//! programs that share nothing with rxpath's workloads, and `rxpath diagnose` is asked what limits. The table is
//! `docs/results/causes.md`; what was asked already is not asked again (`target/causes/`).
//!
//! Usage: causes all|NAME...; a name asks that cause again. Without an argument it does nothing: `cargo test` starts it so.

// A panic is how a part of it says that it can't go on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod actor;
mod ask;
mod cause;
mod grade;
mod host;
mod others;
#[allow(dead_code)] // the tests use more of it
#[path = "../root/raw_bpf.rs"]
mod raw_bpf;
mod roles;
mod row;
mod state;
mod table;
mod themes;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|first| first == "as") {
        roles::play(&words[1..]);
        return ExitCode::SUCCESS;
    }
    let all = themes::all();
    let known = |name: &String| name == "all" || all.iter().any(|cause| cause.name == name);
    if let Some(unknown) = words.iter().find(|name| !known(name)) {
        eprintln!("causes: {unknown}: no such cause");
        return ExitCode::from(2);
    }
    if words.is_empty() {
        println!("causes: nothing to do; `make causes` asks about all {} of them", all.len());
        return ExitCode::SUCCESS;
    }
    if let Err(why) = host::own_place() {
        eprintln!("causes: {why}: it needs root and `ip`");
        return ExitCode::from(3);
    }
    for cause in &all {
        let asked = words.iter().any(|name| name == cause.name);
        if asked || (words.iter().any(|name| name == "all") && !state::has(cause.name)) {
            state::keep(&ask::about(cause));
        }
    }
    let rows = state::rows(&all);
    let text = table::page(&rows);
    state::write_page(&text);
    println!("{}", table::summary(&rows));
    let wrong = rows.iter().any(|row| row.grade() == Some(grade::Grade::WrongStrong));
    ExitCode::from(u8::from(wrong))
}
