//! Enums of which each variant has its words.

/// Declares an enum with a value behind each variant: `ALL` has the variants in the order in which they stand here, and the
/// function that is named at the end has the value of each.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $see:vis enum $of:ident {
            $($(#[$about_variant:meta])* $variant:ident $(= $number:literal)? => $value:expr,)*
        }
        $(#[$doc:meta])*
        pub fn $name:ident(self) -> $type:ty
    ) => {
        $(#[$about])*
        $see enum $of {
            $($(#[$about_variant])* $variant $(= $number)?,)*
        }

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
