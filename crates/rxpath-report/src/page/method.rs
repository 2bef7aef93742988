//! How it was measured: order, blocks, noise floor, intervals, grades.

use std::collections::BTreeMap;

use rxpath_record::manifest::{Grade, LoopKind, Manifest, NoiseFloor, Trial, VariantSummary};

use crate::prelude::*;

/// The section, or nothing when no trial is known.
pub(super) fn section(run: &Run) -> Option<Section> {
    let manifest = Some(&run.manifest).filter(|manifest| !manifest.trials.is_empty())?;
    Some(Section {
        id: "method",
        title: "Method",
        lead: "How the numbers were measured and how reliable they are.",
        body: html! {
            dl.method {
                dt { "Unit" } dd { (unit(manifest)) }
                dt { "Order" } dd { (order(manifest)) }
                dt { "Noise floor" } dd { (noise_floor(manifest.noise_floor.as_ref())) }
                dt { "Intervals" } dd {
                    "Medians: 95 % percentile bootstrap over trials. Comparisons: differences within blocks on a \
                     logarithmic scale, by the overlap of Student's t and of the trimmed t, at a level that holds at \
                     every look of the run; several comparisons by Holm's steps. Near zero, shares and counts of \
                     errors are compared by their difference. Fewer than five trials have no interval. Outliers are \
                     kept. "
                    (block_zero(manifest))
                }
                dt { "Noise grades" } dd { (grades(&manifest.trials)) }
                dt { "Load" } dd { (loops(&manifest.trials)) }
                dt { "Ledger" } dd {
                    "Counters are read before and after each trial while no packets move, sockets before they are \
                     closed. Each drop has one owning counter; counters that change along with it are cross-checks and \
                     are never added. Rates use the measured window only."
                }
            }
        },
    })
}

/// Whether the A/A block counts: runs of earlier versions have it in their medians.
fn block_zero(manifest: &Manifest) -> &'static str {
    let has = |variant: &VariantSummary| manifest.aa_in_medians(&variant.name) > 0;
    if manifest.variants.iter().any(has) {
        "The A/A block is in the medians of this run, which is of an earlier version, and in no sum of losses."
    } else {
        "The A/A block is in no median."
    }
}

fn unit(manifest: &Manifest) -> String {
    let void = manifest.trials.iter().filter(|trial| trial.void.is_some()).count();
    let ran = manifest.trials.len();
    format!(
        "The trial: {ran} ran, {void} {} void and {} replaced or left out. Samples inside a trial are never treated as \
         independent.",
        if void == 1 { "was" } else { "were" },
        if void == 1 { "was" } else { "were" }
    )
}

/// Blocks in the order of running; block 0 is the A/A block.
fn order(manifest: &Manifest) -> Markup {
    let mut blocks: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
    for trial in &manifest.trials {
        blocks.entry(trial.block).or_default().push(trial);
    }
    html! {
        p { "Randomised blocks, each variant once per block, shuffled with seed " (manifest.seed) "." }
        ol.blocks {
            @for (block, trials) in &blocks {
                li {
                    span { @if *block == 0 { "block 0 (A/A)" } @else { "block " (block) } }
                    @for (at, trial) in trials.iter().enumerate() {
                        @if at > 0 { " → " }
                        span.void[trial.void.is_some()] { (trial.variant) }
                    }
                }
            }
        }
    }
}

fn noise_floor(floor: Option<&NoiseFloor>) -> String {
    match floor {
        None => {
            "No A/A block was run: the difference between two equal variants is not known here."
                .into()
        }
        Some(floor) => format!(
            "{} run twice differed by {} in {}. That is one pair of trials, not an interval.",
            floor.variant,
            floor.apart(),
            words::metric(&floor.metric),
        ),
    }
}

fn grades(trials: &[Trial]) -> Markup {
    let count = |grade| trials.iter().filter(|trial| trial.grade == grade).count();
    let all = [
        (Grade::A, "A", "quiet"),
        (Grade::B, "B", "small disturbances"),
        (Grade::C, "C", "disturbed"),
        (Grade::D, "D", "too noisy to conclude"),
    ];
    html! {
        @for (at, (grade, letter, word)) in all.into_iter().enumerate() {
            @if at > 0 { ", " }
            (count(grade)) " × " b { (letter) } " (" (word) ")"
        }
        "."
    }
}

fn loops(trials: &[Trial]) -> String {
    let closed = trials.iter().filter(|trial| trial.loop_kind == LoopKind::Closed).count();
    match closed {
        0 => "Open loop in every trial: the sender's socket never blocked.".into(),
        n => format!(
            "Closed loop in {n} of {} trials: the sender's socket blocked there and the path set the pace.",
            trials.len()
        ),
    }
}
