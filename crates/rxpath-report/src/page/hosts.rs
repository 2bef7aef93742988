//! The real hosts of a run: who sends and who receives, by which devices, and how well their clocks are known.

use maud::html;

use super::Section;
use crate::source::Run;

/// The section, or nothing where the run was on one machine.
pub(super) fn section(run: &Run) -> Option<Section> {
    let hosts = &run.manifest.hosts;
    (!hosts.is_empty()).then(|| Section {
        id: "hosts",
        title: "Hosts",
        lead: "The hosts of the run. Each reads its own counters and CPU time, on its own clock; instants are brought to \
               one clock, and the error of that is shown.",
        body: html! {
            dl.method {
                @for (alias, part) in hosts { dt { (alias) } dd { (part.text()) } }
            }
        },
    })
}
