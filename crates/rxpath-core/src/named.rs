//! Enums of which each variant has its words.

/// Gives an enum `ALL`, its variants in the order in which they stand here, and a function that has the words of each, or with
/// `as TYPE` a value of that type.
#[macro_export]
macro_rules! named {
    ($(#[$doc:meta])* $name:ident of $of:ident { $($variant:ident => $words:literal,)* }) => {
        $crate::named! { $(#[$doc])* $name of $of as &'static str { $($variant => $words,)* } }
    };
    ($(#[$doc:meta])* $name:ident of $of:ident as $type:ty { $($variant:ident => $value:expr,)* }) => {
        impl $of {
            /// All of them, in their order.
            pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];

            $(#[$doc])*
            pub fn $name(self) -> $type {
                match self {
                    $(Self::$variant => $value,)*
                }
            }
        }
    };
}
