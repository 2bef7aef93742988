//! The bundled experiments as topics.

use rxpath_lab::scenario;

use crate::output::explain::topic::{Topic, TopicKind};

pub(super) fn topics() -> anyhow::Result<Vec<Topic>> {
    let mut topics = Vec::new();
    for file in scenario::bundled()? {
        let expected = file.expected.clone().unwrap_or_else(|| "not stated".into());
        topics.push(
            Topic::new(TopicKind::Experiment, file.name.as_str(), file.question.as_str())
                .part("Question", file.question.as_str())
                .part("Expected", expected)
                .part("Variants", file.names().join(", "))
                .part("Run it", format!("rxpath run {} (--dry-run shows the plan)", file.name)),
        );
    }
    Ok(topics)
}
