//! Tests of the built program that need no root.

mod dependency_rule;
