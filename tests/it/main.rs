//! Tests of the built program that need no root.

mod corpus;
mod dependency_rule;
mod report_browser;
#[path = "../support/skip.rs"]
mod skip;
