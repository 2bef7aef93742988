//! The full verdict of every scene.

use rxpath_diagnose::diagnose;

use crate::made::{scenes, scenes_of_segments, text};

#[test]
fn every_scene_reads_as_recorded() {
    for (name, evidence) in scenes().into_iter().chain(scenes_of_segments()) {
        insta::assert_snapshot!(name, text(&diagnose(&evidence)));
    }
}
