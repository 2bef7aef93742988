//! Command lines that can be pasted into a shell.

/// A command line that a shell parses back into the same words.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// One word of a command line, in quotes if a shell would change it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let words = ["rxpath", "run", "x", "--set", "load.size=1 KiB", "it's", ""];
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        assert_eq!(line(&words), r"rxpath run x --set 'load.size=1 KiB' 'it'\''s' ''");
    }
}
