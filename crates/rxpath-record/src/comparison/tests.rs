use super::*;
use rxpath_stats::difference::difference;

fn effect(metric: &str, pairs: &[(f64, f64)]) -> MeasuredEffect {
    let looks = Looks::of(5, 20);
    MeasuredEffect::of(&difference(pairs, metric::scale(metric), 0.03, looks).unwrap(), metric)
}

#[test]
fn a_share_is_told_in_percentage_points() {
    let found = effect("loss_ratio", &[(0.0, 0.25); 6]);
    assert_eq!(found.amount("loss_ratio"), "+25.00 percentage points");
    assert_eq!(found.sureness("loss_ratio"), "95 % interval +25.00 to +25.00");
    assert_eq!(found.verdict("blocks"), "worse");
    let none = effect("loss_ratio", &[(0.0, 0.0); 6]);
    assert_eq!(none.verdict("blocks"), "the same within 0.1 percentage points");
}

#[test]
fn a_small_ratio_is_a_change_and_a_large_one_a_factor() {
    let more =
        effect("delivered_pps", &[(1.0, 1.2), (1.0, 1.21), (1.0, 1.19), (1.0, 1.2), (1.0, 1.2)]);
    assert_eq!(more.amount("delivered_pps"), "+20.0 %");
    assert_eq!(more.sureness("delivered_pps"), "95 % interval +18.2 to +21.8 %");
    let most = effect("delivered_pps", &[(1.0, 3.6); 5]);
    assert_eq!(most.amount("delivered_pps"), "3.60 times");
    assert_eq!(most.sureness("delivered_pps"), "95 % interval 3.60 to 3.60 times");
    let least = effect("delivered_pps", &[(1.0, 0.1); 5]);
    assert_eq!(least.amount("delivered_pps"), "0.100 times");
}

#[test]
fn a_base_of_zero_is_said() {
    let found = effect("service_time_p99_us", &[(0.0, 13.0); 6]);
    assert_eq!(found.outcome, Outcome::Inconclusive);
    assert_eq!(found.amount("service_time_p99_us"), "no ratio: the base is 0; +13 us");
    assert_eq!(
        found.verdict("blocks"),
        "inconclusive: a value is not above 0, so there is no ratio"
    );
    let json = serde_json::to_value(&found).unwrap();
    assert!(json["ratio"].is_null() && json["outcome"] == "inconclusive", "{json}");
    assert_eq!(serde_json::from_value::<MeasuredEffect>(json).unwrap(), found);
}

#[test]
fn an_inconclusive_outcome_has_its_reason_and_says_what_would_help() {
    let told = |pairs: &[(f64, f64)]| effect("delivered_pps", pairs).verdict("blocks");
    assert_eq!(told(&[(1.0, 2.0); 3]), "inconclusive: fewer than 5 blocks give no interval");
    let noisy = [0.95, 1.06, 0.99, 1.03, 0.98].map(|ratio| (1.0, ratio));
    let noisy = told(&noisy);
    assert!(noisy.starts_with("inconclusive: no difference larger than "), "{noisy}");
    assert!(noisy.contains("; trials scatter by ") && noisy.contains(" blocks"), "{noisy}");
    assert!(
        noisy.ends_with("3 %, or longer trials") || noisy.ends_with("blocks, or longer trials"),
        "{noisy}"
    );
}

#[test]
fn a_small_difference_that_is_shown_is_called_small() {
    let near = [1.02, 1.032, 1.024, 1.041, 1.028, 1.035].map(|ratio| (1.0, ratio));
    let near = effect("delivered_pps", &near);
    assert_eq!(near.verdict("blocks"), "better, perhaps by less than 3 %");
}

#[test]
fn a_comparison_of_an_older_run_is_read() {
    let old = r#"{"metric": "delivered_pps", "base": "a", "variant": "b", "ratio": 1.5, "interval": [1.4, 1.6],
        "range": [1.3, 1.7], "pairs_count": 6, "outcome": "better", "expected": null}"#;
    let found: Comparison = serde_json::from_str(old).unwrap();
    assert_eq!(found.effect.amount(&found.metric), "+50.0 %");
    assert_eq!(found.sureness(), "95 % interval +40.0 to +60.0 %, 6 blocks");
    assert_eq!(found.effect.verdict("blocks"), "better");
    assert_eq!(found.effect.judged_by, JudgedBy::Ratio);
    let none = old.replace("better", "no-ratio");
    let none: Comparison = serde_json::from_str(&none).unwrap();
    assert_eq!(none.effect.outcome, Outcome::Inconclusive);
}
