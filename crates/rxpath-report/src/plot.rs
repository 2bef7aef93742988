//! Plots as SVG. This is the one file that knows the plotting crate.
//!
//! It corrects that crate's output: clip ids come from a process-wide counter (here local to the plot, so that equal
//! input gives equal bytes and several plots fit in one page), there is no `viewBox`, the last tick label is cut at the
//! edge, and ranges ignore intervals (here every range is given). Colours are CSS variables: one SVG serves the light
//! page, the dark page and print.

use std::fmt::Write as _;
use std::sync::Arc;

use kuva::TickFormat;
use kuva::backend::svg::SvgBackend;
use kuva::plot::line::LineStyle;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::annotations::{ReferenceLine, ShadedRegion};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;
use kuva::render::theme::Theme;

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
}

impl Axis {
    /// The distance of two ticks, so that about `about` of them fit.
    fn step(&self, about: f64) -> f64 {
        let span = self.range.1 - self.range.0;
        if !span.is_finite() || span <= 0.0 {
            return 1.0;
        }
        let raw = span / about;
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
    pub colour: String,
    /// Stroke width in pixels.
    pub width: f64,
    /// `stroke-dasharray`; empty = solid.
    pub dash: String,
    /// Whether the area below it is filled.
    pub fill: bool,
}

/// A set of equal markers.
#[derive(Clone)]
pub(crate) struct Dots {
    /// Points in data units.
    pub points: Vec<(f64, f64)>,
    /// CSS colour.
    pub colour: String,
    /// Radius in pixels.
    pub radius: f64,
    /// Opacity of the fill; the outline is always full.
    pub opacity: f64,
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

/// A straight line across the plot with a word at it.
#[derive(Clone)]
pub(crate) struct Mark {
    /// Where, in data units.
    pub at: f64,
    /// Across x (`true`: a vertical line) or y.
    pub vertical: bool,
    /// Its word, or empty.
    pub label: String,
    /// CSS colour.
    pub colour: &'static str,
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
    /// A stretch of x with a background (the measured window).
    pub window: Option<(f64, f64)>,
    /// Further stretches of x with a background.
    pub shades: Vec<(f64, f64)>,
}

/// The chart as an SVG element to be placed into the page.
pub(crate) fn svg(chart: &Chart) -> String {
    let mut plots: Vec<Plot> = grid(chart).iter().map(|line| Plot::from(curve(line))).collect();
    plots
        .extend(chart.curves.iter().filter(|c| !c.points.is_empty()).map(|c| Plot::from(curve(c))));
    plots.extend(chart.dots.iter().filter(|d| !d.points.is_empty()).map(|d| Plot::from(dots(d))));
    let scene = render_multiple(plots, layout(chart));
    mend(&SvgBackend::new().render_scene(&scene), chart)
}

fn curve(curve: &Curve) -> LinePlot {
    let style = if curve.dash.is_empty() {
        LineStyle::Solid
    } else {
        LineStyle::Custom(curve.dash.clone())
    };
    let line = LinePlot::new()
        .with_data(curve.points.clone())
        .with_color(curve.colour.as_str())
        .with_stroke_width(curve.width)
        .with_line_style(style);
    if curve.fill { line.with_fill() } else { line }
}

fn dots(dots: &Dots) -> ScatterPlot {
    let marker = match dots.form {
        Form::Circle => MarkerShape::Circle,
        Form::Diamond => MarkerShape::Diamond,
        Form::Cross => MarkerShape::Cross,
    };
    ScatterPlot::new()
        .with_data(dots.points.clone())
        .with_color(dots.colour.as_str())
        .with_size(dots.radius)
        .with_marker(marker)
        .with_marker_opacity(dots.opacity)
        .with_marker_stroke_width(1.4)
}

fn layout(chart: &Chart) -> Layout {
    let theme = Theme {
        background: "none".into(),
        axis_color: "var(--axis)".into(),
        grid_color: "var(--grid)".into(),
        tick_color: "var(--axis)".into(),
        text_color: "var(--ink)".into(),
        show_grid: true,
        ..Theme::light()
    };
    let format = |axis: &Axis| TickFormat::Custom(Arc::new(axis.format));
    let mut layout = Layout::new(chart.x.range, chart.y.range)
        .with_width(chart.size.0)
        .with_height(chart.size.1)
        .with_theme(theme)
        .with_x_axis_min(chart.x.range.0)
        .with_x_axis_max(chart.x.range.1)
        .with_y_axis_min(chart.y.range.0)
        .with_y_axis_max(chart.y.range.1)
        .with_x_tick_format(format(&chart.x))
        .with_y_tick_format(format(&chart.y))
        .with_x_tick_step(chart.x.step(about(chart.size.0)))
        .with_y_tick_step(chart.y.step(4.0))
        .with_label_size(12)
        .with_tick_size(11)
        .with_tick_length(3.0)
        .with_grid_line_width(1.0)
        .with_axis_line_width(1.0)
        .with_tick_width(1.0);
    layout = layout.with_x_label(literal(&chart.x.label));
    if chart.rows.is_empty() {
        layout = layout.with_y_label(literal(&chart.y.label));
    } else {
        layout = layout.with_y_categories(chart.rows.iter().map(|name| literal(name)).collect());
    }
    for (from, to) in chart.window.iter().chain(&chart.shades).copied() {
        let region = ShadedRegion::vertical(from, to).with_color("var(--window)").with_opacity(1.0);
        layout = layout.with_shaded_region(region);
    }
    for mark in &chart.marks {
        let line = if mark.vertical {
            ReferenceLine::vertical(mark.at)
        } else {
            ReferenceLine::horizontal(mark.at)
        };
        let line = line.with_color(mark.colour).with_dasharray(mark.dash);
        let line = if mark.label.is_empty() { line } else { line.with_label(literal(&mark.label)) };
        layout = layout.with_reference_line(line);
    }
    layout
}

/// A dollar sign would switch the plotting crate to mathematics.
fn literal(text: &str) -> String {
    text.replace('$', "\\$")
}

/// Vertical grid lines behind the data, which the plotting crate leaves out next to named rows.
fn grid(chart: &Chart) -> Vec<Curve> {
    if chart.rows.is_empty() {
        return Vec::new();
    }
    let line = |at: f64| Curve {
        points: vec![(at, chart.y.range.0), (at, chart.y.range.1)],
        colour: "var(--grid)".into(),
        width: 1.0,
        dash: String::new(),
        fill: false,
    };
    let ticks = chart.x.ticks(about(chart.size.0));
    ticks.into_iter().filter(|at| *at > chart.x.range.0).map(line).collect()
}

/// How many ticks a width has room for.
fn about(width: f64) -> f64 {
    if width < 480.0 { 4.0 } else { 8.0 }
}

/// Ids local to the plot, a `viewBox`, a role and a text for screen readers, no comment, room for the last tick label.
fn mend(svg: &str, chart: &Chart) -> String {
    let (width, height) = chart.size;
    let body = svg.find('>').map_or("", |end| &svg[end + 1..]);
    let body = match (body.find("<!--"), body.find("-->")) {
        (Some(from), Some(to)) if from < to => [&body[..from], &body[to + 3..]].concat(),
        _ => body.to_owned(),
    };
    let body = local_ids(&body, &chart.id);
    let alt = maud::html! { (chart.alt) }.into_string();
    format!(
        "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {width} {height}\" style=\"max-width:{width}px\" \
         font-size=\"11\"><title>{alt}</title>{body}"
    )
}

/// Renames `kuva-clip-<n>` to `<id>-c<k>`, k counting from 0 in order of appearance.
fn local_ids(svg: &str, id: &str) -> String {
    const PREFIX: &str = "kuva-clip-";
    let mut seen: Vec<String> = Vec::new();
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(at) = rest.find(PREFIX) {
        out.push_str(&rest[..at]);
        rest = &rest[at + PREFIX.len()..];
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        rest = &rest[digits.len()..];
        let index = seen.iter().position(|other| *other == digits).unwrap_or_else(|| {
            seen.push(digits.clone());
            seen.len() - 1
        });
        let _ = write!(out, "{id}-c{index}");
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample(id: &str) -> Chart {
        Chart {
            id: id.into(),
            alt: "a <test>".into(),
            size: (400.0, 200.0),
            x: Axis {
                label: "costs $x$ <b>".into(),
                range: (0.0, 10.0),
                format: crate::number::short,
                steps: Steps::Decimal,
            },
            y: Axis {
                label: "y".into(),
                range: (0.0, 5.0),
                format: crate::number::short,
                steps: Steps::Decimal,
            },
            rows: vec![],
            curves: vec![Curve {
                points: vec![(0.0, 1.0), (10.0, 4.0)],
                colour: COLOURS[0].into(),
                width: 2.0,
                dash: DASHES[1].into(),
                fill: false,
            }],
            dots: vec![],
            marks: vec![],
            window: Some((2.0, 8.0)),
            shades: vec![],
        }
    }

    #[test]
    fn equal_charts_give_equal_bytes_and_no_shared_ids() {
        let first = svg(&sample("a"));
        assert_eq!(first, svg(&sample("a")));
        assert!(first.contains("a-c0") && !first.contains("kuva-clip"), "{first}");
        assert!(svg(&sample("b")).contains("b-c0"));
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
