//! serde's messages in the words of someone who writes a scenario: what is wrong, and what would be right.

use super::error::suggestion;

/// What is wrong with a part of `owner` ("a variant", "it"), and what would be right where the message says it.
pub(super) fn reworded(why: &str, owner: &str) -> (String, Option<String>) {
    let mut quoted = why.split('`').skip(1).step_by(2);
    let word = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    if why.starts_with("unknown field ") {
        return (format!("{owner} has no key `{word}`"), Some(suggestion(word, "keys", &known)));
    }
    if why.starts_with("unknown variant ") {
        return (format!("`{word}` is not known"), Some(suggestion(word, "words", &known)));
    }
    if why.starts_with("missing field ") {
        return (format!("{owner} has no `{word}`"), Some(format!("add {word} = …")));
    }
    let mismatch =
        why.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "));
    let Some((got, wanted)) = mismatch else { return (why.to_owned(), None) };
    (format!("it is {}", found(got)), Some(format!("it takes {}", form(wanted))))
}

/// A value as serde names it (`integer `3``), in words.
fn found(got: &str) -> &str {
    match got.split([' ', '`']).next() {
        Some("integer") => "a whole number",
        Some("floating") => "a number with a fraction",
        Some("string") => "a text",
        Some("boolean") => "true or false",
        Some("sequence") => "a list",
        Some("map") => "a table",
        _ => got,
    }
}

/// What serde expected, in words.
fn form(wanted: &str) -> &str {
    match wanted {
        "a map" => "a table: write [NAME] above its keys",
        "a sequence" => "a list; of tables, write [[NAME]] above each",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        _ => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_message_says_what_would_be_right() {
        for (why, wrong, right) in [
            (
                "unknown field `serv`, expected `serve` or `load`",
                "it has no key `serv`",
                Some("did you mean `serve`?"),
            ),
            (
                "unknown variant `tbff`, expected one of `tbf`, `fq`",
                "`tbff` is not known",
                Some("did you mean `tbf`?"),
            ),
            ("missing field `name`", "it has no `name`", Some("add name = …")),
            (
                "invalid type: integer `3`, expected a map",
                "it is a whole number",
                Some("it takes a table: write [NAME] above its keys"),
            ),
            ("something else", "something else", None),
        ] {
            assert_eq!(reworded(why, "it"), (wrong.to_owned(), right.map(str::to_owned)));
        }
    }
}
