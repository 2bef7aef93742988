//! The first section: each variant with its delivered rate, its gain and its limit.

use rxpath_record::manifest::{Comparison, Outcome, PooledQuantile, Trial, VariantSummary};
use rxpath_record::metric::{loss_text, verb};
use rxpath_record::verdict::{Agreement, DiagnosisVerdict, PairedTrial};

use crate::prelude::*;

/// The section, or nothing without variants.
pub(super) fn section(run: &Run) -> Option<Section> {
    let manifest = Some(&run.manifest).filter(|m| !m.variants.is_empty())?;
    Some(Section {
        id: "verdict",
        title: "Verdict",
        lead: "What the receiving application got, what each step changed, and which stage sets the limit.",
        body: html! {
            ol.steps { @for variant in &manifest.variants { (step(run, variant)) } }
        },
    })
}

/// The line under a rate of requests or bytes.
const BESIDE: [(&str, &str); 5] = [
    ("service_time_p50_us", "p50"),
    ("service_time_p99_us", "p99"),
    ("server_cpu_us_per_request", "server CPU per request"),
    ("server_cpu_us_per_transaction", "server CPU per transaction"),
    ("receiver_cpu_ns_per_kib", "receiver CPU per KiB"),
];

fn step(run: &Run, variant: &VariantSummary) -> Markup {
    let manifest = &run.manifest;
    let metric = |name: &str| variant.metrics.get(name);
    let main = manifest.main_metric.as_str();
    let most = manifest.variants.iter().filter_map(|v| v.median(main)).fold(0.0, f64::max);
    let loss = loss_text(|name| variant.median(name), |ratio| number::percent(ratio, 1.0));
    html! {
        li {
            div.name { h3 { (variant.name) } p { (variant.what) } }
            @match (metric(main), &variant.not_available) {
                (_, Some(why)) => p.absent { "not available here: " (why) },
                (None, None) => p.absent { "no valid trial" },
                (Some(delivered), None) => {
                    div.measure {
                        p.figure { (number::metric(main, delivered.median)) span { " " (verb(main)) } }
                        (bar(delivered.median, delivered.interval, most))
                        p.quiet {
                            (super::super::figures::interval_text(main, delivered.interval))
                            @if let Some(loss) = &loss {
                                " · median loss " (loss) " of offered"
                            }
                            @for (name, word) in BESIDE {
                                @if let Some(beside) = metric(name) {
                                    " · " (word) " " (number::metric(name, beside.median))
                                }
                            }
                        }
                    }
                    @for pooled in variant.pooled_quantiles.iter().filter(|it| it.quantile >= 0.99) {
                        p.quiet { (together(pooled)) }
                    }
                    div.gain {
                        @for comparison in manifest.comparisons.iter().filter(|c| c.variant == variant.name) {
                            (gain(comparison))
                        }
                    }
                }
            }
            @if let Some(verdict) = &variant.verdict {
                (limit(verdict, variant.agreement.as_ref(), run.typical_trial(&variant.name)))
            }
        }
    }
}

/// A quantile of all trials together: `service_time p99 of 11 trials together: 284.9 us (95 % interval 240.1 to 310.2)`.
fn together(of: &PooledQuantile) -> String {
    let interval = of
        .interval_us
        .map_or_else(String::new, |[low, high]| format!(" (95 % interval {low:.1} to {high:.1})"));
    let (name, percent, trials) = (&of.name, of.quantile * 100.0, of.trials_count);
    format!("{name} p{percent} of {trials} trials together: {:.1} us{interval}", of.value_us)
}

/// The median as a bar on the scale of the best variant, with its interval as a paler stretch.
fn bar(value: f64, interval: Option<[f64; 2]>, most: f64) -> Markup {
    let share = |v: f64| if most > 0.0 { (v / most * 100.0).clamp(0.0, 108.0) } else { 0.0 };
    let x = |v: f64| format!("{:.2}", share(v));
    html! {
        svg.bar viewBox="0 0 108 6" preserveAspectRatio="none" aria-hidden="true" {
            rect x="0" y="1" width=(x(value)) height="4" fill="var(--s0)" {}
            @if let Some([low, high]) = interval {
                rect x=(x(low)) y="0" width=(format!("{:.2}", (share(high) - share(low)).max(0.4))) height="6"
                    fill="var(--ink)" fill-opacity="0.45" {}
            }
        }
    }
}

fn gain(comparison: &Comparison) -> Markup {
    let class = match comparison.effect.outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Same | Outcome::Inconclusive => "even",
    };
    html! {
        p class=(class) {
            b { (comparison.effect.amount(&comparison.metric)) }
            " " (words::metric(&comparison.metric)) " of " (comparison.base)
            br;
            span.quiet {
                (comparison.effect.verdict("blocks")) ", " (comparison.effect.sureness(&comparison.metric))
            }
        }
    }
}

fn limit(
    verdict: &DiagnosisVerdict,
    agreement: Option<&Agreement>,
    trial: Option<&Trial>,
) -> Markup {
    html! {
        div.limit {
            p {
                span.stage { "limit: " (words::stage(verdict.stage, verdict.cpu)) }
                " " (verdict.sentence)
                @if let Some(agreement) = agreement {
                    span.quiet { " (" (agreement.text()) "; its evidence is that of trial " (agreement.trial + 1) ")" }
                } @else if let Some(trial) = trial {
                    // The figures above are medians over all trials.
                    span.quiet { " (trial " (trial.number()) ", the one nearest to the median)" }
                }
            }
            details {
                summary { "Why, and what to change (" (verdict.confidence.words()) ")" }
                @if !verdict.evidence.is_empty() {
                    ul.why {
                        @for line in &verdict.evidence { li { (line.text) " " code { (line.source) } } }
                    }
                }
                @if !verdict.remedies.is_empty() {
                    h4 { "What to change, most effective first" }
                    ol { @for remedy in &verdict.remedies { li { (remedy) } } }
                }
                @if !verdict.check_rules.is_empty() {
                    p { "Rules of rxpath check about it: " (verdict.check_rules.join(", ")) }
                }
                @if !verdict.next.is_empty() {
                    h4 { "What would limit next" }
                    ul { @for next in &verdict.next { li { (next) } } }
                }
                @if let Some(paired) = verdict.paired_trial {
                    p { (paired_trial(paired)) }
                }
            }
        }
    }
}

fn paired_trial(paired: PairedTrial) -> &'static str {
    match paired {
        PairedTrial::Rps => {
            "These readings alone do not decide: a paired trial with the receive softirq moved to another CPU by RPS would."
        }
        PairedTrial::NapiThread => {
            "These readings alone do not decide: a paired trial with the receive path in a NAPI thread would."
        }
    }
}
