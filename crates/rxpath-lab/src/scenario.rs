//! What an experiment is: its question, its lab, its two workloads, its variants and its trials.

pub mod spec;
