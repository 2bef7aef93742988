//! A billion packets over all bundled scenarios: each is at one place of a ledger.

use std::path::Path;
use std::process::Command;

use rxpath_lab::scenario::bundled;
use rxpath_record::run::RunReader;

use crate::goal;
use crate::state::Part;

/// Runs the scenarios in turn until each that can run here has some and they have PACKETS in all.
pub fn go_on(part: &mut Part<'_>) {
    let all = goal("PACKETS", 1_000_000_000);
    let mut names: Vec<String> = bundled().unwrap().into_iter().map(|file| file.name).collect();
    part.keep(|what| names.iter().any(|name| name == what));
    let mut done: u64 = names.iter().map(|name| part.done(name)).sum();
    loop {
        names.sort_by_key(|name| (part.done(name) > 0, part.rounds(name)));
        let Some(name) = names.first().cloned() else { return };
        if done >= all && part.done(&name) > 0 {
            return;
        }
        let (packets, found) = run(&name);
        if packets == 0 {
            // Nothing of it can run here, or it found something at once: the others go on.
            names.remove(0);
            if found.is_none() {
                eprintln!("campaign: packets: {name}: not run: it needs what is not here");
                continue;
            }
        }
        done += packets;
        part.step(&name, packets, None, found);
    }
}

/// Packets offered in one block of a scenario's variants, and what their ledgers miss.
fn run(name: &str) -> (u64, Option<String>) {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["run", name, "--trials", "1", "--keep-noisy", "--json", "--out"]).arg(out.path());
    let output = command
        .args(["--set", "trials.aa=false", "--set", "trials.max_blocks=1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default().to_owned();
    let read = serde_json::from_slice::<serde_json::Value>(&output.stdout)
        .ok()
        .and_then(|value| RunReader::open(Path::new(value["settings"]["run"].as_str()?)).ok());
    match (output.status.code(), read) {
        // 3: no variant can run here; 5: some of them can not.
        (Some(3), _) => (0, None),
        (Some(0 | 4 | 5), Some(run)) => {
            let ledgers = run.manifest.trials.iter().map(|trial| (&trial.variant, &trial.ledger));
            let packets = ledgers.clone().map(|(_, ledger)| ledger.offered_packets).sum();
            let missing = ledgers.filter(|(_, ledger)| ledger.unaccounted_packets != Some(0));
            let found = missing.map(|(variant, ledger)| format!("{variant}: {ledger:?}")).next();
            (packets, found)
        }
        (code, _) => (0, Some(format!("{code:?}: {last}"))),
    }
}
