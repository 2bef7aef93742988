//! Undoing: the old values, last change first, each read back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rehearsal::Rehearsal;
use super::{Journal, JournalEntry};
use crate::HostError;
use crate::pairs::Pairs;
use crate::read::identity::network_namespace;
use crate::target::Group;
use crate::write::change::{Target, same_of, stands};
use crate::write::fault::{self, Point};
use crate::write::setter::Setter;

use super::form::Line;

/// How to undo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// What others changed since stays as they made it.
    pub keeps_foreign: bool,
    /// Nothing is written: only the planned actions are reported.
    pub is_rehearsal: bool,
}

/// How the restoring of one change went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Restored {
    /// It reads back as the value from before.
    #[serde(rename = "restored")]
    Yes,
    /// It had the value from before already.
    Already,
    /// Another program had changed all of it since, and it stays so.
    Kept,
    /// What it belonged to is gone, and the setting with it.
    Gone {
        /// What was looked for.
        why: String,
    },
    /// It has not the value from before.
    #[serde(rename = "failed")]
    No {
        /// Why, in the kernel's words where there are any.
        why: String,
    },
}

impl Restored {
    /// Why it has not the value from before, where it has not.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Gone { why } | Self::No { why } => Some(why),
            Self::Yes | Self::Already | Self::Kept => None,
        }
    }
}

/// What undoing did, for each entry that was not undone yet, last change first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undo {
    /// The entry's number.
    #[serde(skip)]
    pub n: u32,
    /// The setting, under its present name.
    #[serde(rename = "set")]
    pub target: Target,
    /// The old value; for a group, the part that the change had altered.
    pub value: String,
    /// How it went.
    #[serde(flatten)]
    pub restored: Restored,
    /// What it was when it was restored; `None` when it had the old value already or could not be restored.
    #[serde(skip)]
    pub found: Option<String>,
    /// The value that another program had set in between; for a group, only values that the change had altered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// Settings that changed along with this one, with the values that another program had set in between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_coupled: Vec<(Target, String)>,
    /// Settings that changed along and could not be restored, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coupled: Vec<(Target, String)>,
}

impl Undo {
    /// Whether all is as it was before the change.
    pub fn is_whole(&self) -> bool {
        self.restored.why().is_none() && self.coupled.is_empty()
    }
}

impl Journal {
    /// Restores the old values, last change first, also where another program changed them since.
    ///
    /// **Errors** as [`Journal::undo_as`].
    pub fn undo<S: Setter>(&mut self, setter: &mut S) -> Result<Vec<Undo>, HostError> {
        self.undo_as(setter, Manner::default())
    }

    /// Restores the old values, last change first. Goes on after a failure and tells it. Values that the changes did not
    /// alter stay as they are.
    ///
    /// **Errors** `Unsupported` for a journal of an earlier boot (what it changed is gone already) and from another
    /// network namespace than that of the changes.
    pub fn undo_as<S: Setter>(
        &mut self,
        setter: &mut S,
        manner: Manner,
    ) -> Result<Vec<Undo>, HostError> {
        let what = || format!("undo {}", self.path.display());
        if self.is_of_earlier_boot()? {
            let needs = "the boot that it was written in; the restart has undone it".into();
            return Err(HostError::Unsupported { what: what(), needs });
        }
        if network_namespace()? != self.contents.netns {
            let needs = format!(
                "the network namespace in which the changes were made (net:[{}])",
                self.contents.netns
            );
            return Err(HostError::Unsupported { what: what(), needs });
        }
        let open = |at: &usize| self.contents.entries[*at].is_open();
        let order: Vec<usize> = (0..self.contents.entries.len()).rev().filter(open).collect();
        if manner.is_rehearsal {
            let setter = &mut Rehearsal::new(setter);
            let entries = order.iter().map(|at| &self.contents.entries[*at]);
            return Ok(entries.map(|entry| restore(setter, entry, manner)).collect());
        }
        let mut done = Vec::new();
        for at in order {
            fault::at(Point::BeforeRestore);
            let mut undo = restore(setter, &self.contents.entries[at], manner);
            fault::at(Point::AfterRestore);
            if undo.is_whole()
                && let Err(error) = self.mark(at)
            {
                let why = format!("it is restored, but the journal can't say so: {error}");
                undo.restored = Restored::No { why };
            }
            fault::at(Point::AfterUndone);
            done.push(undo);
        }
        Ok(done)
    }

    /// Marks an entry as undone, and later ones of the same target with it: their old values are newer than this one.
    fn mark(&mut self, at: usize) -> Result<(), HostError> {
        let later = &self.contents.entries[at..];
        let superseded = |entry: &&JournalEntry| !entry.undone && entry.target == later[0].target;
        let all: Vec<u32> = later.iter().rev().filter(superseded).map(|entry| entry.n).collect();
        all.into_iter().try_for_each(|n| self.note(Line::Undone { n }))
    }
}

impl JournalEntry {
    /// The value before, as far as the change altered it: of a group, the values that were asked for and those that it took
    /// along. All of it where nobody read what came of the change.
    fn own_value(&self) -> String {
        let is_whole = matches!(self.target, Target::Group { group: Group::LinkModes, .. });
        let Some((Some(after), _)) = &self.end else { return self.before.clone() };
        let parse = |text: &str| text.parse::<Pairs>();
        match (parse(&self.before), parse(after), parse(&self.asked)) {
            (Ok(before), Ok(after), Ok(asked)) if self.target.has_parts() && !is_whole => {
                let altered = before.unlike(&after);
                let is_own = |name: &str| altered.get(name).is_some() || asked.get(name).is_some();
                before.only(|name, _| is_own(name)).to_string()
            }
            _ => self.before.clone(),
        }
    }

    /// What another program made of `own` since the change left it; `None` when it is as it was left.
    fn foreign(&self, target: &Target, own: &str, now: &str) -> Option<String> {
        let (Some(left), _) = self.end.as_ref()? else { return None };
        if stands(target, &target.as_far_as(left, own), now) {
            return None;
        }
        match (left.parse::<Pairs>(), target.as_far_as(now, own).parse::<Pairs>()) {
            (Ok(left), Ok(now)) if target.has_parts() => Some(now.unlike(&left).to_string()),
            _ => Some(now.to_owned()),
        }
    }
}

/// The setting under its present name, when what it belonged to is still there.
fn located<S: Setter>(setter: &mut S, entry: &JournalEntry) -> Result<Target, Restored> {
    let Some(identity) = &entry.identity else { return Ok(entry.target.clone()) };
    match setter.locate(&entry.target, identity) {
        Ok(Some(target)) => Ok(target),
        Ok(None) => {
            let why = format!("{identity} is gone, and {} with it", entry.target);
            Err(Restored::Gone { why })
        }
        Err(error) => Err(Restored::No { why: error.to_string() }),
    }
}

fn restore<S: Setter>(setter: &mut S, entry: &JournalEntry, manner: Manner) -> Undo {
    let mut undo = Undo {
        n: entry.n,
        target: entry.target.clone(),
        value: entry.own_value(),
        restored: Restored::Already,
        found: None,
        foreign: None,
        foreign_coupled: Vec::new(),
        coupled: Vec::new(),
    };
    match located(setter, entry) {
        Ok(target) => undo.target = target,
        Err(restored) => {
            undo.restored = restored;
            return undo;
        }
    }
    let coupled = Coupled::read(setter, entry, &undo.target);
    let now = setter.read(&undo.target).ok().flatten();
    undo.foreign = now
        .as_deref()
        .filter(|now| !stands(&undo.target, &undo.value, now))
        .and_then(|now| entry.foreign(&undo.target, &undo.value, now));
    let mut is_kept = false;
    if let Some(foreign) = undo.foreign.as_ref().filter(|_| manner.keeps_foreign) {
        undo.value = without(&undo.target, &undo.value, foreign);
        is_kept = undo.value.is_empty();
    }
    undo.restored = if is_kept {
        Restored::Kept
    } else {
        match put_back(setter, &undo.target, &undo.value) {
            Ok(None) => Restored::Already,
            Ok(found) => {
                undo.found = found;
                Restored::Yes
            }
            Err(why) => Restored::No { why },
        }
    };
    for one in coupled {
        one.put_back(setter, manner, &mut undo);
    }
    undo
}

/// What of `value` others left alone: of a group, the values that `foreign` does not name.
fn without(target: &Target, value: &str, foreign: &str) -> String {
    match (value.parse::<Pairs>(), foreign.parse::<Pairs>()) {
        (Ok(value), Ok(foreign)) if target.has_parts() => {
            value.only(|name, _| foreign.get(name).is_none()).to_string()
        }
        _ => String::new(),
    }
}

/// The value that the change gave another setting.
enum Left {
    /// Nothing: it was as before.
    Alone,
    /// This.
    As(String),
    /// Nobody knows: it could not be read, or nobody looked.
    Unknown,
}

/// A setting that a change may take along, and its undoing with it, under its present name.
struct Coupled {
    target: Target,
    before: String,
    left: Left,
    now: Option<String>,
}

impl Coupled {
    fn read<S: Setter>(setter: &mut S, entry: &JournalEntry, owner: &Target) -> Vec<Self> {
        let mut all = Vec::new();
        for (target, before) in &entry.coupled {
            let left = match &entry.taken {
                None => Left::Unknown,
                Some(taken) => match taken.iter().find(|(of, _)| of == target) {
                    None => Left::Alone,
                    Some((_, Some(left))) => Left::As(left.clone()),
                    Some((_, None)) => Left::Unknown,
                },
            };
            let target = match owner.device() {
                Some(dev) if target.device() == entry.target.device() => {
                    target.clone().on_device(dev)
                }
                _ => target.clone(),
            };
            let now = setter.read(&target).ok().flatten();
            all.push(Self { target, before: before.clone(), left, now });
        }
        all
    }

    /// The value that others gave it since the change altered it.
    fn foreign(&self) -> Option<&String> {
        let (Left::As(left), Some(now)) = (&self.left, &self.now) else { return None };
        let is_as = |value: &str| same_of(&self.target, value, now);
        (!is_as(left) && !is_as(&self.before)).then_some(now)
    }

    /// What the change took along becomes what it was before it, what the undoing takes along what it was until now.
    fn put_back<S: Setter>(self, setter: &mut S, manner: Manner, undo: &mut Undo) {
        let foreign = self.foreign().cloned();
        if let Some(value) = &foreign {
            undo.foreign_coupled.push((self.target.clone(), value.clone()));
        }
        let value = match (self.left, self.now) {
            (Left::Alone, None) => return,
            (Left::Alone, Some(now)) => now,
            (_, Some(now)) if foreign.is_some() && manner.keeps_foreign => now,
            _ => self.before,
        };
        if let Err(why) = put_back(setter, &self.target, &value) {
            undo.coupled.push((self.target, why));
        }
    }
}

/// Restores one value; what was found instead of it, when it had to be written.
fn put_back<S: Setter>(
    setter: &mut S,
    target: &Target,
    value: &str,
) -> Result<Option<String>, String> {
    let read = |setter: &mut S| {
        let now = setter.read(target).map_err(|error| error.reason())?;
        now.ok_or_else(|| "it can't be read any more".to_owned())
    };
    let found = read(setter)?;
    if stands(target, value, &found) {
        return Ok(None);
    }
    let had_carrier = setter.has_carrier(target);
    let written = setter.restore(target, value);
    if had_carrier {
        setter.await_carrier(target);
    }
    let now = read(setter)?;
    match written {
        _ if stands(target, value, &now) => Ok(Some(found)),
        Err(error) => Err(error.reason()),
        Ok(()) if stands(target, &found, &now) => {
            Err(format!("the kernel accepted {value} but left {now}"))
        }
        Ok(()) => Err(format!("the kernel made it {now} instead of {value}")),
    }
}
