//! Enums of which each variant has its words.

/// Gives an enum `ALL`, its variants in the order in which they stand here, and a function that has the words of each.
#[macro_export]
macro_rules! named {
    ($(#[$doc:meta])* $name:ident of $of:ident { $($variant:ident => $words:literal,)* }) => {
        impl $of {
            /// All of them, in their order.
            pub const ALL: [Self; [$($words),*].len()] = [$(Self::$variant),*];

            $(#[$doc])*
            pub fn $name(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)*
                }
            }
        }
    };
}
