//! Types that are a text in files and answers.

/// What `#[serde(try_from = "String", into = "String")]` asks for: read as by `FromStr`, written as by `Display`.
#[macro_export]
macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl From<$name> for String {
            fn from(it: $name) -> Self {
                it.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = <$name as ::std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    )*};
}
