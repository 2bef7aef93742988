//! Queues solved numerically where no formula is both closed and stable.

pub mod banded;
pub mod fixed_service;
