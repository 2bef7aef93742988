//! Fluid bounds.
