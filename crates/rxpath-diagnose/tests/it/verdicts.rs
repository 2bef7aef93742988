//! The full verdict of every scene.

use rxpath_diagnose::diagnose;

use crate::made::{scenes, text};

#[test]
fn every_scene_reads_as_recorded() {
    for (name, evidence) in scenes() {
        insta::assert_snapshot!(name, text(&diagnose(&evidence)));
    }
}
