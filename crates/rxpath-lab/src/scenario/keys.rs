//! Every key that a scenario can set, by its dotted name, and the reference of all keys.

use rxpath_remote::inventory::is_alias;

use super::error::{nearest, suggestion};
use super::key::Key;
use super::sections::{
    Background, LOAD_KEYS, Lab, LoadOptions, Observe, Place, SERVE_KEYS, Section, ServeOptions,
    Trials,
};
use super::tune;

/// All keys in the order of the reference.
pub(super) fn keys() -> impl Iterator<Item = &'static Key> {
    let serve = SERVE_KEYS.iter().chain(ServeOptions::KEYS);
    let load = LOAD_KEYS.iter().chain(LoadOptions::KEYS);
    let lab = Place::KEYS.iter().chain(Lab::KEYS).chain(tune::KEYS).chain(Background::KEYS);
    lab.chain(Observe::KEYS).chain(serve).chain(load).chain(Trials::KEYS)
}

/// The key of that name: one stands for those of all hosts.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    let of_host = name.strip_prefix("tune.").is_some_and(is_alias);
    let known = |name: &str| keys().find(|key| key.name == name);
    known(name).or_else(|| known(tune::OF_HOST).filter(|_| of_host))
}

/// The names in one section, without the section.
pub(super) fn names_in(section: &str) -> Vec<&'static str> {
    keys().filter_map(|key| key.name.strip_prefix(section)?.strip_prefix('.')).collect()
}

/// What is right instead of an unknown `section.name`.
pub(super) fn instead_of(section: &str, name: &str) -> String {
    let plain = name.replace('-', "_");
    let elsewhere = keys().find_map(|key| {
        let (other, own) = key.name.split_once('.')?;
        (own == plain && other != section).then_some(other)
    });
    let known = names_in(section);
    match (nearest(name, known.iter().copied()), elsewhere) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(other)) => format!("`{plain}` belongs to [{other}]"),
        (None, None) => suggestion(name, "keys", &known),
    }
}

/// The full key for a path that lacks its section or has a wrong one.
pub(super) fn full_name(path: &str) -> String {
    let own = path.rsplit('.').next().unwrap_or(path).replace('-', "_");
    let same = |key: &&Key| key.name.split_once('.').is_some_and(|(_, name)| name == own);
    let full: Vec<&str> = keys().filter(same).map(|key| key.name).collect();
    if !full.is_empty() {
        return format!("did you mean `{}`?", full.join("` or `"));
    }
    match nearest(path, keys().map(|key| key.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "keys begin with topology., lab., tune., background., observe., serve., load., trials. or \
                 variant.NAME."
                .into()
        }
    }
}

/// Name, form and meaning of every key, for the reference.
pub fn reference() -> Vec<[String; 3]> {
    keys().map(|key| [key.name.into(), key.kind.wanted(), key.doc.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_option_says_so() {
        let says = |key: &Key| key.doc.ends_with("(not an option)");
        assert!(SERVE_KEYS.iter().chain(LOAD_KEYS).all(says));
        assert!(!ServeOptions::KEYS.iter().chain(LoadOptions::KEYS).any(says));
    }

    #[test]
    fn names_are_unique_and_dotted() {
        let mut names: Vec<&str> = keys().map(|key| key.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| name.split('.').count() == 2));
    }

    #[test]
    fn a_key_of_the_other_side_is_pointed_at() {
        assert_eq!(instead_of("serve", "rate"), "`rate` belongs to [load]");
        assert_eq!(instead_of("load", "unconected"), "did you mean `unconnected`?");
    }
}
