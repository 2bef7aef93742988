//! What every part of the ledger needs: the input, the counters in view, terms and units.

pub(super) use rxpath_core::number::{grouped, signed};
pub(super) use rxpath_core::{PathSide, SortFew};

pub(super) use super::cards::WireFacts;
pub(super) use super::input::{LedgerInput, Link};
pub(super) use super::term::Term;
pub(super) use super::units::{Unit, Units};
pub(super) use super::view::View;
pub(super) use super::{Figure, Inexact, Place};
pub(super) use crate::counters::{Moved, name};
