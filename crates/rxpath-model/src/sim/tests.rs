//! The simulator against itself, and against the published figures.
