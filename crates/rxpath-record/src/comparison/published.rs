//! What others have published for the same comparison, shown next to what was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wording::{step, times};

/// A published result: the shape to compare with, never a value of this host. One that was published without values has
/// neither ratio nor difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// `variant / base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// `variant - base`, in the unit of the metric: for shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// The figures as they were published, or what was said without any: `24.56 us against 33.56 us on average`.
    pub figures: String,
    /// Who, what, when.
    pub source: String,
    /// On which machine.
    pub machine: String,
}

impl Published {
    /// What is wrong with it: key, and what would be right.
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        let texts =
            [("figures", &self.figures), ("source", &self.source), ("machine", &self.machine)];
        if let Some((key, _)) = texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
            return Some((key, "say it in a few words"));
        }
        match (self.ratio, self.difference) {
            (Some(ratio), None) if !(ratio.is_finite() && ratio > 0.0) => {
                Some(("ratio", "a ratio is above 0"))
            }
            (None, Some(difference)) if !difference.is_finite() => {
                Some(("difference", "give a number"))
            }
            (Some(_), Some(_)) => Some(("ratio", "give one of ratio and difference")),
            _ => None,
        }
    }

    /// In words: `-27 % (24.56 us against 33.56 us; Honda 2018; Xeon Silver 4110)`.
    pub fn text(&self, metric: &str) -> String {
        let amount = match (self.ratio, self.difference) {
            (Some(ratio), _) => times(ratio),
            (None, Some(difference)) => step(metric, difference),
            (None, None) => return format!("{} ({}; {})", self.figures, self.source, self.machine),
        };
        format!("{amount} ({}; {}; {})", self.figures, self.source, self.machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(ratio: Option<f64>, difference: Option<f64>) -> Published {
        Published {
            ratio,
            difference,
            figures: "1 against 2".into(),
            source: "Someone 2020".into(),
            machine: "a host".into(),
        }
    }

    #[test]
    fn a_figure_names_its_source_and_machine() {
        let text = made(Some(1.353), None).text("achieved_rps");
        assert_eq!(text, "+35.3 % (1 against 2; Someone 2020; a host)");
        assert!(made(Some(3.8), None).text("achieved_rps").starts_with("3.80 times ("));
        let share = made(None, Some(0.6)).text("victim_taken_ratio");
        assert!(share.starts_with("+60.00 percentage points ("), "{share}");
        let text = made(None, None).text("achieved_rps");
        assert_eq!(text, "1 against 2 (Someone 2020; a host)");
    }

    #[test]
    fn what_is_not_a_figure_is_said() {
        assert_eq!(made(Some(1.0), None).fault(), None);
        assert_eq!(made(None, Some(-0.1)).fault(), None);
        assert_eq!(made(None, None).fault(), None);
        for (ratio, difference) in [(Some(1.0), Some(1.0)), (Some(0.0), None)] {
            assert_eq!(made(ratio, difference).fault().unwrap().0, "ratio");
        }
        let silent = Published { source: " ".into(), ..made(Some(1.0), None) };
        assert_eq!(silent.fault().unwrap().0, "source");
    }
}
