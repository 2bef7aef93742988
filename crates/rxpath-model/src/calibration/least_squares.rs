//! Ordinary least squares over three columns.

/// A solved regression.
pub(super) struct Fit {
    pub(super) coefficients: [f64; 3],
    /// Their standard errors.
    pub(super) errors: [f64; 3],
    /// What it leaves unexplained, standard deviation.
    pub(super) residual: f64,
    /// Rows beyond those that the coefficients take.
    pub(super) freedom: usize,
}

impl Fit {
    pub(super) fn predicted(&self, row: &[f64; 3]) -> f64 {
        (0..3).map(|i| row[i] * self.coefficients[i]).sum()
    }
}

/// By the normal equations. A column of zeros has the coefficient 0; nothing comes out when the others depend on each
/// other, or when there are no more rows than columns.
pub(super) fn least_squares(rows: &[[f64; 3]], y: &[f64]) -> Option<Fit> {
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for (row, y) in rows.iter().zip(y) {
        for ((left, right), x) in normal.iter_mut().zip(&mut right).zip(row) {
            *right += x * y;
            for (sum, z) in left.iter_mut().zip(row) {
                *sum += x * z;
            }
        }
    }
    let mut columns = 0;
    for (at, row) in normal.iter_mut().enumerate() {
        if row[at] > 0.0 {
            columns += 1;
        } else {
            row[at] = 1.0;
        }
    }
    let inverse = inverse(normal)?;
    let coefficients: [f64; 3] =
        std::array::from_fn(|i| (0..3).map(|j| inverse[i][j] * right[j]).sum());
    let freedom = rows.len().checked_sub(columns).filter(|freedom| *freedom > 0)?;
    let mut fit = Fit { coefficients, errors: [0.0; 3], residual: 0.0, freedom };
    let square: f64 = rows.iter().zip(y).map(|(row, y)| (y - fit.predicted(row)).powi(2)).sum();
    let variance = square / freedom as f64;
    fit.errors = std::array::from_fn(|i| (variance * inverse[i][i]).max(0.0).sqrt());
    fit.residual = variance.sqrt();
    Some(fit)
}

/// By cofactors; nothing when the columns depend on each other.
fn inverse(matrix: [[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let cofactor = |row: usize, column: usize| {
        let (below, beneath) = ((row + 1) % 3, (row + 2) % 3);
        let (right, beyond) = ((column + 1) % 3, (column + 2) % 3);
        matrix[below][right] * matrix[beneath][beyond]
            - matrix[below][beyond] * matrix[beneath][right]
    };
    let determinant: f64 = (0..3).map(|column| matrix[0][column] * cofactor(0, column)).sum();
    let scale = matrix[0][0] * matrix[1][1] * matrix[2][2];
    if scale <= 0.0 || determinant.abs() < scale * 1e-9 {
        return None;
    }
    let element = |row: usize, column: usize| cofactor(column, row) / determinant;
    Some(std::array::from_fn(|row| std::array::from_fn(|column| element(row, column))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_zeros_leaves_the_others_alone() {
        let rows: Vec<[f64; 3]> = (0..8).map(|i| [1.0, 0.0, f64::from(i)]).collect();
        let y: Vec<f64> = rows.iter().map(|row| 3.0 + 2.0 * row[2]).collect();
        let fit = least_squares(&rows, &y).unwrap();
        assert!(
            (fit.coefficients[0] - 3.0).abs() < 1e-9 && (fit.coefficients[2] - 2.0).abs() < 1e-9
        );
        assert!(fit.coefficients[1].abs() < 1e-12);
        assert_eq!(fit.freedom, 6);
    }
}
