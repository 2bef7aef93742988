//! The long trials that `make test` has no time for: `make campaign`. Each part goes on from the table in
//! `docs/results/campaign.md`, which is written after each step.
//!
//! Usage: campaign all|kills|packets|planted|watch|http ...; KILLS, PACKETS, MINUTES, FRAMES and CONNECTIONS set how
//! long, ONLY which wrong settings are planted. Without a part it does nothing: `cargo test` starts it so.

// A panic is how a part says what it found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)] // the tests use more of it
#[path = "../root/arena.rs"]
mod arena;
#[allow(dead_code)]
#[path = "../root/bed.rs"]
mod bed;
#[allow(dead_code)]
#[path = "../support/executable.rs"]
mod executable;
mod http;
mod kills;
mod packets;
#[allow(dead_code)]
#[path = "../root/tune/place.rs"]
mod place;
mod planted;
#[allow(dead_code)]
#[path = "../support/program.rs"]
mod program;
#[allow(dead_code)]
#[path = "../root/service.rs"]
mod service;
#[path = "../support/skip.rs"]
mod skip;
mod state;
mod watch;
mod wire;

use std::process::ExitCode;

use state::{Campaign, Part};

/// Goes on with a part until its goal is reached.
type GoOn = fn(&mut Part<'_>);

const PARTS: [(&str, GoOn); 5] = [
    ("kills", kills::go_on),
    ("packets", packets::go_on),
    ("planted", planted::go_on),
    ("watch", watch::go_on),
    ("http", http::go_on),
];

fn main() -> ExitCode {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let is_named = |part: &str| named.iter().any(|name| name == part || name == "all");
    let known = |name: &String| name == "all" || PARTS.iter().any(|(part, _)| part == name);
    if let Some(unknown) = named.iter().find(|name| !known(name)) {
        eprintln!(
            "campaign: {unknown}: no such part; there are all, kills, packets, planted, watch and http"
        );
        return ExitCode::from(2);
    }
    if named.is_empty() {
        println!("campaign: nothing to do; `make campaign` runs all of it");
        return ExitCode::SUCCESS;
    }
    if !bed::may_run() {
        return ExitCode::from(3);
    }
    let mut campaign = Campaign::open();
    for (name, go_on) in PARTS {
        if is_named(name) {
            go_on(&mut campaign.part(name));
        }
    }
    ExitCode::from(u8::from(campaign.findings() > 0))
}

/// How much a part does in all: a variable of the environment, or what the campaign is about.
fn goal(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable}={text}: a number is expected"))
    })
}
