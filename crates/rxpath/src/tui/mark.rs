//! The meaning of a text. None depends on colour alone: each mark also has a sign or a word.

/// What a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A heading.
    Head,
    /// In order.
    Good,
    /// Needs attention.
    Warn,
    /// Bad.
    Bad,
    /// Unknown, or less important.
    Dim,
    /// Selected.
    Selected,
}
