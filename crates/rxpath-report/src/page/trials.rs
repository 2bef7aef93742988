//! The raw table: every trial, void ones too.

use rxpath_record::event::What;
use rxpath_record::ledger::Ledger;
use rxpath_record::manifest::Trial;
use rxpath_record::metric::loss_text;

use crate::prelude::*;

/// The section: from the manifest, or from the events when it lists none.
pub(super) fn section(run: &Run) -> Option<Section> {
    let trials = match run.manifest.trials.as_slice() {
        [] => from_events(run),
        trials => from_manifest(run, trials),
    };
    let notes: Vec<String> = run.manifest.trials.iter().flat_map(notes).collect();
    (!trials.rows.is_empty()).then(|| Section {
        id: "trials",
        title: "Every trial",
        lead: "In the order of running. Nothing is left out; void trials say why they do not count.",
        body: html! {
            (table(&trials, "Every trial"))
            @if !notes.is_empty() {
                h3 { "Remarks" }
                ul.remarks { @for note in &notes { li { (note) } } }
            }
        },
    })
}

fn from_manifest(run: &Run, trials: &[Trial]) -> Table {
    let main = run.main_metric();
    let datagrams = main == "delivered_pps";
    let unit = run.unit();
    let rate = if datagrams { "delivered".to_owned() } else { words::metric(main) };
    let mut table = Table::new(&format!(
        "#trial | #block | variant | #window | #offered | #{rate} | #loss, of offered | #offered, {unit} | #sent | \
         #delivered, {unit} | #dropped | #in flight | #unaccounted | loop | grade | void"
    ));
    for trial in trials {
        let ledger = &trial.ledger;
        let dropped: u64 = ledger.drops.iter().map(|drop| drop.packets).sum();
        let window = (trial.window_ns[1] - trial.window_ns[0]) as f64 / 1e9;
        let metric = |name: &str| trial.metrics.get(name).copied();
        let loss = loss_text(metric, |ratio| number::percent(ratio, 1.0));
        table.rows.push(vec![
            trial.number().to_string(),
            trial.block.to_string(),
            trial.variant.clone(),
            number::seconds(window),
            if datagrams { number::pps(trial.rates_pps()[0]) } else { "–".into() },
            trial.metrics.get(main).map_or("–".into(), |rate| number::metric(main, *rate)),
            loss.unwrap_or_else(|| "–".into()),
            number::count(ledger.offered_packets),
            number::count(ledger.sent_packets),
            number::count(ledger.delivered_packets),
            number::count(dropped),
            number::count(ledger.in_flight_packets),
            unaccounted(ledger),
            words::loop_kind(trial.loop_kind).into(),
            format!("{:?}", trial.grade),
            trial.void.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn unaccounted(ledger: &Ledger) -> String {
    let excess = ledger.unaccounted_packets.filter(|left| *left < 0);
    excess.map_or_else(|| ledger.unaccounted(), number::signed)
}

/// The number of a trial, counted from 1.
fn number(trial: u32) -> String {
    (u64::from(trial) + 1).to_string()
}

fn from_events(run: &Run) -> Table {
    let mut table = Table::new("#trial | #block | variant | ended");
    for event in &run.events {
        match &event.what {
            What::TrialStarted { trial, block, variant } => table.rows.push(vec![
                number(*trial),
                block.to_string(),
                variant.clone(),
                "no end recorded".into(),
            ]),
            What::TrialEnded { trial, void } => {
                let name = number(*trial);
                if let Some(row) = table.rows.iter_mut().rev().find(|row| row[0] == name) {
                    row[3] = void.as_ref().map_or("yes".into(), |why| format!("void: {why}"));
                }
            }
            _ => {}
        }
    }
    table
}

/// The noise and warnings of trials that have any.
fn notes(trial: &Trial) -> Vec<String> {
    let name = format!("trial {} ({})", trial.number(), trial.variant);
    let noise = trial.noise.iter().filter(|_| trial.grade != rxpath_record::manifest::Grade::A);
    noise
        .map(|note| format!("{name}: grade {:?}: {note}", trial.grade))
        .chain(trial.warnings.iter().map(|warning| format!("{name}: {warning}")))
        .collect()
}
