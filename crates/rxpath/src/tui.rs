//! The live view of the path: state never draws, the view never fetches.
//!
//! A [`FrameSource`] gives frames, from this host or from a recording; [`state::App`] keeps the user's choices; [`view`]
//! draws both. Only the loop of [`screen`] uses the terminal.

mod cost;
mod explain;
#[cfg(feature = "lab")]
mod input;
mod mark;
#[cfg(feature = "lab")]
mod palette;
pub mod recorder;
#[cfg_attr(not(feature = "lab"), path = "tui/no_screen.rs")]
pub mod screen;
mod sheet;
pub mod source;
#[cfg(feature = "lab")]
mod state;
pub mod text;
#[cfg(feature = "lab")]
mod view;

pub use explain::remedies;

#[cfg(feature = "lab")]
#[cfg(test)]
mod tests;
