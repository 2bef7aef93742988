//! Examples of each command, for its help and its man page: `examples.txt`, by the words of the command.

/// A command line and what it is for.
pub type Example = (&'static str, &'static str);

/// The words of a command without `rxpath` in brackets, then its examples: `LINE  # WHAT IT IS FOR`.
const EXAMPLES: &str = include_str!("examples.txt");

/// The examples of a command, by its words without `rxpath`; the empty text is the top page.
pub fn of(path: &str) -> Vec<Example> {
    let head = format!("[{path}]");
    let lines = EXAMPLES.lines().skip_while(|line| *line != head).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once("  # "))
        .collect()
}

/// The examples as they stand under a page of help.
pub fn text(path: &str) -> String {
    let examples = of(path);
    let width = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    // A long line stays on a line of its own, so that it can be copied unbroken.
    let line = |(line, what): &Example| {
        if width > 44 {
            format!("  {line}\n      {what}\n")
        } else {
            format!("  {line:width$}   {what}\n")
        }
    };
    examples.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_example_with_its_purpose() {
        for line in EXAMPLES.lines().filter(|line| !line.is_empty() && !line.starts_with('[')) {
            assert!(line.contains("  # "), "{line}");
        }
    }
}
