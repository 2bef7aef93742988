//! Every file of a crate is a module of it. What no `mod` names is in no build, so no compiler says that nobody needs it.

use std::fs;
use std::path::Path;

use super::circles::{Files, read};

/// The files that no `mod` of the file above names, and no `path` of any file.
fn unnamed(files: &Files) -> Vec<&str> {
    let is_named = |module: &str| {
        let (above, name) = module.rsplit_once("::").unwrap_or(("", module));
        let path = format!("/{name}.rs\")]");
        files.get(above).is_some_and(|code| code.contains(&format!("mod {name};")))
            || files.values().any(|code| code.contains(&path))
    };
    let modules = files.keys().map(String::as_str);
    modules.filter(|module| !module.is_empty() && !is_named(module)).collect()
}

#[test]
fn every_file_of_a_crate_is_a_module() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in fs::read_dir(crates).unwrap() {
        let entry = entry.unwrap();
        let mut files = Files::new();
        read(&entry.path().join("src"), "", &mut files);
        let unnamed = unnamed(&files);
        assert!(unnamed.is_empty(), "{:?}: nothing compiles {unnamed:?}", entry.file_name());
    }
}

#[test]
fn a_file_that_nothing_names_is_found() {
    let files = [
        ("", "mod lane;\n#[cfg_attr(not(feature = \"lab\"), path = \"agent/road.rs\")]\nmod way;"),
        ("lane", "pub mod near;"),
        ("lane::near", ""),
        ("lane::ear", ""),
        ("agent::road", ""),
        ("way", ""),
    ];
    let files: Files = files.map(|(module, text)| (module.to_owned(), text.to_owned())).into();
    assert_eq!(unnamed(&files), ["lane::ear"]);
}
