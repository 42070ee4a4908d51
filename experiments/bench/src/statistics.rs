//! Medians, percentiles, spreads and slopes.

/// Returns the value that is not exceeded by a fraction `share`, 0 to 1, of the values, by nearest
/// rank. Returns `None` if there are no values.
pub(crate) fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Returns the middle value, or the mean of the two middle values. Returns `None` if there are no
/// values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let is_odd = sorted.len() % 2 == 1;
    Some(if is_odd { upper } else { (sorted[sorted.len() / 2 - 1] + upper) / 2.0 })
}

/// Returns the mean, or `None` if there are no values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the minimum and the maximum, or `None` if there are no values.
pub(crate) fn range(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    Some((least, values.iter().copied().max_by(f64::total_cmp)?))
}

/// Returns the spread, which is the maximum less the minimum, as a fraction of the median. Returns
/// `None` for fewer than two values, or if the median is zero.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let (least, greatest) = range(values)?;
    let middle = median(values)?;
    (values.len() > 1 && middle != 0.0).then(|| (greatest - least) / middle.abs())
}

/// Returns the slope of the least-squares line through points (x, y), or `None` unless there are
/// two different values of `x`.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / count, y / count);
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (below > 0.0).then(|| above / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_two_there() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.99), Some(99.0));
        assert_eq!(percentile(&hundred, 0.0), Some(1.0));
        assert_eq!(percentile(&hundred, 1.0), Some(100.0));
        assert_eq!(percentile(&[7.0], 0.99), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_spread_is_a_fraction_of_the_median() {
        assert_eq!(spread(&[9.0, 10.0, 12.0]), Some(0.3));
        assert_eq!(spread(&[9.0]), None);
        assert_eq!(spread(&[0.0, 0.0]), None);
        assert_eq!(range(&[2.0, -1.0]), Some((-1.0, 2.0)));
        assert_eq!(mean(&[1.0, 3.0]), Some(2.0));
    }

    #[test]
    fn a_slope_is_that_of_the_best_line() {
        let hops: Vec<(f64, f64)> = [1.0, 3.0, 5.0].map(|n| (n, 400.0 + 330.0 * n)).into();
        assert!((slope(&hops).unwrap() - 330.0).abs() < 1e-9);
        assert!((slope(&[(1.0, 1.0), (3.0, 2.0), (5.0, 9.0)]).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(slope(&[(3.0, 1.0), (3.0, 2.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
