//! The hosts of a run as a picture: senders left, receivers right, the network between them.

use std::collections::BTreeMap;

use rxpath_core::{IntoMap, PathSide};
use rxpath_record::hosts::{PairPackets, PairRate};
use rxpath_record::manifest::{HostPart, Manifest, VariantSummary};
use rxpath_record::metric::loss_text;

use crate::plot::px;
use crate::prelude::*;

/// Width of the picture on a wide page, in CSS pixels.
const WIDE: f64 = 760.0;
/// On a narrow page.
const NARROW: f64 = 350.0;
/// Height of a host with the space around it.
const ROW: f64 = 66.0;
/// Height of a host.
const BOX: f64 = 56.0;
/// Width of a letter, about.
const LETTER: f64 = 6.0;
/// Hosts of a side that are drawn.
const MOST: usize = 16;

/// A host as it is drawn.
struct Node {
    name: String,
    card: String,
    load: String,
}

/// A picture for each variant that was run; nothing without a valid trial.
pub(super) fn figure(run: &Run) -> Markup {
    let shown = run.shown();
    let are_chosen = run.manifest.hosts.values().any(|part| !part.sends_to.is_empty());
    html! {
        @if !shown.is_empty() {
            figure {
                figcaption {
                    h3 { "Who sends to whom" }
                    p {
                        "Senders left, receivers right. Rates are medians over the trials of a variant, divided by what \
                         each host sent or was sent; losses are shares of offered."
                        @if are_chosen { " Lines through the network are the pairs that the inventory chose." }
                    }
                }
                div.panels {
                    @for (variant, _) in &shown {
                        div.panel {
                            @if shown.len() > 1 { h4 { (variant.name) } }
                            div.wide { (picture(&run.manifest, variant, WIDE)) }
                            div.narrow { (picture(&run.manifest, variant, NARROW)) }
                        }
                    }
                }
            }
        }
    }
}

fn picture(manifest: &Manifest, variant: &VariantSummary, width: f64) -> Markup {
    let loads = loads(manifest, variant);
    let [senders, receivers] =
        [PathSide::Tx, PathSide::Rx].map(|side| nodes(manifest, side, &loads));
    let height = ROW * senders.len().max(receivers.len()) as f64;
    let (boxed, middle) = (width * 0.37, width * 0.14);
    let network = [(width - middle) / 2.0, f64::midpoint(width, middle)];
    let names =
        |nodes: &[Node]| nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
    let alt = format!("{}: {} to {}", variant.name, names(&senders), names(&receivers));
    let sides = [
        (&senders, 0.0, [boxed, network[0]]),
        (&receivers, width - boxed, [network[1], width - boxed]),
    ];
    let middles = |nodes: &[Node]| -> Vec<f64> {
        let row = height / nodes.len().max(1) as f64;
        (0..nodes.len()).map(|at| row * (at as f64 + 0.5)).collect()
    };
    let crossings = crossings(manifest, [middles(&senders), middles(&receivers)]);
    html! {
        svg class="plot" role="img" viewBox=(format!("0 0 {width} {height}")) style=(format!("max-width:{width}px"))
            font-size="11" {
            title { (alt) }
            @for (nodes, x, wire) in &sides {
                @for (at, node) in nodes.iter().enumerate() {
                    (host(node, (*x, boxed), height * (at as f64 + 0.5) / nodes.len() as f64, *wire))
                }
            }
            rect x=(px(network[0])) y="5" width=(px(middle)) height=(px(height - 10.0)) rx="3"
                fill="var(--window)" stroke="var(--axis)" {}
            @for [from, to] in &crossings {
                line x1=(px(network[0])) y1=(px(*from)) x2=(px(network[1])) y2=(px(*to)) stroke="var(--water)" {}
            }
            text x=(px(width / 2.0)) y=(px(height / 2.0 + 4.0)) text-anchor="middle" { (hops(manifest)) }
        }
    }
}

/// From which height to which each chosen pair crosses the network; nothing where each sender sends to each receiver. Hosts
/// that are not drawn stand together in the last place of their side.
fn crossings(manifest: &Manifest, [senders, receivers]: [Vec<f64>; 2]) -> Vec<[f64; 2]> {
    let of = |side: PathSide, at: &Vec<f64>| -> Vec<(&String, &HostPart, f64)> {
        let hosts = manifest.hosts.iter().filter(|(_, part)| part.side == side);
        let last = at.last().copied().unwrap_or_default();
        let places = at.iter().copied().chain(std::iter::repeat(last));
        hosts.zip(places).map(|((alias, part), y)| (alias, part, y)).collect()
    };
    let (senders, receivers) = (of(PathSide::Tx, &senders), of(PathSide::Rx, &receivers));
    let mut all = Vec::new();
    for (_, sender, from) in senders.iter().filter(|(_, part, _)| !part.sends_to.is_empty()) {
        let own = receivers.iter().filter(|(alias, ..)| sender.is_paired_with(alias));
        all.extend(own.map(|(_, _, to)| [*from, *to]));
    }
    all
}

/// A host's box and its wire to the network.
fn host(node: &Node, (x, width): (f64, f64), y: f64, [from, to]: [f64; 2]) -> Markup {
    let letters = ((width - 16.0) / LETTER) as usize;
    let lines = [(&node.name, -11.0, "ink"), (&node.card, 4.0, "muted"), (&node.load, 19.0, "ink")];
    html! {
        line x1=(px(from)) y1=(px(y)) x2=(px(to)) y2=(px(y)) stroke="var(--water)" stroke-width="3" {}
        rect x=(px(x)) y=(px(y - BOX / 2.0)) width=(px(width)) height=(px(BOX)) rx="3"
            fill="var(--raised)" stroke="var(--axis)" {}
        @for (text, below, colour) in &lines {
            text x=(px(x + 8.0)) y=(px(y + below)) style=(format!("fill:var(--{colour})")) { (cut(text, letters)) }
        }
    }
}

/// How many hops lie between the sides.
fn hops(manifest: &Manifest) -> String {
    match manifest.hosts.values().find_map(|part| part.hops_at_most) {
        Some(1) => "1 hop".into(),
        Some(most) => format!("≤ {most} hops"),
        None => "network".into(),
    }
}

fn nodes(manifest: &Manifest, side: PathSide, loads: &BTreeMap<&str, String>) -> Vec<Node> {
    let of_side = manifest.hosts.iter().filter(|(_, part)| part.side == side);
    let node = |(alias, part): (&String, &HostPart)| Node {
        name: alias.clone(),
        card: joined([part.device.clone(), part.driver.clone(), part.speed()]),
        load: loads.get(alias.as_str()).cloned().unwrap_or_default(),
    };
    let mut all: Vec<Node> = of_side.map(node).collect();
    let more = all.len().saturating_sub(MOST);
    if more > 0 {
        all.truncate(MOST);
        let name = format!("… and {more} more");
        all.push(Node { name, card: String::new(), load: String::new() });
    }
    all
}

/// What each host sent, or what was sent to it, with its losses.
fn loads<'a>(manifest: &'a Manifest, variant: &VariantSummary) -> BTreeMap<&'a str, String> {
    let pairs = manifest.pairs(&variant.name);
    let rates = manifest.pair_rates(&variant.name);
    let load = |alias: &str, side: PathSide| {
        let is_its = |sender: &str, receiver: &str| {
            if side == PathSide::Tx { sender == alias } else { receiver == alias }
        };
        if !pairs.is_empty() {
            let its = |pair: &&PairPackets| is_its(&pair.sender, &pair.receiver);
            let all: u64 = pairs.iter().map(|pair| pair.offered_packets).sum();
            of_datagrams(pairs.iter().filter(its), all, variant)
        } else if let Some(first) = rates.first() {
            let its = |pair: &&PairRate| is_its(&pair.sender, &pair.receiver);
            let rate: f64 = rates.iter().filter(its).map(|pair| pair.value).sum();
            number::metric(&first.metric, rate)
        } else {
            of_the_only_one(variant, &manifest.main_metric, side)
        }
    };
    manifest.hosts.iter().map(|(alias, part)| (alias.as_str(), load(alias, part.side))).into_map()
}

/// Of some of the pairs, which offered `all` datagrams together.
fn of_datagrams<'a>(
    pairs: impl Iterator<Item = &'a PairPackets>,
    all: u64,
    variant: &VariantSummary,
) -> String {
    let none = PairPackets { delivered_packets: Some(0), ..PairPackets::default() };
    let sum = pairs.fold(none, |sum, pair| PairPackets {
        offered_packets: sum.offered_packets + pair.offered_packets,
        delivered_packets: sum.delivered_packets.zip(pair.delivered_packets).map(|(a, b)| a + b),
        ..sum
    });
    let share = sum.offered_packets as f64 / all.max(1) as f64;
    let rate = variant.median("offered_pps").map(|median| median * share);
    let rate = rate.map(|rate| format!("{} offered", number::metric("offered_pps", rate)));
    let lost = sum.lost_ratio().map(|lost| format!("{} lost", number::percent(lost, 1.0)));
    joined([rate.unwrap_or_default(), lost.unwrap_or_default()])
}

/// Of the only sender or the only receiver.
fn of_the_only_one(variant: &VariantSummary, main: &str, side: PathSide) -> String {
    let metric = |name: &str| variant.median(name).map(|value| number::metric(name, value));
    let offered = metric("offered_pps").filter(|_| side == PathSide::Tx);
    if let Some(rate) = offered {
        return format!("{rate} offered");
    }
    let shown = |ratio| number::metric("loss_ratio", ratio);
    let lost = loss_text(|name| variant.median(name), shown);
    let lost = lost.filter(|_| side == PathSide::Rx).map(|lost| format!("{lost} lost"));
    joined([metric(main).unwrap_or_default(), lost.unwrap_or_default()])
}

fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_pairs_cross_the_network_and_all_pairs_do_not() {
        let sender =
            |to: &str| HostPart { sends_to: vec![to.into()], ..HostPart::of(PathSide::Tx) };
        let hosts = [
            ("gen1".to_owned(), sender("sut2")),
            ("gen2".to_owned(), sender("sut")),
            ("sut".to_owned(), HostPart::of(PathSide::Rx)),
            ("sut2".to_owned(), HostPart::of(PathSide::Rx)),
        ];
        let mut manifest = Manifest { hosts: hosts.into(), ..Manifest::default() };
        let drawn = |manifest: &Manifest, receivers: &[f64]| {
            crossings(manifest, [vec![1.0, 2.0], receivers.to_vec()])
        };
        assert_eq!(drawn(&manifest, &[3.0, 4.0]), vec![[1.0, 4.0], [2.0, 3.0]]);
        assert_eq!(drawn(&manifest, &[3.0]), vec![[1.0, 3.0], [2.0, 3.0]], "drawn together");
        manifest.hosts.values_mut().for_each(|part| part.sends_to.clear());
        assert!(drawn(&manifest, &[3.0, 4.0]).is_empty());
    }
}
