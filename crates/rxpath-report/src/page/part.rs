//! Small pieces that several sections of the page are made of: tables, figures, folded details.

use maud::{Markup, html};
use rxpath_record::manifest::VariantSummary;

use crate::plot::{self, Axis, Chart};

/// Width of a picture on a wide page, in CSS pixels.
const WIDE: f64 = 1100.0;
/// Width of a picture on a narrow page.
const NARROW: f64 = 350.0;
/// Width and height of one of several small pictures.
const SMALL: (f64, f64) = (384.0, 180.0);

/// One numbered part of the page.
pub(crate) struct Section {
    pub id: &'static str,
    pub title: &'static str,
    /// What the part shows and how to read it, one or two sentences.
    pub lead: &'static str,
    pub body: Markup,
}

/// A table of text; columns marked as numbers are set flush right in tabular figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Column heads; `true` = numbers.
    pub head: Vec<(String, bool)>,
    /// Rows of as many cells as there are heads.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads, ` | ` between two; a head that starts with `#` marks a column of numbers.
    pub(crate) fn new(heads: &str) -> Self {
        let head = heads.split(" | ").map(|head| match head.strip_prefix('#') {
            Some(rest) => (rest.to_owned(), true),
            None => (head.to_owned(), false),
        });
        Self { head: head.collect(), rows: Vec::new() }
    }

    /// The same with these rows.
    pub(crate) fn of(heads: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self { rows: rows.into_iter().collect(), ..Self::new(heads) }
    }
}

/// Each item of parts of trials, with the name of its variant.
pub(crate) fn each<'r, P, T: 'r>(
    rows: &'r [(&VariantSummary, &P)],
    of: impl Fn(&'r P) -> &'r Vec<T>,
) -> impl Iterator<Item = (String, &'r T)> {
    rows.iter().flat_map(move |(variant, part)| {
        of(part).iter().map(move |item| (variant.name.clone(), item))
    })
}

/// The table in a box of its own that scrolls where it is too wide.
pub(crate) fn table(table: &Table, label: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr {
                    @for (head, number) in &table.head {
                        th.num[*number] scope="col" { (head) }
                    }
                } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                td.num[table.head.get(at).is_some_and(|(_, number)| *number)] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One entry of a figure's key: a stroke as it is drawn, and its meaning.
pub(crate) struct Key {
    /// CSS colour.
    pub colour: String,
    /// `stroke-dasharray`, or empty.
    pub dash: String,
    /// A marker instead of a stroke.
    pub marker: Option<plot::Form>,
    /// Stroke width in pixels.
    pub width: f64,
    /// The meaning.
    pub label: String,
}

impl Key {
    /// A stroke.
    pub(crate) fn stroke(colour: &str, dash: &str, label: &str) -> Self {
        let (colour, dash) = (colour.to_owned(), dash.to_owned());
        Self { colour, dash, marker: None, width: 2.0, label: label.to_owned() }
    }

    /// A block, for bars and intervals.
    pub(crate) fn block(colour: &str, width: f64, label: &str) -> Self {
        Self { width, ..Self::stroke(colour, "", label) }
    }

    /// A marker.
    pub(crate) fn marker(form: plot::Form, colour: &str, label: &str) -> Self {
        Self { marker: Some(form), ..Self::stroke(colour, "", label) }
    }
}

fn sample(key: &Key) -> Markup {
    html! {
        svg.key viewBox="0 0 26 12" width="26" height="12" aria-hidden="true" {
            @match key.marker {
                None => line x1="1" y1="6" x2="25" y2="6" stroke=(key.colour) stroke-width=(key.width)
                    stroke-dasharray=[(!key.dash.is_empty()).then_some(&key.dash)] {},
                Some(plot::Form::Circle) =>
                    circle cx="13" cy="6" r="3.6" fill=(key.colour) fill-opacity="0.25" stroke=(key.colour) {},
                Some(plot::Form::Diamond) => path d="M13 0.5 L18.5 6 L13 11.5 L7.5 6 Z" fill=(key.colour) {},
                Some(plot::Form::Cross) =>
                    path d="M9.5 2.5 L16.5 9.5 M16.5 2.5 L9.5 9.5" stroke=(key.colour) stroke-width="1.4" {},
            }
        }
    }
}

/// One picture of a figure, in a form for wide pages and, where that would be too small to read, one for narrow.
pub(crate) struct Panel {
    /// Its own heading, when the figure has several.
    pub title: Option<String>,
    /// The picture.
    pub wide: Chart,
    /// The picture for pages under 700 px.
    pub narrow: Option<Chart>,
}

impl Panel {
    /// A picture in both forms, from its width; the ids begin with `id`.
    pub(crate) fn by_width(id: &str, chart: impl Fn((&str, f64)) -> Chart) -> Self {
        let wide = chart((&format!("{id}-w"), WIDE));
        Self { title: None, wide, narrow: Some(chart((&format!("{id}-n"), NARROW))) }
    }

    /// One of several pictures side by side: each is small on every page.
    pub(crate) fn of_several(id: &str, title: &str, chart: impl Fn((&str, f64)) -> Chart) -> Self {
        Self { title: Some(title.to_owned()), wide: chart((id, SMALL.0)), narrow: None }
    }

    /// One of several small pictures, with the seconds of a trial across.
    pub(crate) fn over_time((id, at): (&str, usize), variant: &str, x: Axis, y: Axis) -> Self {
        let alt = format!("{variant}: {} over time", y.label);
        let wide = Chart::new(format!("{id}{at}"), alt, SMALL, x, y);
        Self { title: Some(variant.to_owned()), wide, narrow: None }
    }
}

/// A figure: title, what to see, key, pictures, and the numbers behind them.
pub(crate) struct Figure {
    /// Title.
    pub title: String,
    /// How to read it and what it is made of.
    pub caption: String,
    /// Key.
    pub keys: Vec<Key>,
    /// Pictures.
    pub panels: Vec<Panel>,
    /// The numbers.
    pub table: Table,
}

/// The figure as HTML.
pub(crate) fn figure(figure: &Figure) -> Markup {
    let many = figure.panels.len() > 1 || figure.panels.iter().any(|p| p.title.is_some());
    html! {
        figure {
            figcaption {
                h3 { (figure.title) }
                p { (figure.caption) }
                @if !figure.keys.is_empty() {
                    ul.keys { @for key in &figure.keys { li { (sample(key)) (key.label) } } }
                }
            }
            div.panels.many[many] {
                @for panel in &figure.panels {
                    div.panel {
                        @if let Some(title) = &panel.title { h4 { (title) } }
                        @match &panel.narrow {
                            Some(narrow) => {
                                div.wide { (plot::svg(&panel.wide)) }
                                div.narrow { (plot::svg(narrow)) }
                            }
                            None => (plot::svg(&panel.wide)),
                        }
                    }
                }
            }
            (fold("The numbers", &table(&figure.table, &figure.title)))
        }
    }
}

/// Something a reader may want to open.
pub(crate) fn fold(title: &str, body: &Markup) -> Markup {
    html! { details { summary { (title) } (body) } }
}

/// A text cut to `limit` characters with an ellipsis: for names inside pictures.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}
