//! Settings that would take down the link of the ssh session: the plan says so, before any trial.

use rxpath_tune::plan::Plan;
use rxpath_tune::plan::session::{self, SessionAtRisk};

use super::PlannedSettings;
use crate::error::{LabError, cannot};

/// The plan; without its steps and with the reason, if it takes down the link of the ssh session that this endpoint belongs to.
pub(super) fn spared(planned: PlannedSettings) -> Result<PlannedSettings, LabError> {
    if planned.steps.is_empty() {
        return Ok(planned);
    }
    let plan = Plan::parse(&planned.file, "the plan");
    let plan = plan.map_err(|error| cannot(error.to_string(), ""))?;
    Ok(match session::spares(&plan) {
        Ok(()) => planned,
        Err(risk) => at_risk(planned, &risk),
    })
}

/// The command's own words name the other end of the session, which a run directory does not keep.
fn at_risk(planned: PlannedSettings, risk: &SessionAtRisk) -> PlannedSettings {
    let why = match risk {
        SessionAtRisk::Cut { dev, .. } => {
            format!("{dev} carries the ssh session, and this takes its link down")
        }
        SessionAtRisk::Unseen(_) => risk.to_string(),
    };
    let refused = match planned.refused.as_str() {
        "" => why,
        // It was asked for alone, too.
        known if known.contains(&why) => known.to_owned(),
        known => format!("{known}; {why}"),
    };
    PlannedSettings { steps: Vec::new(), refused, ..planned }
}

#[cfg(test)]
mod tests {
    use rxpath_tune::effects::Effect;
    use rxpath_tune::plan::PlanStep;

    use super::*;

    fn planned(why: &str) -> PlannedSettings {
        let step = PlanStep {
            set: "eno1/rings".parse().unwrap(),
            old: "rx=256".into(),
            new: "rx=512".into(),
            because: Vec::new(),
            effects: vec![Effect::LinkBounce],
        };
        PlannedSettings { steps: vec![step], refused: why.into(), file: String::new() }
    }

    #[test]
    fn what_takes_down_the_link_of_ssh_is_refused_once_and_does_not_name_the_other_end() {
        let client = "192.0.2.9".parse().unwrap();
        let risk = SessionAtRisk::Cut { dev: "eno1".into(), client };
        let why = "eno1 carries the ssh session, and this takes its link down";
        let alone = at_risk(planned(""), &risk);
        assert_eq!((alone.steps.len(), alone.refused.as_str()), (0, why));
        assert_eq!(at_risk(planned(why), &risk).refused, why);
        let other = at_risk(planned("x: no such device"), &risk).refused;
        assert_eq!(other, format!("x: no such device; {why}"));
    }

    #[test]
    fn a_plan_without_steps_is_not_read() {
        let nothing = PlannedSettings { refused: "no".into(), ..PlannedSettings::default() };
        assert_eq!(spared(nothing.clone()).unwrap(), nothing);
        // Else it is one that `rxpath tune apply` would take.
        assert!(spared(planned("")).is_err());
    }
}
