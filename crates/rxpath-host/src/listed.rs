//! Lists of names that are data: text files next to the code that reads them.

/// The lines of a list, without blank ones and comments (`#`).
pub(crate) fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The lines of the section `name` (`[options]`) of a list.
pub(crate) fn section(list: &'static str, name: &str) -> impl Iterator<Item = &'static str> {
    let inside = lines(list).skip_while(move |line| *line != name).skip(1);
    inside.take_while(|line| !line.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let list = "# of a test\n[a]\none\n\n[b]\n# more\ntwo\nthree\n";
        assert_eq!(section(list, "[a]").collect::<Vec<_>>(), ["one"]);
        assert_eq!(section(list, "[b]").collect::<Vec<_>>(), ["two", "three"]);
        assert_eq!((section(list, "[c]").count(), lines(list).count()), (0, 5));
    }
}
