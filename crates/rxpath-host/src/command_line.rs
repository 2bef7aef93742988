//! The command line of this process.

/// Its words, the program first, to be shown or recorded. What is not UTF-8 has replacement characters.
pub fn words() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into()).collect()
}
