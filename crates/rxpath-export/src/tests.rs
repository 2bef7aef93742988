//! What holds for the whole page, whatever the frames are.

pub mod bounded;
mod monotonic;
