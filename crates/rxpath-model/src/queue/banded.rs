//! The stationary distribution of a Markov chain whose rows are narrow, without a subtraction.
//!
//! **Source** W. Grassmann, M. Taksar, D. Heyman, "Regenerative Analysis and Steady State Distributions for Markov
//! Chains", Operations Research 33, 1985: states are taken out from the last to the first; only sums of
//! probabilities are formed, so that even the smallest entries keep their digits.

/// One row: the probabilities of `first`, `first + 1`, ...
#[derive(Clone, Debug)]
pub struct TransitionRow {
    /// The state of the first probability.
    pub first: usize,
    /// The probabilities.
    pub p: Vec<f64>,
}

impl TransitionRow {
    fn at(&self, state: usize) -> f64 {
        state.checked_sub(self.first).and_then(|at| self.p.get(at)).copied().unwrap_or(0.0)
    }

    /// Makes room down to `first`.
    fn widen(&mut self, first: usize) {
        if first < self.first {
            self.p.splice(0..0, std::iter::repeat_n(0.0, self.first - first));
            self.first = first;
        }
    }
}

/// The stationary distribution, or nothing when a state cannot be left downwards (the chain is not one piece).
pub fn stationary(mut rows: Vec<TransitionRow>) -> Option<Vec<f64>> {
    let count = rows.len();
    // How far below a state rows can reach it from.
    let reach = rows
        .iter()
        .enumerate()
        .map(|(i, row)| (row.first + row.p.len()).saturating_sub(i + 1))
        .max()?;
    for n in (1..count).rev() {
        let (below, rest) = rows.split_at_mut(n);
        let leaving = &rest[0];
        let inside = leaving.first..n;
        let out: f64 = inside.clone().map(|j| leaving.at(j)).sum();
        if out <= 0.0 {
            return None;
        }
        for row in &mut below[n.saturating_sub(reach)..] {
            let into = row.at(n) / out;
            if into <= 0.0 {
                continue;
            }
            row.widen(inside.start);
            let offset = inside.start - row.first;
            row.p.resize(row.p.len().max(n + 1 - row.first), 0.0);
            for (to, from) in row.p[offset..].iter_mut().zip(&leaving.p[..n - leaving.first]) {
                *to += into * from;
            }
            row.p[n - row.first] = into;
        }
    }
    let mut pi = vec![1.0; count];
    let mut sum = 1.0;
    for n in 1..count {
        pi[n] = (n.saturating_sub(reach)..n).map(|i| pi[i] * rows[i].at(n)).sum();
        sum += pi[n];
        if sum > 1e200 {
            for value in &mut pi[..=n] {
                *value /= sum;
            }
            sum = 1.0;
        }
    }
    for value in &mut pi {
        *value /= sum;
    }
    Some(pi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_more_step_changes_nothing(seed in proptest::collection::vec(0.01..1.0_f64, 8 * 4)) {
            let rows: Vec<TransitionRow> = (0..8_usize).map(|i| {
                let first = i.saturating_sub(2);
                let raw = &seed[i * 4..i * 4 + 4.min(8 - first)];
                let sum: f64 = raw.iter().sum();
                TransitionRow { first, p: raw.iter().map(|p| p / sum).collect() }
            }).collect();
            let pi = stationary(rows.clone()).unwrap();
            for state in 0..8 {
                let next: f64 = (0..8).map(|i| pi[i] * rows[i].at(state)).sum();
                prop_assert!((next - pi[state]).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_state_that_is_never_left_is_told() {
        let rows = vec![
            TransitionRow { first: 0, p: vec![0.5, 0.5] },
            TransitionRow { first: 1, p: vec![1.0] },
        ];
        assert!(stationary(rows).is_none());
    }
}
