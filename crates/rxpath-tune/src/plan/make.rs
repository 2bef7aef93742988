//! From requests to a plan: values already set are left out, writes to one target are joined, order and effects are
//! found.

use std::fmt;

use rxpath_core::SortFew;
use rxpath_host::pairs::Pairs;
use rxpath_host::write::change::{ChangeOutcome, SettingChange, same_of};
use rxpath_host::write::setter::Setter;
use rxpath_host::{Group, HostError, Knob, Target};

use super::{LeftOut, NoStep, Plan, PlanStep};
use crate::effects::effects;
use crate::limits;

/// A knob, the value that it should get, and who wants that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRequest {
    /// What.
    pub knob: Knob,
    /// To what.
    pub value: String,
    /// The id of a rule, or `asked for`.
    pub because: String,
}

/// The reason of a request given by hand.
pub const ASKED_FOR: &str = "asked for";
/// [`NoStep::Already`] in words.
pub const ALREADY: &str = "already set";
/// `EOPNOTSUPP`: the driver lacks the operation.
const EOPNOTSUPP: i32 = 95;

/// Whether a request given by hand is no step, other than because it is set already.
pub fn refuses_by_hand(requests: &[ChangeRequest], plan: &Plan) -> bool {
    let by_hand = requests.iter().filter(|request| request.because == ASKED_FOR);
    let names: Vec<String> = by_hand.map(ChangeRequest::to_string).collect();
    let mut refused = plan.left_out.iter().filter(|left| !left.is_set);
    refused.any(|left| names.contains(&left.what))
}

impl fmt::Display for ChangeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.knob, self.value)
    }
}

impl ChangeRequest {
    /// Reads `KNOB=VALUE`.
    ///
    /// **Errors** in one line what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("`{text}`: expected KNOB=VALUE"))?;
        let knob: Knob = name.parse().map_err(|e| format!("{e}"))?;
        let value = value.trim();
        if knob.target.has_parts() && knob.part.is_none() {
            return Err(format!("`{name}` is a group: name one of its values, {name}/NAME=VALUE"));
        }
        limits::may_change(&knob.target)
            .and_then(|()| limits::well_formed(&knob.target, &knob.text(value)))
            .map_err(|why| format!("{name}: {why}"))?;
        Ok(Self { knob, value: value.into(), because: ASKED_FOR.into() })
    }
}

/// Adds steps for these requests to an empty plan, in the order of writing.
pub fn make<S: Setter>(
    setter: &mut S,
    driver: &dyn Fn(&str) -> Option<String>,
    requests: &[ChangeRequest],
    mut plan: Plan,
) -> Plan {
    for request in requests {
        let Err(why) = add(setter, request, &mut plan) else { continue };
        let by = if request.because == ASKED_FOR {
            String::new()
        } else {
            request.because.clone() + ": "
        };
        plan.left_out.push(LeftOut::new(format!("{by}{request}"), why));
    }
    for step in &mut plan.steps {
        let driver = step.set.device().and_then(driver);
        step.effects = effects(&step.set, driver.as_deref(), (&step.old, &step.new));
    }
    let shrinks = plan.steps.iter().any(shrinks_channels);
    plan.steps.sort_few_by_key(|step| rank(&step.set, shrinks));
    plan
}

/// Adds one request.
fn add<S: Setter>(setter: &mut S, request: &ChangeRequest, plan: &mut Plan) -> Result<(), NoStep> {
    let (target, new) = (&request.knob.target, request.knob.text(&request.value));
    limits::may_change(target)?;
    limits::well_formed(target, &new)?;
    let whole = setter.read(target).map_err(|error| unavailable(&error))?;
    let whole = whole.ok_or("it can't be read, so a change could not be undone")?;
    let old = target.as_far_as(&whole, &new);
    if let Some(part) = request.knob.part.as_ref().filter(|_| old.is_empty()) {
        let names = whole.parse::<Pairs>().unwrap_or_default();
        let names: Vec<&str> = names.iter().map(|(name, _)| name).collect();
        return Err(format!("this driver has no {part}; it has {}", names.join(", ")).into());
    }
    limits::within(target, (&whole, &new), &setter.bounds(target))?;
    let asked = setter.spell_out(target, &new).map_err(|error| error.reason())?;
    let now = SettingChange::judge(target.clone(), Some(whole.clone()), &asked, Some(whole));
    if now.outcome == ChangeOutcome::Applied {
        return Err(NoStep::Already);
    }
    let because = vec![request.because.clone()];
    let Some(step) = plan.steps.iter_mut().find(|step| step.set == *target) else {
        let effects = Vec::new();
        plan.steps.push(PlanStep { set: target.clone(), old, new, because, effects });
        return Ok(());
    };
    merge(step, &old, &new)?;
    if !step.because.contains(&request.because) {
        step.because.push(request.because.clone());
    }
    Ok(())
}

/// Joins a request with an earlier one for the same target.
fn merge(step: &mut PlanStep, old: &str, new: &str) -> Result<(), String> {
    let by = step.because.join(", ");
    let conflict = |other: &str| Err(format!("two values are requested: {other} ({by}) and {new}"));
    if !step.set.has_parts() {
        return if same_of(&step.set, &step.new, new) { Ok(()) } else { conflict(&step.new) };
    }
    let parse = |text: &str| text.parse::<Pairs>().unwrap_or_default();
    let (all, more) = (parse(&step.new), parse(new));
    for (name, value) in more.iter() {
        if let Some(other) = all.get(name).filter(|other| *other != value) {
            return conflict(&format!("{name}={other}"));
        }
    }
    step.old = parse(&step.old).with(&parse(old)).to_string();
    step.new = all.with(&more).to_string();
    Ok(())
}

fn unavailable(error: &HostError) -> String {
    match error {
        HostError::Kernel { errno: EOPNOTSUPP, .. } => {
            format!("this driver does not have it ({})", error.reason())
        }
        HostError::Unsupported { needs, .. } => {
            let who = if needs.starts_with("a driver") { "driver" } else { "kernel or driver" };
            // `a driver that has it` says no more.
            let is_known = needs.contains("driver that ha");
            let more = if is_known { String::new() } else { format!(" (needs {needs})") };
            format!("this {who} does not have it{more}")
        }
        HostError::Missing { path } => format!("not here: there is no {}", path.display()),
        other => other.to_string(),
    }
}

fn shrinks_channels(step: &PlanStep) -> bool {
    if !matches!(step.set, Target::Group { group: Group::Channels, .. }) {
        return false;
    }
    let (old, new) = (step.old.parse::<Pairs>(), step.new.parse::<Pairs>());
    let (Ok(old), Ok(new)) = (old, new) else { return false };
    let number = |pairs: &Pairs, name: &str| pairs.get(name).and_then(|v| v.parse::<u64>().ok());
    new.iter().any(|(name, _)| number(&new, name) < number(&old, name))
}

/// Steps that recreate queues come before settings of queues. A table that names a queue is only written while the
/// queue is there: after channels that grow, before channels that shrink. Undoing in reverse order then holds the same.
fn rank(target: &Target, channels_shrink: bool) -> u8 {
    match target {
        Target::Group { group: Group::Rss, .. } if channels_shrink => {
            Group::Channels.properties().rank - 1
        }
        Target::Group { group, .. } => group.properties().rank,
        Target::QueueCoalesce { .. } => 81,
        Target::Attr { attr, .. } if !attr.contains('/') => 85,
        Target::Napi { .. } => 86,
        Target::Attr { .. } => 87,
        Target::Irq { .. } => 90,
        Target::Sysfs { .. } => 95,
        Target::Sysctl { .. } => 96,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::HostMark;
    use crate::plan::tests::FakeHost;

    #[test]
    fn a_driver_that_lacks_a_setting_is_said_once_and_a_kernel_with_what_it_needs() {
        let of = |needs: &str| {
            let (what, needs) = ("read rings".into(), needs.into());
            unavailable(&HostError::Unsupported { what, needs })
        };
        assert_eq!(of("a driver that has it"), "this driver does not have it");
        assert_eq!(of("a kernel or driver that has it"), "this kernel or driver does not have it");
        let newer = "this kernel or driver does not have it (needs a newer kernel)";
        assert_eq!(of("a newer kernel"), newer);
    }

    #[test]
    fn a_name_with_a_blank_joins_others_as_it_is() {
        let mut step = PlanStep {
            set: "eth0/priv-flags".parse().unwrap(),
            old: "rx=off".into(),
            new: "rx=on".into(),
            because: vec![ASKED_FOR.into()],
            effects: Vec::new(),
        };
        for _ in 0..2 {
            merge(&mut step, "tx%20push=off", "tx%20push=on").unwrap();
            let joined = (step.old.as_str(), step.new.as_str());
            assert_eq!(joined, ("rx=off tx%20push=off", "rx=on tx%20push=on"));
        }
        let why = "two values are requested: tx%20push=on (asked for) and tx%20push=off";
        assert_eq!(merge(&mut step, "tx%20push=off", "tx%20push=off"), Err(why.to_owned()));
    }

    #[test]
    fn names_that_the_driver_has_can_be_typed_as_they_are_shown() {
        let mut host = FakeHost::new();
        host.values.insert("eth0/priv-flags".into(), "tx%20push=off 50%25=off".into());
        let mut planned = |name: &str| {
            let request = ChangeRequest::parse(&format!("eth0/priv-flags/{name}=on")).unwrap();
            let plan = Plan::new("2026-01-01T00:00:00Z".into(), HostMark::default());
            make(&mut host, &|_| None, &[request], plan)
        };
        let plan = planned("tx%20pull");
        assert_eq!(plan.left_out[0].why, "this driver has no tx%20pull; it has tx%20push, 50%25");
        for name in ["tx%20push", "50%25"] {
            let plan = planned(name);
            assert_eq!(plan.steps.len(), 1, "{:?}", plan.left_out);
            let step = (plan.steps[0].old.as_str(), plan.steps[0].new.as_str());
            assert_eq!(step, (format!("{name}=off").as_str(), format!("{name}=on").as_str()));
        }
    }
}
