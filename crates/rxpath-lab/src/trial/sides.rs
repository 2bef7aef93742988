//! Whose a network namespace is.

use rxpath_core::PathSide;

/// The side of an experiment to which the network namespace with this inode belongs, if any.
pub type Sides<'a> = &'a dyn Fn(u32) -> Option<PathSide>;
