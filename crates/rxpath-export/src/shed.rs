//! What the exporter leaves out to keep its budget, for its log: once when it changes, not in each window.

use rxpath_core::Warning;

use crate::governor::{Governor, SHEDS};

/// What was left out in the window before.
#[derive(Debug, Default)]
pub struct Shed([bool; SHEDS.len()]);

/// What changed between two windows.
#[derive(Debug, PartialEq)]
pub struct ShedChange {
    /// Left out from now on.
    gone: Vec<&'static str>,
    /// Measured again from now on.
    pub back: Vec<&'static str>,
}

impl Shed {
    /// What the governor decided otherwise than before.
    pub fn change(&mut self, governor: &Governor) -> ShedChange {
        let now = governor.shed();
        let before = std::mem::replace(&mut self.0, now);
        let of = |is_shed: bool| {
            let pairs = before.into_iter().zip(now).zip(SHEDS);
            let changed = pairs.filter(|((then, now), _)| then != now && *now == is_shed);
            changed.map(|(_, what)| what).collect()
        };
        ShedChange { gone: of(true), back: of(false) }
    }
}

impl ShedChange {
    /// Warns of what is left out from now on, if anything is. The budget is in CPUs.
    pub fn warning(&self, budget: f64) -> Option<Warning> {
        let what = (!self.gone.is_empty()).then(|| self.gone.join(", "))?;
        let text =
            format!("left out to keep the budget of {:.1} % of a CPU: {what}", budget * 100.0);
        Some(Warning::new("over-budget", text).cure("a larger --budget or a longer --interval"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::WindowCost;

    #[test]
    fn what_the_budget_costs_and_gives_again_is_said_once_each() {
        let (mut governor, mut shed) = (Governor::new(0.01), Shed::default());
        let mut run = |threads_s: f64, windows: u32| {
            let (mut gone, mut back) = (Vec::new(), Vec::new());
            for _ in 0..windows {
                governor.window(WindowCost { window_s: 60.0, threads_s, programs_s: 0.0 });
                let change = shed.change(&governor);
                assert_eq!(change.warning(0.01).is_some(), !change.gone.is_empty());
                gone.extend(change.gone);
                back.extend(change.back);
            }
            (gone, back)
        };
        assert_eq!(run(6.0, 100), (SHEDS.to_vec(), Vec::new()));
        let mut last_first = SHEDS;
        last_first.reverse();
        assert_eq!(run(0.0, 100), (Vec::new(), last_first.to_vec()));
    }

    #[test]
    fn the_warning_names_what_is_left_out_the_budget_and_the_remedy() {
        let change = ShedChange { gone: vec!["short windows", "BPF probes"], back: Vec::new() };
        let text = change.warning(0.02).unwrap().to_string();
        assert!(
            text.starts_with(
                "left out to keep the budget of 2.0 % of a CPU: short windows, BPF probes"
            ),
            "{text}"
        );
        assert!(text.contains("--budget"), "{text}");
        assert_eq!(ShedChange { gone: Vec::new(), ..change }.warning(0.02), None);
    }
}
