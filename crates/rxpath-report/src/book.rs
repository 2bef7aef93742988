//! A book of several experiments: what others have published next to what was measured, in one table.

use rxpath_record::axes::Axes;
use rxpath_record::comparison::NoiseFloor;
use rxpath_record::ledger::Balances;

use crate::figures;
use crate::markdown;
use crate::page::part;
use crate::page::{frame, section};
use crate::prelude::*;

/// One experiment of a book.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Name of the experiment.
    pub experiment: String,
    /// The question that it answers.
    pub question: String,
    /// The axes of its figure.
    pub axes: Axes,
    /// Its run, if it ran.
    pub run: Option<Run>,
    /// The run's report, relative to the book.
    pub report: Option<String>,
    /// Why it did not run, or not to its end.
    pub problem: Option<String>,
}

/// The book as one HTML file without external parts.
pub fn book(chapters: &[Chapter]) -> String {
    let body = html! {
        header { (masthead(chapters)) }
        main {
            (section("compared", "Published and measured", LEAD, &part::table(&compared(chapters), "comparisons")))
            (section("experiments", "Experiments", "Every experiment, its answer and its report.", &experiments(chapters)))
        }
        footer { p { "Made by " code { "rxpath reproduce" } ". It loads nothing and runs no script." } }
    };
    frame("Published experiments, reproduced", &body)
}

const LEAD: &str = "The figures of others are of their machines: the shape to compare with. The measured ones are of this \
                    host, with 95 % intervals.";

/// The same as Markdown.
pub fn book_markdown(chapters: &[Chapter]) -> String {
    let mut out = format!("# Published experiments, reproduced\n\n{LEAD}\n\n");
    out += &markdown::table(&compared(chapters));
    out.push('\n');
    let rows = chapters.iter().map(|chapter| {
        let run = chapter.report.clone().unwrap_or_else(|| "–".into());
        vec![chapter.experiment.clone(), answer(chapter), ledger(chapter), noise(chapter), run]
    });
    out + &markdown::table(&Table::of("experiment | answer | ledger | noise floor | run", rows))
}

/// Every comparison of the experiments that ran.
fn compared(chapters: &[Chapter]) -> Table {
    let mut table = Table::new(
        "experiment | metric | variant | base | published by others | measured here | 95 % interval | outcome | expected",
    );
    for chapter in chapters {
        for row in chapter.run.iter().flat_map(|run| &run.manifest.comparisons) {
            let [interval, _] = row.effect.spans(&row.metric);
            table.rows.push(vec![
                chapter.experiment.clone(),
                words::metric(&row.metric),
                row.variant.clone(),
                row.base.clone(),
                row.published.as_ref().map_or("–".into(), |it| it.text(&row.metric)),
                row.effect.amount(&row.metric),
                interval.unwrap_or_else(|| "none".into()),
                row.effect.verdict("blocks"),
                words::expected(row),
            ]);
        }
    }
    table
}

/// The answer of an experiment, or why there is none.
fn answer(chapter: &Chapter) -> String {
    let headline = chapter.run.as_ref().map(|run| run.manifest.headline.clone());
    match (&chapter.problem, headline.filter(|text| !text.is_empty())) {
        (Some(problem), Some(headline)) => format!("{headline} ({problem})"),
        (Some(problem), None) => format!("not available here: {problem}"),
        (None, headline) => headline.unwrap_or_else(|| "no answer".into()),
    }
}

fn ledger(chapter: &Chapter) -> String {
    let Some(run) = &chapter.run else { return "–".into() };
    let all = Balances::of(run.manifest.trials.iter().map(|trial| &trial.ledger));
    format!("{} {} unaccounted", all.unaccounted(), run.unit())
}

fn noise(chapter: &Chapter) -> String {
    let floor = chapter.run.as_ref().and_then(|run| run.manifest.noise_floor.as_ref());
    floor.map_or_else(|| "–".into(), NoiseFloor::text)
}

fn experiments(chapters: &[Chapter]) -> Markup {
    html! {
        @for chapter in chapters {
            h3 { (chapter.experiment) }
            p { (chapter.question) }
            p { (answer(chapter)) }
            @if let Some(run) = &chapter.run {
                @for variant in &run.manifest.variants {
                    @if let Some(verdict) = &variant.verdict {
                        p.meta { (variant.name) ": " (verdict.sentence) }
                    }
                }
                p.meta { (ledger(chapter)) "; " (noise(chapter)) }
                @if let Some(figure) = figures::of_book(run, chapter.axes, &chapter.experiment) {
                    (part::figure(&figure))
                }
            }
            @if let Some(report) = &chapter.report { p { a href=(report) { "the whole report" } } }
        }
    }
}

fn masthead(chapters: &[Chapter]) -> Markup {
    let first = chapters.iter().find_map(|chapter| chapter.run.as_ref());
    html! {
        p.eyebrow { "rxpath reproduce" }
        h1 { "Published experiments, reproduced" }
        @if let Some(run) = first {
            p.meta {
                span { "from " (number::instant(&run.manifest.started)) }
                span { "rxpath " (run.manifest.version) }
            }
        }
    }
}
