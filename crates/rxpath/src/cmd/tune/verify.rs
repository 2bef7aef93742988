//! `rxpath tune verify`.

use rxpath_host::write::journal::{Journal, Watch};
use rxpath_host::write::setter::HostSetter;
use rxpath_tune::verify::{Standing, UNREADABLE, Verified, verify};
use rxpath_tune::watch::deadline_ns;

use super::apply::within;
use super::shown::short;
use super::{StateArgs, no_journal, unreadable};
use crate::cmd::prelude::*;
use crate::cmd::values::seconds;

/// Options of `rxpath tune verify`.
#[derive(Debug, Args)]
pub struct VerifyCommand {
    /// Number of the journal; without it, all open journals
    id: Option<u32>,
    /// If all of it holds, undo it after this time from now on, instead of that of apply: the endpoint of an experiment
    #[arg(long, hide = true, value_name = "TIME", value_parser = seconds, requires = "id")]
    confirm_within: Option<Nanos>,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl VerifyCommand {
    /// Compares the recorded values with the current values.
    pub fn run(self) -> Outcome {
        if let Some((id, time)) = self.id.zip(self.confirm_within) {
            return self.extend(id, within(time)?);
        }
        // Checked before reading: a writer that ends in between has recorded its progress.
        let is_held = self.state.store().is_held();
        let listed = self.state.store().list()?;
        if let Some(id) = self.id.filter(|id| listed.iter().all(|one| one.id != *id)) {
            return Err(no_journal(id));
        }
        let (mut all, mut warnings, mut is_readable) = (Vec::new(), Vec::new(), true);
        for one in listed {
            if !self.id.map_or(one.is_open(), |id| id == one.id) {
                continue;
            }
            let contents = match one.contents {
                Ok(contents) => contents,
                Err(error) => {
                    warnings.push(Warning::new(UNREADABLE, unreadable(one.id, &error)));
                    is_readable = false;
                    continue;
                }
            };
            let contents = if is_held && contents.reached.is_none() {
                let words = format!("journal {}: a plan is being carried out now", one.id);
                warnings.push(Warning::new("being-applied", words));
                contents.being_written()
            } else {
                contents
            };
            match contents.elsewhere()? {
                Some(place) => {
                    let words = format!("journal {} is not compared: it is of {place}", one.id);
                    warnings.push(Warning::new("not-verified", words));
                }
                None => all.extend(verify(&mut HostSetter::default(), &contents)),
            }
        }
        self.print(&all, warnings)?;
        Ok(match (is_readable, all.iter().all(Verified::holds)) {
            (false, _) => Exit::Cannot,
            (true, true) => Exit::Done,
            (true, false) => Exit::Negative,
        })
    }

    /// Compares the values of one journal, and if all hold, gives its watchdog this time from now on.
    fn extend(&self, id: u32, time: Duration) -> Outcome {
        let (store, lock) = self.state.locked()?;
        let path = store.path(id);
        if !path.exists() {
            return Err(no_journal(id));
        }
        let mut journal = Journal::open(&path)?;
        let contents = journal.contents();
        let all = verify(&mut HostSetter::default(), contents);
        let waits = |watch: &Watch| watch.process.is_alive() && !contents.confirmed;
        let watch = contents.watch.filter(waits).filter(|_| contents.is_open());
        let is_here = contents.elsewhere()?.is_none();
        let exit = match watch {
            Some(watch) if is_here && all.iter().all(Verified::holds) => {
                journal.watch(Watch { deadline_ns: deadline_ns(time)?, ..watch })?;
                Exit::Done
            }
            _ => Exit::Negative,
        };
        drop(lock);
        self.print(&all, Vec::new())?;
        Ok(exit)
    }

    fn print(&self, all: &[Verified], warnings: Vec<Warning>) -> anyhow::Result<()> {
        if self.format.is_json() {
            let settings = json!({ "id": self.id });
            return output::json(&Envelope::new("tune-verify", settings, all, warnings));
        }
        all.iter().try_for_each(|verified| output::line(&line(verified)))?;
        for warning in &warnings {
            crate::note!("rxpath: {}", warning.text);
        }
        if all.is_empty() && warnings.is_empty() {
            output::line("nothing is changed")?;
        }
        Ok(())
    }
}

fn line(one: &Verified) -> String {
    let (target, asked) = (&one.target, short(&one.asked));
    let now = short(one.now.as_deref().unwrap_or("unreadable"));
    match &one.standing {
        Standing::Holds => format!("{target}: holds ({now})"),
        Standing::AsLeft => format!("{target}: as the kernel made it ({now}, asked for {asked})"),
        Standing::Ignored => {
            format!("{target}: ignored: the kernel accepted {asked}, but the value is {now}")
        }
        Standing::Refused { why } => format!("{target}: refused {asked}: {why}"),
        Standing::NeverReached => format!("{target}: never reached: {asked} was not tried"),
        Standing::Drifted => format!("{target}: drifted: {now}, asked for {asked}"),
        Standing::Gone => format!("{target}: gone"),
        Standing::Unread { why } => format!("{target}: can't be read: {why}"),
    }
}
