//! The path as a pipeline from left to right: a column per stage; the limiting stage is marked by sign and word.

use ratatui::text::{Line, Span};
use rxpath_core::Fact;
use rxpath_core::number::si;
use rxpath_record::verdict::DiagnosisVerdict;
use rxpath_record::watch::{PathStage, StageRow, WatchFrame};

use crate::output::table::wrap;
use crate::tui::mark::Mark;
use crate::tui::palette::Palette;
use crate::tui::sheet::stage_name;
use crate::tui::text::{QUIET, elsewhere};

/// Name, rate, drops, CPU, mark.
pub const HEIGHT: u16 = 5;

/// The columns, in this width.
pub fn lines<'a>(frame: &WatchFrame, width: u16, palette: Palette) -> Vec<Line<'a>> {
    let each = usize::from(width) / PathStage::ALL.len();
    let limit = frame.limit();
    let row = |cell: &dyn Fn(&StageRow) -> (Vec<String>, Mark)| {
        let spans = frame.stages.iter().map(|stage| {
            let (texts, mark) = cell(stage);
            Span::styled(fit(&texts, each), palette.style(mark))
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    vec![
        row(&|stage| {
            let first = stage.stage == PathStage::Nic;
            let name = stage_name(stage.stage);
            let text = if first { name.to_owned() } else { format!("→{name}") };
            (vec![text], if limit == Some(stage.stage) { Mark::Bad } else { Mark::Head })
        }),
        row(&|stage| shown(&stage.rate_per_s, |rate| (ways("", rate, "/s"), Mark::Plain))),
        row(&|stage| {
            shown(&stage.drops_pps, |rate| match rate {
                rate if rate > 0.0 => (ways("lost ", rate, "!"), Mark::Bad),
                _ => (vec![" lost 0".into(), " 0".into()], Mark::Plain),
            })
        }),
        row(&|stage| {
            shown(&stage.cpu_ratio, |ratio| {
                let percent = format!("{:.0}", 100.0 * ratio);
                (vec![format!(" cpu {percent} %"), format!(" {percent} %")], Mark::Plain)
            })
        }),
        row(&|stage| {
            let loses = stage.drops_pps.value().is_some_and(|rate| *rate > 0.0);
            if limit == Some(stage.stage) {
                (vec!["▲ LIMIT".into()], Mark::Bad)
            } else if loses {
                (vec!["! drops".into(), "!".into()], Mark::Bad)
            } else {
                (vec![String::new()], Mark::Plain)
            }
        }),
    ]
}

fn shown(fact: &Fact<f64>, shown: impl FnOnce(f64) -> (Vec<String>, Mark)) -> (Vec<String>, Mark) {
    fact.value().map_or_else(|| (vec![" -".into()], Mark::Dim), |value| shown(*value))
}

/// A number in its longest form, and shorter forms: without its word, then with fewer digits. Every form shows the same
/// number in the same unit.
fn ways(word: &str, value: f64, behind: &str) -> Vec<String> {
    let exact = si(value);
    vec![
        format!(" {word}{exact}{behind}"),
        format!(" {exact}{behind}"),
        format!(" {}{behind}", rounded(&exact)),
        format!(" {}", rounded(&exact)),
    ]
}

/// A number of `si` in at most two digits, where that shows its magnitude: `4.83k` is `4.8k`, `12.3k` is `12k`.
fn rounded(number: &str) -> String {
    let unit: String = number.chars().filter(char::is_ascii_alphabetic).collect();
    match number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).parse::<f64>() {
        Ok(value) if value < 9.95 => {
            let text = format!("{value:.1}");
            format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Ok(value) => format!("{value:.0}{unit}"),
        Err(_) => number.to_owned(),
    }
}

/// The longest text that fits in this many characters, one of them a gap. A number is never cut; a cut word ends in
/// `…`.
fn fit(texts: &[String], width: usize) -> String {
    let room = width.saturating_sub(1);
    let fits = |text: &&String| text.chars().count() <= room;
    let kept = texts.iter().find(fits).cloned().unwrap_or_else(|| {
        let last = texts.last().map_or("", String::as_str);
        if last.chars().any(|letter| letter.is_ascii_digit()) {
            // Part of a number would be another number.
            return " …".chars().take(room).collect();
        }
        let kept: String = last.chars().take(room.saturating_sub(1)).collect();
        if room > 0 { format!("{kept}…") } else { String::new() }
    });
    format!("{kept:<width$}")
}

/// The verdict, and packets that went to other namespaces; for a view that wraps. If the verdict names no limit, losses
/// come first: they may be too small for a rule.
pub fn limit<'a>(frame: &WatchFrame, palette: Palette) -> Vec<Line<'a>> {
    let mut lines = vec![verdict(frame, palette)];
    lines.extend(elsewhere(frame).map(|text| Line::styled(text, palette.style(Mark::Warn))));
    lines
}

/// Lines that a text needs in this width when wrapped between words, as in the view.
pub fn height(lines: &[Line<'_>], width: u16) -> u16 {
    let width = usize::from(width.max(1));
    let rows: usize = lines.iter().map(|line| wrap(&line.to_string(), width).len()).sum();
    u16::try_from(rows).unwrap_or(u16::MAX)
}

fn verdict<'a>(frame: &WatchFrame, palette: Palette) -> Line<'a> {
    let judged = frame.verdict.as_ref().map(DiagnosisVerdict::headline);
    if let (Some(judged), Some(_)) = (&judged, frame.limit()) {
        return Line::styled(judged.clone(), palette.style(Mark::Bad));
    }
    let mark = if judged.is_some() { Mark::Plain } else { Mark::Dim };
    let judged = judged.unwrap_or_else(|| QUIET.into());
    let lost = losses(frame);
    if lost.is_empty() {
        return Line::styled(judged, palette.style(mark));
    }
    Line::from(vec![
        Span::styled(format!("lost: {}", lost.join(", ")), palette.style(Mark::Bad)),
        Span::styled(format!("; {judged}"), palette.style(mark)),
    ])
}

fn losses(frame: &WatchFrame) -> Vec<String> {
    let losing = frame.stages.iter().filter_map(|stage| {
        let rate = stage.drops_pps.value().filter(|rate| **rate > 0.0)?;
        let note = if stage.note.is_empty() { String::new() } else { format!(" ({})", stage.note) };
        Some(format!("{} {}/s{note}", stage_name(stage.stage), si(*rate)))
    });
    losing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_number_loses_its_word_then_digits_and_never_its_unit() {
        for (value, shown) in [
            (4_830.0, " 4.83k!"),
            (12_300.0, " 12.3k!"),
            (123_000.0, " 123k!"),
            (91.0, " lost 91!"),
        ] {
            assert_eq!(fit(&ways("lost ", value, "!"), 11).trim_end(), shown);
        }
        assert_eq!(fit(&ways("lost ", 4_830.0, "!"), 7).trim_end(), " 4.8k!");
        assert_eq!(fit(&ways("lost ", 12_300.0, "!"), 6).trim_end(), " 12k!");
        assert_eq!(fit(&ways("lost ", 123_456.0, "!"), 5).trim_end(), " …");
        assert_eq!(fit(&texts(&["→filter/IP"]), 6), "→fil… ");
        assert_eq!(fit(&texts(&["→filter/IP"]), 0), "");
    }

    #[test]
    fn what_tcp_lost_is_told_where_no_rule_names_it() {
        let mut frame = crate::tui::view::tests::busy_frame(1);
        frame.verdict = None;
        (frame.stages[5].drops_pps, frame.stages[5].note) =
            (Fact::ok(197.0), "listen queue full 197/s".into());
        let said = limit(&frame, Palette { color: false })[0].to_string();
        assert!(said.starts_with("lost: socket 197/s (listen queue full"), "{said}");
        let marks = lines(&frame, 80, Palette { color: false })[4].to_string();
        assert_eq!(marks.trim(), "! drops", "its stage is marked");
    }

    #[test]
    fn a_verdict_takes_the_lines_that_its_words_need() {
        let of = |text: &'static str, width| height(&[Line::from(text)], width);
        assert_eq!([of("one two", 7), of("one two", 6), of("one two three", 5)], [1, 2, 3]);
        // A word that is longer than the line is cut.
        assert_eq!([of("abcdefgh", 4), of("abcdefghi", 4), of("", 4)], [2, 3, 1]);
    }

    #[test]
    fn a_rounded_number_is_the_same_number() {
        for (exact, told) in
            [("4.83k", "4.8k"), ("9.99k", "10k"), ("12.3M", "12M"), ("401k", "401k"), ("2", "2")]
        {
            assert_eq!(rounded(exact), told);
        }
    }
}
