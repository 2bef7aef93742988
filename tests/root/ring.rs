//! The sampled occupancy of a veth ring: low while NAPI runs, full while it starves, and never more than fits.
//!
//! A full ring holds 256 packets less those that NAPI took out since it gave entries back, 15 at most.

use rxpath_core::PathSide;
use rxpath_record::samples::TrialSamples;

use crate::bed::may_run;
use crate::experiment;

fn column(samples: &TrialSamples, metric: &str) -> Vec<u64> {
    let fits = samples
        .series
        .iter()
        .find(|s| s.side == PathSide::Rx && s.entity == "ring" && s.metric == metric);
    fits.unwrap().values.iter().flatten().copied().collect()
}

#[test]
fn a_starved_ring_fills_and_its_loss_is_the_devices() {
    if !may_run() {
        return;
    }
    let run = experiment::kept("ring", &[]);
    let samples = |variant: &str| run.samples.iter().find(|s| s.variant == variant).unwrap();
    let trial = |variant: &str| run.manifest.trials.iter().find(|t| t.variant == variant).unwrap();
    for variant in ["fed", "starved"] {
        assert_eq!(trial(variant).ledger.unaccounted_packets, Some(0));
        let (packets, fits) = (
            column(samples(variant), "occupancy_packets"),
            column(samples(variant), "capacity_packets"),
        );
        assert_eq!(packets.len(), fits.len());
        // A poll counts at its end, 64 packets at most, and some pass between the three readings.
        let counter = |metric| column(samples(variant), metric);
        let (handed, refused) = (counter("handed_packets"), counter("refused_packets"));
        let inside: Vec<u64> = handed
            .iter()
            .zip(&refused)
            .zip(&counter("polled_packets"))
            .map(|((handed, refused), polled)| handed.saturating_sub(refused + polled))
            .collect();
        assert_eq!(packets, inside, "{variant}");
        let lost = refused.last().unwrap() - refused.first().unwrap();
        // Other tests may keep the CPU from the one that is fed.
        assert!(lost > 0 || variant == "fed", "{variant}: {lost}");
        let most = *packets.iter().max().unwrap();
        assert!(most <= fits[0] + 64 + 64, "{variant}: {most}");
    }
    let starved = column(samples("starved"), "occupancy_packets");
    assert!(starved.iter().any(|packets| *packets >= 256 - 15), "{starved:?}");
}
