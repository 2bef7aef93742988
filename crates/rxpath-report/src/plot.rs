//! Plots as SVG, for the page that holds them.
//!
//! Equal input gives equal bytes. Ids begin with the chart's own, so that several plots fit in one page. Colours are CSS
//! variables: one SVG serves the light page, the dark page and print.

use maud::{Markup, html};

/// Colours of series, as CSS variables of the page's style: Okabe and Ito's set, safe for the colour-blind.
pub(crate) const COLOURS: [&str; 8] = [
    "var(--s0)",
    "var(--s1)",
    "var(--s2)",
    "var(--s3)",
    "var(--s4)",
    "var(--s5)",
    "var(--s6)",
    "var(--s7)",
];

/// Dash patterns, so that curves can be distinguished without colour.
pub(crate) const DASHES: [&str; 8] =
    ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "9 2 2 2 2 2"];

/// The colour of text and marks that belong to no series.
pub(crate) const INK: &str = "var(--ink)";
/// The colour of background elements.
pub(crate) const MUTED: &str = "var(--muted)";

/// One axis.
#[derive(Clone)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// First and last value.
    pub range: (f64, f64),
    /// How a tick is written.
    pub format: fn(f64) -> String,
    /// Which values get ticks.
    pub steps: Steps,
}

/// Which values are round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// 1, 2 and 5 times powers of ten.
    Decimal,
    /// Powers of two: for bytes.
    Binary,
    /// Whole numbers: for powers of ten on a logarithmic axis.
    Whole,
}

impl Axis {
    /// An axis from zero.
    pub(crate) fn to(end: f64, label: &str, format: fn(f64) -> String) -> Self {
        Self { label: label.into(), range: (0.0, end), format, steps: Steps::Decimal }
    }

    /// An axis of bytes from zero.
    pub(crate) fn bytes(end: f64, label: &str) -> Self {
        Self { steps: Steps::Binary, ..Self::to(end, label, crate::number::bytes) }
    }

    /// The distance of two ticks, so that about `about` of them fit.
    fn step(&self, about: f64) -> f64 {
        let span = self.range.1 - self.range.0;
        if !span.is_finite() || span <= 0.0 {
            return 1.0;
        }
        let raw = span / about;
        if self.steps == Steps::Whole {
            return raw.ceil().max(1.0);
        }
        if self.steps == Steps::Binary {
            return 2f64.powf(raw.log2().ceil());
        }
        let power = 10f64.powf(raw.log10().floor());
        let fits = |factor: &f64| factor * power >= raw * (1.0 - 1e-9);
        [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power
    }

    /// The values that get ticks.
    fn ticks(&self, about: f64) -> Vec<f64> {
        let step = self.step(about);
        let (first, last) = ((self.range.0 / step).ceil(), (self.range.1 / step).floor());
        if !(first.is_finite() && last.is_finite()) || last - first > 100.0 {
            return Vec::new();
        }
        (first as i64..=last as i64).map(|n| n as f64 * step).collect()
    }
}

/// A polyline.
#[derive(Clone, Default)]
pub(crate) struct Curve {
    /// Points in data units.
    pub points: Vec<(f64, f64)>,
    /// CSS colour.
    pub colour: &'static str,
    /// Stroke width in pixels.
    pub width: f64,
    /// `stroke-dasharray`; empty = solid.
    pub dash: &'static str,
    /// Whether the area below it is filled.
    pub fill: bool,
}

impl Curve {
    /// The nth of several: in the colour and with the dashes of its number.
    pub(crate) fn nth(points: Vec<(f64, f64)>, n: usize, width: f64) -> Self {
        Self { points, colour: COLOURS[n % 8], width, dash: DASHES[n % 8], fill: false }
    }

    /// A horizontal bar from one x to another.
    pub(crate) fn bar((from, to): (f64, f64), y: f64, colour: &'static str, width: f64) -> Self {
        Self { points: vec![(from, y), (to, y)], colour, width, ..Self::default() }
    }
}

/// A set of equal markers.
#[derive(Clone)]
pub(crate) struct Dots {
    /// Points in data units.
    pub points: Vec<(f64, f64)>,
    /// CSS colour.
    pub colour: &'static str,
    /// Radius in pixels.
    pub radius: f64,
    /// Form.
    pub form: Form,
}

/// Marker forms that stay apart in black and white.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A single trial.
    Circle,
    /// A median.
    Diamond,
    /// Something to compare with.
    Cross,
}

/// A straight line across the plot.
#[derive(Clone)]
pub(crate) struct Mark {
    /// Where, in data units.
    pub at: f64,
    /// Across x (`true`: a vertical line) or y.
    pub vertical: bool,
    /// `stroke-dasharray`.
    pub dash: &'static str,
}

/// Everything one SVG shows.
#[derive(Clone)]
pub(crate) struct Chart {
    /// Unique in the page: prefix of the ids inside.
    pub id: String,
    /// The text for screen readers.
    pub alt: String,
    /// Width and height in CSS pixels.
    pub size: (f64, f64),
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; its ticks are replaced by `rows` when there are any.
    pub y: Axis,
    /// Names at y = 1, 2, ... from the bottom.
    pub rows: Vec<String>,
    /// Curves, painted in order.
    pub curves: Vec<Curve>,
    /// Markers, painted after the curves.
    pub dots: Vec<Dots>,
    /// Lines across.
    pub marks: Vec<Mark>,
    /// Stretches of x with a background, the measured window for example.
    pub shades: Vec<(f64, f64)>,
}

impl Chart {
    /// A chart without content.
    pub(crate) fn new(id: String, alt: String, size: (f64, f64), x: Axis, y: Axis) -> Self {
        let (rows, curves, dots, marks, shades) = Default::default();
        Self { id, alt, size, x, y, rows, curves, dots, marks, shades }
    }

    /// A chart with a row of this height for each name, given from the bottom up.
    pub(crate) fn of_rows(
        (id, width): (&str, f64),
        alt: &str,
        rows: Vec<String>,
        height: f64,
        x: Axis,
    ) -> Self {
        let n = rows.len() as f64;
        let y = Axis { range: (0.5, n + 0.5), ..Axis::to(0.0, "", crate::number::short) };
        let size = (width, 64.0 + height * n);
        Self { rows, ..Self::new(id.into(), alt.into(), size, x, y) }
    }
}

/// Width of a letter, about: enough to leave space for words.
const LETTER: f64 = 6.2;

/// Where data lie in the picture.
struct Frame<'a> {
    chart: &'a Chart,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x_ticks: Vec<f64>,
    y_ticks: Vec<(f64, String)>,
}

impl<'a> Frame<'a> {
    fn new(chart: &'a Chart) -> Self {
        let (width, height) = chart.size;
        let y_ticks: Vec<(f64, String)> = if chart.rows.is_empty() {
            chart.y.ticks(4.0).into_iter().map(|at| (at, (chart.y.format)(at))).collect()
        } else {
            chart.rows.iter().enumerate().map(|(n, name)| (n as f64 + 1.0, name.clone())).collect()
        };
        let longest = y_ticks.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0);
        let label = if chart.y.label.is_empty() { 0.0 } else { 16.0 };
        let x_ticks = chart.x.ticks(if width < 480.0 { 4.0 } else { 8.0 });
        // The last word stands centred below its tick.
        let last = x_ticks.last().map_or(0, |at| (chart.x.format)(*at).chars().count());
        Self {
            chart,
            left: label + longest as f64 * LETTER + 10.0,
            right: width - (last as f64 * LETTER / 2.0).max(8.0),
            top: 8.0,
            bottom: height - 38.0,
            x_ticks,
            y_ticks,
        }
    }

    fn x(&self, at: f64) -> f64 {
        place(at, self.chart.x.range, (self.left, self.right))
    }

    fn y(&self, at: f64) -> f64 {
        place(at, self.chart.y.range, (self.bottom, self.top))
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let place = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", self.x(*x), self.y(*y));
        format!("M{}", points.iter().map(place).collect::<Vec<_>>().join(" L"))
    }

    /// What lies behind the data: shades, grid, axes and their words.
    fn background(&self) -> Markup {
        let Self { chart, left, right, top, bottom, .. } = self;
        let first = chart.x.range.0;
        let lines = self.y_ticks.iter().filter(|_| chart.rows.is_empty());
        html! {
            @for (from, to) in &chart.shades {
                @let (from, to) = (self.x(*from), self.x(*to));
                rect x=(px(from)) y=(px(*top)) width=(px(to - from)) height=(px(bottom - top)) fill="var(--window)" {}
            }
            g stroke="var(--grid)" {
                @for at in self.x_ticks.iter().filter(|at| **at > first) {
                    (line((self.x(*at), *top), (self.x(*at), *bottom), ""))
                }
                @for (at, _) in lines { (line((*left, self.y(*at)), (*right, self.y(*at)), "")) }
            }
            g stroke="var(--axis)" {
                (line((*left, *top), (*left, *bottom), ""))
                (line((*left, *bottom), (*right, *bottom), ""))
            }
            @for at in &self.x_ticks {
                text x=(px(self.x(*at))) y=(px(bottom + 14.0)) text-anchor="middle" { ((chart.x.format)(*at)) }
            }
            @for (at, name) in &self.y_ticks {
                text x=(px(left - 6.0)) y=(px(self.y(*at) + 4.0)) text-anchor="end" { (name) }
            }
            text x=(px(left.midpoint(*right))) y=(px(bottom + 32.0)) text-anchor="middle" font-size="12" {
                (chart.x.label)
            }
            @if !chart.y.label.is_empty() {
                @let turn = format!("translate(11 {:.1}) rotate(-90)", top.midpoint(*bottom));
                text transform=(turn) text-anchor="middle" font-size="12" { (chart.y.label) }
            }
        }
    }

    fn curve(&self, curve: &Curve) -> Markup {
        let path = self.path(&curve.points);
        let (first, last) = (curve.points.first(), curve.points.last());
        html! {
            @if let (true, Some((first, _)), Some((last, _))) = (curve.fill, first, last) {
                @let (end, start) = (self.x(*last), self.x(*first));
                @let area = format!("{path} L{end:.1},{0:.1} L{start:.1},{0:.1} Z", self.bottom);
                path d=(area) fill=(curve.colour) fill-opacity="0.3" {}
            }
            path d=(path) fill="none" stroke=(curve.colour) stroke-width=(curve.width)
                stroke-dasharray=[(!curve.dash.is_empty()).then_some(curve.dash)] {}
        }
    }

    fn dots(&self, dots: &Dots) -> Markup {
        let r = dots.radius;
        // Trials lie over each other: their fill lets the others through.
        let opacity: f64 = if dots.form == Form::Circle { 0.25 } else { 1.0 };
        html! {
            g fill=(dots.colour) fill-opacity=(opacity) stroke=(dots.colour) stroke-width="1.4" {
                @for (x, y) in dots.points.iter().map(|(x, y)| (self.x(*x), self.y(*y))) {
                    @match dots.form {
                        Form::Circle => circle cx=(px(x)) cy=(px(y)) r=(r) {},
                        Form::Diamond =>
                            path d=(format!("M{x:.1},{:.1} l{r},{r} l-{r},{r} l-{r},-{r} Z", y - r)) {},
                        Form::Cross => path d=(format!(
                            "M{:.1},{:.1} l{d},{d} m0,-{d} l-{d},{d}", x - r, y - r, d = 2.0 * r
                        )) {},
                    }
                }
            }
        }
    }
}

/// The chart as an SVG element to be placed into the page.
pub(crate) fn svg(chart: &Chart) -> Markup {
    let frame = Frame::new(chart);
    let Frame { left, right, top, bottom, .. } = frame;
    let (width, height) = chart.size;
    let clip = format!("{}-clip", chart.id);
    html! {
        svg class="plot" role="img" viewBox=(format!("0 0 {width} {height}")) style=(format!("max-width:{width}px"))
            font-size="11" {
            title { (chart.alt) }
            clipPath id=(clip) {
                rect x=(px(left)) y=(px(top)) width=(px(right - left)) height=(px(bottom - top)) {}
            }
            (frame.background())
            g clip-path=(format!("url(#{clip})")) {
                @for curve in chart.curves.iter().filter(|curve| !curve.points.is_empty()) { (frame.curve(curve)) }
            }
            @for dots in &chart.dots { (frame.dots(dots)) }
            g stroke=(INK) {
                @for mark in &chart.marks {
                    @if mark.vertical {
                        (line((frame.x(mark.at), top), (frame.x(mark.at), bottom), mark.dash))
                    } @else {
                        (line((left, frame.y(mark.at)), (right, frame.y(mark.at)), mark.dash))
                    }
                }
            }
        }
    }
}

/// From data units to pixels.
fn place(at: f64, (first, last): (f64, f64), (from, to): (f64, f64)) -> f64 {
    let span = last - first;
    if span > 0.0 { from + (at - first) / span * (to - from) } else { from }
}

/// A length in CSS pixels.
pub(crate) fn px(value: f64) -> String {
    format!("{value:.1}")
}

fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64), dash: &str) -> Markup {
    html! {
        line x1=(px(x1)) y1=(px(y1)) x2=(px(x2)) y2=(px(y2))
            stroke-dasharray=[(!dash.is_empty()).then_some(dash)] {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(id: &str) -> Chart {
        let x = Axis::to(10.0, "costs $x$ <b>", crate::number::short);
        let y = Axis::to(5.0, "y", crate::number::short);
        let points = vec![(0.0, 1.0), (10.0, 4.0)];
        let (colour, dash) = (COLOURS[0], DASHES[1]);
        Chart {
            curves: vec![Curve { points, colour, width: 2.0, dash, fill: false }],
            shades: vec![(2.0, 8.0)],
            ..Chart::new(id.into(), "a <test>".into(), (400.0, 200.0), x, y)
        }
    }

    fn svg(chart: &Chart) -> String {
        super::svg(chart).into_string()
    }

    #[test]
    fn equal_charts_give_equal_bytes_and_no_shared_ids() {
        let first = svg(&sample("a"));
        assert_eq!(first, svg(&sample("a")));
        assert!(first.contains("id=\"a-clip\""), "{first}");
        assert!(svg(&sample("b")).contains("url(#b-clip)"));
    }

    #[test]
    fn it_scales_and_speaks() {
        let text = svg(&sample("a"));
        assert!(
            text.starts_with("<svg class=\"plot\" role=\"img\" viewBox=\"0 0 400 200\""),
            "{text}"
        );
        assert!(text.contains("<title>a &lt;test&gt;</title>"));
        assert!(!text.contains("<!--") && !text.contains("<b>"), "{text}");
        assert!(text.contains("$x$"), "a dollar stays a dollar: {text}");
    }

    #[test]
    fn the_dash_and_the_theme_arrive() {
        let text = svg(&sample("a"));
        assert!(text.contains("stroke-dasharray=\"7 3\"") && text.contains("var(--s0)"), "{text}");
        assert!(!text.contains("white") && !text.contains("#ffffff"), "{text}");
    }

    #[test]
    fn ticks_are_round_and_lie_inside() {
        let axis = |range, steps| Axis {
            label: String::new(),
            range,
            format: crate::number::short,
            steps,
        };
        let decimal = axis((0.0, 1.2e6), Steps::Decimal);
        assert_eq!(decimal.ticks(6.0), [0.0, 2e5, 4e5, 6e5, 8e5, 1e6, 1.2e6]);
        assert_eq!(
            axis((0.0, 460_000.0), Steps::Binary).ticks(4.0),
            [0.0, 131_072.0, 262_144.0, 393_216.0]
        );
        assert_eq!(axis((0.0, f64::NAN), Steps::Decimal).ticks(6.0), Vec::<f64>::new());
    }

    #[test]
    fn a_plot_that_has_nothing_to_say_is_still_a_plot() {
        let mut chart = sample("a");
        chart.curves[0].points.clear();
        chart.x.range = (0.0, 0.0);
        assert!(svg(&chart).ends_with("</svg>"));
    }
}
