//! A run's result as text: a table of variants, where packets were lost, what limits each, what differs.

use std::collections::BTreeMap;

use rxpath_core::number::{grouped, percent, si};
use rxpath_record::agreement::median_trial;
use rxpath_record::doubts::COUNTED;
use rxpath_record::ledger::{Balances, Figure, PacketBounds, Place};
use rxpath_record::manifest::{Comparison, Manifest, VariantSummary};
use rxpath_record::metric;

use super::between::{self, place_words};
use super::host_lines;
use super::table::Grid;

/// The whole summary.
pub fn summary(manifest: &Manifest) -> String {
    let noisy = manifest.warnings.iter().filter(|warning| warning.code == COUNTED);
    let mut out = String::new();
    out.extend(noisy.map(|warning| format!("warning: {warning}\n")));
    let hosts = manifest.hosts.iter();
    out.extend(hosts.map(|(alias, part)| format!("{alias}: {}\n", part.text())));
    out += &host_lines::clocks(manifest);
    out += &host_lines::control(manifest);
    out += &format!("{}\n\n{}\n", manifest.headline, table(manifest).shown());
    for variant in &manifest.variants {
        if let Some(verdict) = &variant.verdict {
            out += &format!("{}: {}{}\n", variant.name, verdict.sentence, share(variant));
        }
    }
    for variant in &manifest.variants {
        out += &host_lines::of_variant(manifest, variant);
        out += &between::text(manifest, &variant.name);
        out += &pooled(variant).unwrap_or_default();
        out += &of_different_trials(manifest, variant).unwrap_or_default();
    }
    out += "\n";
    for comparison in &manifest.comparisons {
        out += &format!("{}\n", difference(comparison));
        if let Some(published) = &comparison.published {
            out += &format!("  published: {}\n", published.text(&comparison.metric));
        }
    }
    if let Some(noise) = &manifest.noise_floor {
        out += &format!("noise floor: {}\n", noise.text());
    }
    out + &accounted(manifest)
}

/// How many of a variant's trials have its verdict: ` (4 of 5 trials; 1: device ring)`.
pub fn share(variant: &VariantSummary) -> String {
    variant.agreement.as_ref().map_or_else(String::new, |trials| format!(" ({})", trials.text()))
}

/// The high quantiles of all trials together: `one: 11 trials together: service_time p99 284.9 us (240.1 to 310.2), ...`.
fn pooled(variant: &VariantSummary) -> Option<String> {
    let high: Vec<_> = variant.pooled_quantiles.iter().filter(|it| it.quantile >= 0.99).collect();
    let first = high.first()?;
    let each = high.iter().map(|it| {
        let interval = it.interval_us.map(|[low, high]| format!(" ({low:.1} to {high:.1})"));
        format!("p{} {:.1} us{}", it.quantile * 100.0, it.value_us, interval.unwrap_or_default())
    });
    let (trials, name) = (first.trials_count, &first.name);
    let all = each.collect::<Vec<_>>().join(", ");
    Some(format!("{}: {name} of {trials} trials together, 95 % interval: {all}\n", variant.name))
}

/// Medians may come from different trials, so more can be delivered than offered. Names the trial nearest to the
/// median.
fn of_different_trials(manifest: &Manifest, variant: &VariantSummary) -> Option<String> {
    if variant.median("delivered_pps")? <= variant.median("offered_pps")? {
        return None;
    }
    let trials = manifest.counted(&variant.name);
    let trial = median_trial(&trials, "delivered_pps")?;
    let (offered, delivered) =
        (*trial.metrics.get("offered_pps")?, *trial.metrics.get("delivered_pps")?);
    // The two sides' spans differ by an interval line at each end.
    if delivered > offered {
        return None;
    }
    Some(format!(
        "{}: offered and delivered are medians of different trials; trial {}, the one nearest to the median, offered {} \
         and delivered {} datagrams/s\n",
        variant.name,
        trial.number(),
        si(offered),
        si(delivered)
    ))
}

/// A column of the table next to the main metric: metric, heading, format of a value.
type Column = (&'static str, &'static str, fn(f64) -> String);

/// The columns next to a main metric.
fn columns(main: &str) -> &'static [Column] {
    match main {
        "delivered_pps" => &[
            ("offered_pps", "offered/s", si),
            ("loss_ratio", "lost, median", |it| percent(it, 2)),
            ("receiver_cpu_ns_per_packet", "ns/datagram (receiver)", fixed::<0>),
        ],
        "delivered_bps" => &[
            ("retransmitted_ratio", "sent again", |it| percent(it, 2)),
            ("receiver_cpu_ns_per_kib", "ns/KiB (receiver)", fixed::<0>),
            ("sender_cpu_ns_per_kib", "ns/KiB (sender)", fixed::<0>),
        ],
        "victim_got_ratio" => &[
            ("victim_taken_ratio", "taken", |it| percent(it, 2)),
            ("victim_taken_s_per_gbit", "taken s/Gb", fixed::<3>),
            ("victim_taken_s_per_mpacket", "s/million packets", fixed::<3>),
            ("network_cpu_s_per_gbit", "networking s/Gb, all CPUs", fixed::<3>),
            ("landed_on_victim_ratio", "packets landed there", |it| percent(it, 2)),
        ],
        "achieved_tps" => &[
            ("service_time_p50_us", "p50, us", fixed::<1>),
            ("service_time_p99_us", "p99, us", fixed::<1>),
            ("server_cpu_us_per_transaction", "CPU us/transaction (server)", fixed::<2>),
            ("errors_count", "errors", fixed::<0>),
        ],
        _ => &[
            ("service_time_p50_us", "p50, us", fixed::<1>),
            ("service_time_p99_us", "p99, us", fixed::<1>),
            ("server_cpu_us_per_request", "CPU us/request (server)", fixed::<2>),
            ("client_cpu_us_per_request", "(client)", fixed::<2>),
            ("errors_count", "errors", fixed::<0>),
        ],
    }
}

fn table(manifest: &Manifest) -> Grid {
    let main = manifest.main_metric.as_str();
    let columns = columns(main);
    let mut head = vec!["variant".to_owned(), "trials".into(), heading(main), "range".into()];
    head.extend(columns.iter().map(|(_, head, _)| (*head).to_owned()));
    let mut table = Grid::new(1, head).text(&[3]);
    for variant in &manifest.variants {
        let mut row = vec![variant.name.clone()];
        if let Some(why) = &variant.not_available {
            row.extend(["0".into(), "not available here".into(), why.clone()]);
            table.row(row);
            continue;
        }
        let main = variant.metrics.get(main);
        row.push(variant.trials_count.to_string());
        row.push(main.map(|m| si(m.median)).unwrap_or_default());
        row.push(main.map(|m| format!("{} to {}", si(m.min), si(m.max))).unwrap_or_default());
        row.extend(columns.iter().map(|(name, _, form)| {
            let text = match *name {
                "loss_ratio" => metric::loss_text(|name| variant.median(name), form),
                name => variant.median(name).map(form),
            };
            text.unwrap_or_default()
        }));
        table.row(row);
    }
    table
}

/// `delivered/s`, `requests/s`, `delivered b/s`.
fn heading(main: &str) -> String {
    match main {
        "delivered_pps" => "delivered/s".into(),
        "delivered_bps" => "delivered b/s".into(),
        "victim_got_ratio" => "victim got, of asked".into(),
        _ => metric::unit(main).into(),
    }
}

fn fixed<const DIGITS: usize>(value: f64) -> String {
    format!("{value:.DIGITS$}")
}

fn difference(comparison: &Comparison) -> String {
    let Comparison { variant, base, metric, .. } = comparison;
    let expected = match (&comparison.expected, comparison.met()) {
        (Some(expected), Some(met)) => format!("; expected {expected}: {}", met.word()),
        _ => String::new(),
    };
    format!("{variant} / {base}: {metric}: {}{expected}", comparison.finding())
}

/// Offered, delivered and lost of a variant, in one line. Where most trials lost nothing, the median is 0 and the total is not:
/// both say what they are.
pub fn rates(variant: &VariantSummary) -> String {
    let rate = |name: &str| si(variant.median(name).unwrap_or(0.0));
    let lost = metric::loss_text(|name| variant.median(name), |ratio| percent(ratio, 2));
    let medians = match variant.trials_count {
        1 => "1 trial".to_owned(),
        count => format!("medians of {count} trials"),
    };
    format!(
        "{} datagrams/s offered, {} delivered, {} of offered lost ({medians})",
        rate("offered_pps"),
        rate("delivered_pps"),
        lost.unwrap_or_else(|| percent(0.0, 2))
    )
}

/// Where the datagrams of a variant were lost, one line per place: in the trials that its medians are made of.
pub fn where_lost(manifest: &Manifest, variant: &str) -> String {
    let trials = manifest.counted(variant);
    let none = PacketBounds { least_packets: 0, most_packets: Some(0) };
    let mut places: BTreeMap<Place, (u64, PacketBounds, &str)> = BTreeMap::new();
    for drop in trials.iter().flat_map(|trial| &trial.ledger.drops) {
        let entry = places.entry(drop.place).or_insert((0, none, ""));
        *entry = (entry.0 + drop.packets, entry.1.plus(drop.range()), drop.counter.as_str());
    }
    let offered: u64 = trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    let together = between::together(manifest, variant);
    let unit = trials.first().map_or("datagrams", |trial| trial.ledger.unit.word());
    let line = |(place, (packets, bounds, counter)): (Place, (u64, PacketBounds, &str))| {
        let share = bounds.share_ratio(packets, offered);
        let share = share.map(|ratio| format!(", {} of all offered", percent(ratio, 2)));
        let (at, share) = (place_words(place), share.unwrap_or_default());
        let packets = bounds.around(packets, offered);
        format!("  lost at {at}: {packets} {unit}{share} {together} [{counter}]\n")
    };
    let may_have_lost =
        |(_, (_, bounds, _)): &(Place, (u64, PacketBounds, &str))| bounds.most_packets != Some(0);
    places.into_iter().filter(may_have_lost).map(line).collect()
}

/// The sum of all ledgers in one sentence: also those of trials that are in no median.
pub fn accounted(manifest: &Manifest) -> String {
    let offered: u64 = manifest.trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    let all = Balances::of(manifest.trials.iter().map(|trial| &trial.ledger));
    let unit = manifest.trials.first().map_or("datagrams", |trial| trial.ledger.unit.word());
    let mut words = manifest.trials.iter().map(|trial| trial.ledger.bound_word(Figure::Offered));
    let bound = words.find(|word| !word.is_empty()).unwrap_or_default();
    let trials = manifest.trials.len();
    let in_medians = manifest.in_medians(trials);
    let offered = grouped(offered);
    let mut text =
        format!("ledger: {bound}{offered} {unit} offered in {trials} trials{in_medians}");
    if all.unknown < all.ledgers || all.ledgers == 0 {
        text += &format!(", {} unaccounted", all.unaccounted());
    }
    if all.excess_packets > 0 {
        text += &format!(", {} more arrived than were sent", grouped(all.excess_packets));
    }
    if all.within > 0 {
        text += &format!("; in {} of them within the bounds of its counters", all.within);
    }
    if all.unknown > 0 {
        text += &format!("; not known for {}: one of their counts has only bounds", all.unknown);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rxpath_core::Warning;
    use rxpath_record::ledger::{Drop, Inexact, RemainderBounds};
    use rxpath_record::run::RunReader;

    use super::*;

    fn kept() -> Manifest {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs/recorded-demo");
        RunReader::open(&kept).unwrap().manifest
    }

    #[test]
    fn a_remainder_and_a_loss_with_bounds_say_so() {
        let mut manifest = kept();
        assert!(accounted(&manifest).contains(", 0 unaccounted"), "{}", accounted(&manifest));
        let variant = manifest.trials[2].variant.clone();
        let ledger = &mut manifest.trials[2].ledger;
        ledger.unaccounted_packets = None;
        ledger.unaccounted_bounds =
            Some(RemainderBounds { least_packets: 1_000, most_packets: 9_000 });
        ledger.drops = vec![Drop {
            place: Place::Network,
            counter: "tx - rx".into(),
            packets: 0,
            derived: true,
            exact: false,
            bounds: Some(PacketBounds { least_packets: 0, most_packets: Some(900_000) }),
            cross_checks: Vec::new(),
        }];
        assert!(accounted(&manifest).contains(", at least 1,000 unaccounted"));
        // What was read has bounds, what was offered is exact.
        manifest.trials[2].ledger.inexact = vec![Inexact {
            figure: Figure::Delivered,
            least_packets: 0,
            most_packets: None,
            why: "?".into(),
        }];
        let offered = manifest.trials.iter().map(|trial| trial.ledger.offered_packets).sum::<u64>();
        assert!(accounted(&manifest).starts_with(&format!("ledger: {} ", grouped(offered))));
        let text = where_lost(&manifest, &variant);
        let lost = "lost at network: up to 900,000 datagrams in ";
        assert!(text.contains(lost), "a share would be one number: {text}");
    }

    #[test]
    fn a_median_and_a_total_say_what_they_are() {
        let mut manifest = kept();
        assert!(accounted(&manifest).contains(" offered in 12 trials, 0 unaccounted"));
        // When this run was made, the A/A trials were in the medians.
        let of_old = where_lost(&manifest, &manifest.variants[0].name);
        let wanted = " in 5 trials together (the medians have 2 trials of A/A too) [";
        assert!(of_old.contains(wanted), "{of_old}");
        manifest.variants[0].trials_count = 5;
        let planted = &manifest.variants[0];
        let of_variant = rates(planted);
        assert!(of_variant.ends_with(" of offered lost (medians of 5 trials)"), "{of_variant}");
        let total = where_lost(&manifest, &planted.name);
        let wanted = ": 723,608 datagrams, 75.48 % of all offered in 5 trials together [";
        assert!(total.contains(wanted), "{total}");
        let all = accounted(&manifest);
        assert!(all.contains(" offered in 12 trials (10 of them in medians), 0 unacc"), "{all}");
        assert!(table(&manifest).fitted(None).contains("  lost, median  "));
        let salvaged = Manifest { variants: Vec::new(), ..manifest.clone() };
        assert!(accounted(&salvaged).contains(" offered in 12 trials, 0 unaccounted"));
        let alone = VariantSummary { trials_count: 1, ..planted.clone() };
        assert!(rates(&alone).ends_with(" of offered lost (1 trial)"));
    }

    #[test]
    fn disturbed_trials_are_told_before_anything_else() {
        let mut manifest = kept();
        assert!(!summary(&manifest).contains("warning:"));
        manifest.warnings.push(Warning::new(COUNTED, "this machine was busy"));
        assert!(summary(&manifest).starts_with("warning: this machine was busy"));
    }

    #[test]
    fn more_delivered_than_offered_is_explained_with_a_trial() {
        let mut manifest = kept();
        let variant = manifest.variants[0].clone();
        assert_eq!(of_different_trials(&manifest, &variant), None);
        if let Some(offered) = manifest.variants[0].metrics.get_mut("offered_pps") {
            offered.median = 1.0;
        }
        let told = of_different_trials(&manifest, &manifest.variants[0]).unwrap();
        assert!(told.contains("medians of different trials; trial "), "{told}");
    }
}
