//! How strict each interim analysis must be, so that all of a run together keep their error.
//!
//! The question it answers: *which nominal level makes an interval hold at every analysis from the fifth block to the last?*
//! A run looks after each block and may stop at any of them. Intervals at this level are repeated confidence intervals:
//! a run that stops, for whatever reason, has an interval of the stated level.
//!
//! **Source** Jennison and Turnbull, "Repeated confidence intervals for group sequential clinical trials", Controlled
//! Clinical Trials 5 (1984). The levels are for the interval of [`crate::paired`]; each is from 500,000 seeded paths of
//! normal noise with an analysis after every block. `tests/sequential.rs` simulates some of them again.

/// Blocks at the first look.
pub const FIRST: usize = 5;
/// Most blocks that the table covers.
pub const MOST: usize = 100;
/// Error over all looks of a run that a difference is found where there is none.
pub const ERROR: f64 = 0.05;
/// The same for each side of `same`, as the two-sided level that both sides make.
pub const SAME_ERROR: f64 = 0.10;

/// One column: most blocks, the level of an analysis for 5 % and for 10 % over all analyses, and the exponent that gives the level
/// for a smaller error: `level_05 * (error / 0.05) ^ exponent`.
struct Column(usize, f64, f64, f64);

/// Looks after every block from the fifth on.
const EVERY_BLOCK: [Column; 13] = [
    Column(5, 0.0249, 0.0550, 1.07),
    Column(6, 0.0161, 0.0373, 1.13),
    Column(7, 0.01263, 0.0300, 1.15),
    Column(8, 0.01073, 0.0258, 1.17),
    Column(10, 0.00816, 0.0199, 1.18),
    Column(12, 0.00685, 0.0168, 1.20),
    Column(15, 0.00567, 0.0140, 1.21),
    Column(20, 0.00464, 0.01154, 1.23),
    Column(25, 0.00405, 0.01008, 1.23),
    Column(30, 0.00364, 0.00916, 1.23),
    Column(40, 0.00316, 0.00793, 1.24),
    Column(60, 0.00265, 0.00667, 1.24),
    Column(100, 0.00221, 0.00552, 1.24),
];

/// One analysis, at the last block.
const ONE_LOOK: [Column; 7] = [
    Column(5, 0.0249, 0.055, 1.14),
    Column(6, 0.0281, 0.062, 1.14),
    Column(7, 0.0305, 0.067, 1.14),
    Column(8, 0.0320, 0.070, 1.14),
    Column(10, 0.0285, 0.063, 1.14),
    Column(12, 0.0318, 0.070, 1.14),
    Column(21, 0.0340, 0.072, 1.14),
];

/// When a run looks at its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// After every block from [`FIRST`] to this one.
    EveryBlock {
        /// Blocks after which the run ends.
        most: usize,
    },
    /// Once, after this many blocks.
    Once {
        /// Blocks of the run.
        blocks: usize,
    },
    /// Once, by an interval that has its level without a table: lists that were not measured in blocks.
    Plain,
}

impl Looks {
    /// Of a run that has at least `blocks` and ends after `most` of them at the latest.
    pub fn of(blocks: usize, most: usize) -> Self {
        if blocks >= most { Self::Once { blocks } } else { Self::EveryBlock { most } }
    }

    /// Blocks after which the run ends at the latest.
    pub fn most(self) -> usize {
        match self {
            Self::EveryBlock { most } | Self::Once { blocks: most } => most,
            Self::Plain => 0,
        }
    }

    /// Blocks under which there is no look.
    pub fn fewest(self) -> usize {
        match self {
            Self::EveryBlock { .. } => FIRST,
            Self::Once { blocks } => FIRST.min(blocks),
            Self::Plain => 0,
        }
    }

    /// The two-sided level of one analysis, for an error of `error` over all of them.
    ///
    /// **Caveat** Runs of one analysis over fewer than [`FIRST`] blocks have the level itself: their interval is Student's.
    pub fn level(self, error: f64) -> f64 {
        let columns: &[Column] = match self {
            Self::Plain => return error,
            Self::Once { blocks } if blocks < FIRST => return error,
            Self::Once { .. } => &ONE_LOOK,
            Self::EveryBlock { .. } => &EVERY_BLOCK,
        };
        let Column(_, five, ten, exponent) = between(columns, self.most());
        if error > 0.05 {
            // Between the two columns, and not beyond the one for 10 %.
            let share = (error.min(0.1) / 0.05).ln() / 2.0_f64.ln();
            return (five.ln() + share * (ten.ln() - five.ln())).exp();
        }
        five * (error / 0.05).powf(exponent)
    }
}

/// The column of `most` blocks: linear in the logarithm of the blocks and of the level.
fn between(columns: &[Column], most: usize) -> Column {
    let at = columns.partition_point(|column| column.0 < most);
    // Outside the table both are its nearest column.
    let (above, below) = (&columns[at.min(columns.len() - 1)], &columns[at.saturating_sub(1)]);
    let ln = |blocks: usize| (blocks as f64).ln();
    let width = ln(above.0) - ln(below.0);
    let share = if width == 0.0 { 0.0 } else { (ln(most) - ln(below.0)) / width };
    let mix = |low: f64, high: f64| (low.ln() + share * (high.ln() - low.ln())).exp();
    Column(most, mix(below.1, above.1), mix(below.2, above.2), mix(below.3, above.3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_given_back_and_joined_between() {
        let every = |most| Looks::EveryBlock { most };
        assert!((every(20).level(0.05) - 0.00464).abs() < 1e-12);
        assert!((every(20).level(0.10) - 0.01154).abs() < 1e-12);
        let (nine, eight, ten) = (every(9), every(8), every(10));
        assert!(nine.level(0.05) < eight.level(0.05) && nine.level(0.05) > ten.level(0.05));
        assert!((Looks::Once { blocks: 5 }.level(0.05) - 0.0249).abs() < 1e-12);
        assert!((Looks::Once { blocks: 50 }.level(0.05) - 0.034).abs() < 1e-12);
        assert!((Looks::Once { blocks: 3 }.level(0.05) - 0.05).abs() < 1e-12);
        assert!((every(500).level(0.05) - 0.00221).abs() < 1e-12, "the last column holds beyond");
    }

    #[test]
    fn a_smaller_error_is_stricter_and_more_looks_are_too() {
        for looks in [Looks::of(5, 20), Looks::of(10, 10)] {
            let levels = [0.1, 0.07, 0.05, 0.025, 0.01].map(|error| looks.level(error));
            assert!(levels.windows(2).all(|pair| pair[0] > pair[1]), "{levels:?}");
        }
        let most = [5, 6, 8, 13, 20, 50, 100].map(|most| Looks::EveryBlock { most }.level(0.05));
        assert!(most.windows(2).all(|pair| pair[0] > pair[1]), "{most:?}");
        assert_eq!(Looks::of(5, 20), Looks::EveryBlock { most: 20 });
        assert_eq!(Looks::of(7, 7), Looks::Once { blocks: 7 });
    }
}
