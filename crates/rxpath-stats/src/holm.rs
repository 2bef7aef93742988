//! Many comparisons at once: Holm's step-down correction.
//!
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).

/// Adjusted p-values in the order given: `max over smaller p of min(1, (m - rank) * p)`.
pub fn adjust(p_values: &[f64]) -> Vec<f64> {
    let m = p_values.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_unstable_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; m];
    let mut floor: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        floor = floor.max((p_values[index] * (m - rank) as f64).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_r() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") in R: 0.03 0.06 0.06 0.02
        let got = adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
        assert!(adjust(&[]).is_empty());
        assert_eq!(adjust(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
