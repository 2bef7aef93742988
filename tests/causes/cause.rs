//! One cause: the truth, the acceptable answers, and how it is made.

use crate::grade::Said;
use crate::host::Host;

/// Makes the cause and its load: they stay until the host of the cause goes. Or why it can't be made here.
pub type Make = fn(&mut Host) -> Result<Made, String>;

pub struct Cause {
    pub name: &'static str,
    /// One sentence.
    pub truth: &'static str,
    pub right: &'static [Said],
    /// Right as far as it goes, where the answer leaves a doubt.
    pub honest: &'static [Said],
    pub make: Make,
}

/// A line of the list.
pub const fn cause(
    name: &'static str,
    truth: &'static str,
    right: &'static [Said],
    make: Make,
) -> Cause {
    Cause { name, truth, right, honest: &[], make }
}

impl Cause {
    pub const fn or(mut self, honest: &'static [Said]) -> Self {
        self.honest = honest;
        self
    }
}

/// How much is lost just now, by counts of this suite: a share, or for TCP whatever falls when it gets better.
pub type Measure = Box<dyn Fn(&Host) -> f64>;

/// Applies a remedy.
pub type Apply = Box<dyn FnOnce(&mut Host) -> Result<(), String>>;

/// What was made.
pub struct Made {
    /// The namespace that is watched.
    pub watched: &'static str,
    /// More words for `rxpath diagnose`.
    pub words: Vec<String>,
    pub measure: Option<Measure>,
    /// What is changed.
    pub remedy: Result<(&'static str, Apply), &'static str>,
}

impl Made {
    /// Seen from the receiver, without a remedy, because of this.
    pub fn without(why: &'static str) -> Self {
        Self { watched: "rx", words: Vec::new(), measure: None, remedy: Err(why) }
    }

    /// Seen from the receiver; what is changed then.
    pub fn with(
        words: &'static str,
        apply: impl FnOnce(&mut Host) -> Result<(), String> + 'static,
    ) -> Self {
        Self { remedy: Ok((words, Box::new(apply))), ..Self::without("") }
    }

    pub fn seen_from(mut self, namespace: &'static str) -> Self {
        self.watched = namespace;
        self
    }

    pub fn asked(mut self, words: &[&str]) -> Self {
        self.words = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub fn by(mut self, measure: impl Fn(&Host) -> f64 + 'static) -> Self {
        self.measure = Some(Box::new(measure));
        self
    }
}
