//! Effects that a search on real traffic may have only if the user allows them.

use rxpath_tune::auto::Risk;

/// Effects that a candidate may have only if the user allows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Allow {
    /// Settings of the whole host, or that use more power or CPU time
    Host,
    /// Queues are made again
    Queues,
    /// The link is lost for a moment
    Link,
}

impl Allow {
    /// What a candidate of this risk needs.
    pub fn needed(risk: Risk) -> Option<Self> {
        match risk {
            Risk::None => None,
            Risk::Wide => Some(Self::Host),
            Risk::Queues => Some(Self::Queues),
            Risk::Link => Some(Self::Link),
        }
    }

    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Queues => "queues",
            Self::Link => "link",
        }
    }

    /// What it permits.
    pub fn words(self) -> &'static str {
        match self {
            Self::Host => "it holds for the whole host, or uses more power or CPU time",
            Self::Queues => "queues are made again",
            Self::Link => "the link may be lost for a moment",
        }
    }
}
