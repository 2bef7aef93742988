//! Tests of parsers: they take any bytes, and panic at none.

/// Random bytes, less than so many.
macro_rules! takes_any_bytes {
    ($most:literal, $bytes:ident => $($call:expr),+) => {
        proptest::proptest! {
            #[test]
            fn garbage_never_panics(
                $bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..$most)
            ) {
                $(let _ = $call;)+
            }
        }
    };
}

/// An answer of the kernel that is cut at each of its bytes.
macro_rules! takes_a_cut_answer {
    ($whole:expr, $cut:ident => $call:expr) => {
        #[test]
        fn a_cut_answer_never_panics() {
            let whole = $whole;
            for end in 0..=whole.len() {
                let $cut = &whole[..end];
                let _ = $call;
            }
        }
    };
}

pub(crate) use {takes_a_cut_answer, takes_any_bytes};
