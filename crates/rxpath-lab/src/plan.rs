//! The order of trials: randomised complete blocks, the same for the same seed.
//!
//! Block 0 is A/A: the first variant that can run here, twice. It gives the noise floor. Blocks from 1 on
//! hold every variant that can run here once. As many blocks as there are variants are a Latin square whose rows and
//! variants are shuffled: each variant stands once in each place, so what the place does to a trial cancels. Each
//! square comes from the seed and its number alone, so that adding blocks never changes those already run.

pub mod on_hosts;

use std::time::Duration;

use chacha20::ChaCha8Rng;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rxpath_core::Nanos;
use rxpath_core::number::counted;
use schemars::JsonSchema;
use serde::Serialize;

use rxpath_stats::looks::{FIRST, MOST};
use rxpath_stats::planning;

use crate::hosts::planned::PlannedHost;
use crate::run::pairs;
use crate::scenario::spec::{Resolved, Search, Trials, Variant};
use crate::trial::start::command_line;

/// Time a trial takes in addition to its load: starting and draining both programs and reading counters.
/// **Unit** ns. An estimate; the plan is a forecast, the run keeps to `time_limit`.
const AROUND: Nanos = Nanos::from_millis(600);

/// Trials that replace void ones, at most, for each planned trial.
pub(crate) const REPLACEMENTS: u32 = 3;

/// Share of the settle limit that is expected to be used: rates in a lab settle soon.
const SETTLE_SHARE: u64 = 5;

/// Lines of a ruleset that a plan shows; `--json` has them all.
const SHOWN: usize = 6;

/// What a run will do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunPlan {
    /// Trials of the blocks that are run in any case, in order.
    pub trials: Vec<PlannedTrial>,
    /// Trials if all blocks are run and every verdict needs its pairs of trials: blocks are added until the comparisons are decided.
    /// Repeats of void trials are not counted. 0 for a search.
    pub trials_at_most: u64,
    /// Length of these trials when rates settle as soon as they usually do.
    pub expected: Nanos,
    /// Length with all of them, all repeats and the longest settling, or the time limit.
    pub at_most: Nanos,
    /// What is done on each real host; nothing in the lab.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<PlannedHost>,
}

/// One trial to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedTrial {
    /// Index in the order of running, from 0.
    pub trial: u32,
    /// Block; 0 is A/A.
    pub block: u32,
    /// Variant name.
    pub variant: String,
}

/// Indexes into `resolved.variants` in the order in which a block runs them.
///
/// Block 0 is empty when A/A is off. Empty too when no variant can run here.
pub fn block_order(resolved: &Resolved, block: u32) -> Vec<usize> {
    let variants = resolved.variants.iter().enumerate();
    let here = variants.filter(|(_, it)| it.not_available.is_none()).map(|(index, _)| index);
    if block == 0 {
        let first: Vec<usize> = here.take(usize::from(resolved.trials.aa)).collect();
        return first.repeat(2);
    }
    let mut order: Vec<usize> = here.collect();
    let count = order.len();
    if count == 0 {
        return order;
    }
    let (square, row) = ((block as usize - 1) / count, (block as usize - 1) % count);
    let mut random = ChaCha8Rng::seed_from_u64(resolved.trials.seed);
    random.set_stream(square as u64 + 1);
    order.shuffle(&mut random);
    let mut shifts: Vec<usize> = (0..count).collect();
    shifts.shuffle(&mut random);
    order.rotate_left(shifts[row]);
    order
}

/// The plan of a run on this machine.
pub fn plan(resolved: &Resolved) -> RunPlan {
    plan_between(resolved, None)
}

/// The plan of a run on this machine, or between hosts, where each trial waits so long for counters that lag.
pub fn plan_between(resolved: &Resolved, rests: Option<Duration>) -> RunPlan {
    if let Some(search) = &resolved.search {
        // Each trial depends on those before.
        let (trials, hosts) = (Vec::new(), Vec::new());
        let (expected, at_most) = (search.budget, search.budget);
        return RunPlan { trials, trials_at_most: 0, expected, at_most, hosts };
    }
    let mut trials = Vec::new();
    for block in 0..=resolved.trials.blocks {
        for index in block_order(resolved, block) {
            let variant = resolved.variants.get(index).map_or("", |variant| &variant.name);
            let trial = trials.len() as u32;
            trials.push(PlannedTrial { trial, block, variant: variant.into() });
        }
    }
    let times = &resolved.trials;
    let rests_ns = rests.unwrap_or_default().as_nanos() as u64;
    let without_settling = times.ramp.0 + times.measure.0 + AROUND.0 + rests_ns;
    let count = trials.len() as u64;
    let expected = count * (without_settling + times.settle.0 / SETTLE_SHARE);
    let per_block = block_order(resolved, 1).len() as u64;
    // Without a comparison nothing is left to decide.
    let most = if resolved.compare.is_empty() { times.blocks } else { times.max_blocks };
    let in_blocks = count + u64::from(most.saturating_sub(times.blocks)) * per_block;
    let in_pairs = pairs::most(resolved, rests.is_some());
    let trials_at_most = in_blocks + in_pairs;
    let with_repeats = in_blocks * u64::from(1 + REPLACEMENTS) + in_pairs;
    // The limit ends a run after the trial or the pair in progress.
    let longest = without_settling + times.settle.0;
    let last = if in_pairs > 0 { 2 } else { 1 };
    let at_most = Nanos((with_repeats * longest).min(times.time_limit.0 + last * longest));
    RunPlan { trials, trials_at_most, expected: Nanos(expected), at_most, hosts: Vec::new() }
}

impl RunPlan {
    /// The whole plan for people: what is asked, what each variant is, the order, how long it takes.
    pub fn to_text(&self, resolved: &Resolved) -> String {
        let mut out = vec![format!("{}: {}", resolved.name, resolved.question)];
        out.extend(resolved.expected.iter().map(|expected| format!("expected: {expected}")));
        out.extend(resolved.warnings.iter().map(|warning| format!("warning: {warning}")));
        for variant in &resolved.variants {
            out.push(String::new());
            out.extend(describe(variant));
        }
        out.push(String::new());
        if let Some(search) = &resolved.search {
            out.extend(searched(search, resolved));
            return out.join("\n") + "\n";
        }
        out.extend(self.blocks());
        out.push(String::new());
        for pair in &resolved.compare {
            let expected = pair.expected.as_ref().map(|way| format!(", expected {way}"));
            let expected = expected.unwrap_or_default();
            out.push(format!(
                "compare {}: {} / {}{expected}",
                pair.metric, pair.variant, pair.base
            ));
        }
        let times = &resolved.trials;
        out.push(format!(
            "trial: ramp {}, settle up to {}, measure {}; blocks are added until every difference is decided{}, \
             or hopeless, or there are {}",
            times.ramp,
            times.settle,
            times.measure,
            times.precision_ratio.map_or_else(String::new, |precision| {
                format!(" and known to +- {} %", precision * 100.0)
            }),
            times.max_blocks
        ));
        out.push(power(times));
        out.push(format!(
            "{} (time limit {}), seed {}",
            self.length(),
            times.time_limit,
            times.seed
        ));
        out.join("\n") + "\n"
    }

    /// How many trials it has and how long they take: `at least 8 trials, about 44.8s; at most 74 trials without repeats, 915s`; of
    /// a search, by what it is limited.
    pub fn length(&self) -> String {
        let (least, most) = (self.trials.len() as u64, self.trials_at_most);
        let (trials, expected, at_most) = (counted(least, "trial"), self.expected, self.at_most);
        if most == 0 {
            format!("trials until the search is over, limited by {at_most}")
        } else if most > least {
            format!(
                "at least {trials}, about {expected}; at most {most} trials without repeats, {at_most}"
            )
        } else {
            format!("{trials}, about {expected}, at most {at_most}")
        }
    }

    /// One line per block.
    fn blocks(&self) -> Vec<String> {
        let line = |trials: &[PlannedTrial]| {
            let names: Vec<&str> = trials.iter().map(|trial| trial.variant.as_str()).collect();
            let block = trials[0].block;
            let note = if block == 0 { " (A/A)" } else { "" };
            format!("block {block}{note}: {}", names.join(", "))
        };
        self.trials.chunk_by(|one, next| one.block == next.block).map(line).collect()
    }
}

/// What a search starts from, tries and keeps to.
fn searched(search: &Search, resolved: &Resolved) -> Vec<String> {
    let first = resolved.available().next();
    let first = first.map_or("", |variant| variant.name.as_str());
    let main = resolved.variants.first().map_or("", |variant| variant.main_metric());
    let goal = search.objective.as_deref().unwrap_or(main);
    let start = search.variant.as_deref().unwrap_or(first);
    let mut all = vec![format!("search from variant {start}: {goal}, within {}", search.budget)];
    all.extend(search.guards.iter().map(|guard| format!("  guard {guard}")));
    for axis in &search.axes {
        let values: Vec<String> = axis.values.iter().map(|sets| sets.join(" and ")).collect();
        all.push(format!("  try {}", values.join(" or ")));
    }
    all
}

/// What the planned number of blocks can show, by the noise of trials.
fn power(times: &Trials) -> String {
    let blocks = times.max_blocks.max(times.blocks).clamp(FIRST as u32, MOST as u32) as usize;
    let shown = [0.01, 0.02, 0.05, 0.1].map(|noise: f64| {
        let effect = planning::smallest_effect(noise * 2.0_f64.sqrt(), blocks, 1).exp_m1();
        format!(
            "{:.0} % with trials that scatter by {:.0} %",
            (effect * 100.0).ceil(),
            noise * 100.0
        )
    });
    if times.max_blocks.max(times.blocks) < FIRST as u32 {
        return format!("fewer than {FIRST} blocks: differences are shown only if they are large");
    }
    format!("{blocks} blocks probably show a difference of {}", shown.join(", "))
}

fn describe(variant: &Variant) -> Vec<String> {
    let mut lines = vec![format!("variant {}: {}", variant.name, variant.what)];
    if let Some(why) = &variant.not_available {
        lines.push(format!("  not available here: {why}"));
        return lines;
    }
    for (key, value) in &variant.settings {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let parts: Vec<&str> = value.trim().lines().collect();
        lines.push(format!("  {key} = {}", parts.first().copied().unwrap_or_default()));
        lines.extend(parts.iter().skip(1).take(SHOWN).map(|part| format!("      {part}")));
        if parts.len() > SHOWN + 1 {
            lines.push(format!("      ({} more lines)", parts.len() - SHOWN - 1));
        }
    }
    lines.push(format!("  $ {}", command_line(&variant.serve)));
    lines.push(format!("  $ {}", command_line(&variant.load)));
    let observers = variant.observe.observers().into_iter();
    let observers: Vec<_> = observers.filter_map(|(_, key)| key.strip_prefix("observe.")).collect();
    if !observers.is_empty() {
        lines.push(format!("  observed by BPF programs: {}", observers.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, load, resolve};

    fn resolved(name: &str, sets: &[&str]) -> Resolved {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        resolve(&load(name).unwrap(), &sets, &HostShape::flat(2)).unwrap()
    }

    #[test]
    fn every_block_is_complete_and_the_same_for_the_same_seed() {
        let scenario = resolved("udp-placement", &[]);
        let mut orders = std::collections::BTreeSet::new();
        for block in 1..40 {
            let order = block_order(&scenario, block);
            assert_eq!(order, block_order(&scenario, block));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1], "the three placements this host lacks are left out");
            orders.insert(order);
        }
        assert_eq!(orders.len(), 2, "both orders come up");
    }

    #[test]
    fn each_variant_stands_once_in_each_place_of_a_square() {
        let scenario = resolved("million-pps", &[]);
        let count = block_order(&scenario, 1).len();
        assert!(count > 2, "{count}");
        for square in 0..5 {
            let blocks =
                (1..=count).map(|row| block_order(&scenario, (square * count + row) as u32));
            let blocks: Vec<Vec<usize>> = blocks.collect();
            for place in 0..count {
                let mut column: Vec<usize> = blocks.iter().map(|block| block[place]).collect();
                column.sort_unstable();
                column.dedup();
                assert_eq!(column.len(), count, "square {square}, place {place}: {blocks:?}");
            }
        }
    }

    #[test]
    fn who_looks_is_part_of_the_plan() {
        let looked_at = resolved("udp-pinning", &["observe.drops=true", "observe.trace=true"]);
        let text = plan(&looked_at).to_text(&looked_at);
        assert!(text.contains("  observed by BPF programs: drops, trace\n"), "{text}");
        let plain = resolved("udp-pinning", &[]);
        assert!(!plan(&plain).to_text(&plain).contains("observed by"));
    }

    #[test]
    fn another_seed_is_another_order() {
        let order = |seed: &str| {
            let scenario = resolved("million-pps", &[seed]);
            (1..9).map(|block| block_order(&scenario, block)).collect::<Vec<_>>()
        };
        assert_ne!(order("trials.seed=1"), order("trials.seed=2"));
    }

    #[test]
    fn block_zero_is_the_first_available_variant_twice() {
        assert_eq!(block_order(&resolved("udp-placement", &[]), 0), [0, 0]);
        assert_eq!(block_order(&resolved("udp-placement", &["trials.aa=false"]), 0), [0usize; 0]);
        let mut scenario = resolved("udp-placement", &[]);
        scenario.variants[0].not_available = Some("gone".into());
        assert_eq!(block_order(&scenario, 0), [1, 1]);
    }

    #[test]
    fn the_time_limit_bounds_the_forecast() {
        let scenario = resolved("demo", &[]);
        let made = plan(&scenario);
        assert_eq!(made.trials.len(), 2 + 5 * 2);
        assert!(made.expected < scenario.trials.time_limit, "{}", made.expected);
        assert!(
            made.at_most.as_secs_f64() < 60.0,
            "the tutorial ends within a minute: {}",
            made.at_most
        );
    }

    #[test]
    fn a_plan_says_that_blocks_are_added_where_there_is_something_to_decide() {
        let open = plan(&resolved("demo", &["trials.blocks=2", "trials.max_blocks=20"]));
        let pairs = 2 * 3 * 2;
        assert_eq!(open.trials_at_most, 2 + 20 * 2 + pairs);
        assert!(open.length().starts_with("at least 6 trials, about "), "{}", open.length());
        assert!(
            open.length().contains("; at most 54 trials without repeats, "),
            "{}",
            open.length()
        );
        let two = ["trials.blocks=2", "trials.max_blocks=2", "trials.paired=false"];
        let (both, fixed) = (plan(&resolved("demo", &two[..2])), plan(&resolved("demo", &two)));
        assert_eq!((both.trials_at_most, fixed.trials_at_most), (6 + pairs, 6));
        assert!(fixed.length().starts_with("6 trials, about "), "{}", fixed.length());
        // Hosts have no pairs.
        let between = plan_between(&resolved("demo", &two[..2]), Some(Duration::ZERO));
        assert_eq!(between.trials_at_most, 6);
        let mut alone = resolved("demo", &["trials.blocks=2", "trials.max_blocks=20"]);
        alone.compare.clear();
        assert_eq!(plan(&alone).trials_at_most, 6 + pairs);
    }

    #[test]
    fn the_longest_time_has_every_repeat_and_the_pair_in_progress() {
        let sets = ["trials.blocks=1", "trials.max_blocks=1", "trials.aa=false"];
        let of = |more: &[&str]| plan(&resolved("demo", &[&sets[..], more].concat()));
        let alone = of(&["trials.paired=false", "trials.time_limit=60min"]);
        // Ramp, settling, measuring, and what a trial takes around them.
        let longest = Nanos::from_millis(300 + 1_000 + 1_000).0 + AROUND.0;
        assert_eq!(alone.at_most.0, 2 * u64::from(1 + REPLACEMENTS) * longest);
        let paired = of(&["trials.time_limit=60min"]);
        assert_eq!(paired.at_most.0, alone.at_most.0 + 12 * longest);
        let short = of(&["trials.time_limit=10s"]);
        assert_eq!(short.at_most.0, 10_000_000_000 + 2 * longest);
    }

    #[test]
    fn the_length_of_a_search_is_what_limits_it() {
        let none =
            RunPlan { trials: Vec::new(), trials_at_most: 0, ..plan(&resolved("demo", &[])) };
        let plan = RunPlan { at_most: Nanos::from_secs(600), ..none };
        assert_eq!(
            plan.length(),
            format!("trials until the search is over, limited by {}", plan.at_most)
        );
    }

    #[test]
    fn counters_that_lag_are_in_the_forecast() {
        let scenario = resolved("demo", &["trials.time_limit=60min"]);
        let (plain, rests) = (plan(&scenario), Duration::from_secs(60));
        let slow = plan_between(&scenario, Some(rests));
        let more = rests.as_nanos() as u64 * plain.trials.len() as u64;
        assert_eq!(slow.expected.0, plain.expected.0 + more);
        assert!(slow.at_most.0 >= plain.at_most.0 + more, "{}", slow.at_most);
    }

    #[test]
    fn the_plan_is_printed_whole() {
        let scenario = resolved("udp-placement", &["trials.blocks=2"]);
        insta::assert_snapshot!(plan(&scenario).to_text(&scenario));
    }
}
