//! A setter that reads the host and only remembers requested writes: it shows what an undo would do, without doing it.

use std::collections::BTreeMap;

use crate::HostError;
use crate::pairs::Pairs;
use crate::read::identity::Identity;
use crate::target::Target;
use crate::write::setter::Setter;

/// Stands for `setter` where nothing may be written.
pub(super) struct Rehearsal<'a, S> {
    setter: &'a mut S,
    written: BTreeMap<Target, String>,
}

impl<'a, S: Setter> Rehearsal<'a, S> {
    pub(super) fn new(setter: &'a mut S) -> Self {
        Self { setter, written: BTreeMap::new() }
    }
}

impl<S: Setter> Setter for Rehearsal<'_, S> {
    fn identify(&mut self, target: &Target) -> Result<Option<Identity>, HostError> {
        self.setter.identify(target)
    }

    fn locate(&mut self, target: &Target, was: &Identity) -> Result<Option<Target>, HostError> {
        self.setter.locate(target, was)
    }

    fn read(&mut self, target: &Target) -> Result<Option<String>, HostError> {
        match self.written.get(target) {
            Some(value) => Ok(Some(value.clone())),
            None => self.setter.read(target),
        }
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<(), HostError> {
        let mut value = value.to_owned();
        if target.has_parts()
            && let (Some(now), Ok(asked)) = (self.read(target)?, value.parse::<Pairs>())
        {
            value = asked.with(&now.parse().unwrap_or_default()).to_string();
        }
        self.written.insert(target.clone(), value);
        Ok(())
    }
}
