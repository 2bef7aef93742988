use super::*;
use proptest::prelude::*;
use serde_json::json;

const FILE: &str = include_str!("../../../../testdata/model/cases.json");

/// The file's own tolerance; one number solved in a chain or as a root carries 1e-6.
fn agrees(got: &Value, wanted: &Value, relative: f64) -> bool {
    match (got, wanted) {
        (Value::Number(got), Value::Number(wanted)) => {
            let (got, wanted) = (got.as_f64().unwrap(), wanted.as_f64().unwrap());
            (got - wanted).abs() <= relative * wanted.abs() + 1e-12
        }
        (Value::Object(got), Value::Object(wanted)) => {
            got.len() == wanted.len()
                && wanted.iter().all(|(key, value)| {
                    got.get(key).is_some_and(|got| agrees(got, value, relative))
                })
        }
        (Value::Array(got), Value::Array(wanted)) => {
            got.len() == wanted.len()
                && got.iter().zip(wanted).all(|(got, wanted)| agrees(got, wanted, relative))
        }
        (got, wanted) => got == wanted,
    }
}

#[test]
fn every_reference_case_comes_out() {
    let file: Value = serde_json::from_str(FILE).unwrap();
    let evaluated = evaluate(FILE).unwrap();
    let mut wrong = Vec::new();
    for (case, got) in file["cases"].as_array().unwrap().iter().zip(&evaluated.cases) {
        assert_eq!(case["id"], got.id.as_str());
        let numeric = ["M/D/1", "M/D/1/K"].contains(&case["kind"].as_str().unwrap())
            || got.id.starts_with("napi_gated");
        let relative = if numeric { 1e-6 } else { 1e-9 };
        let outputs = Value::Object(got.outputs.clone());
        if !agrees(&outputs, &case["expected"], relative) || got.problem.is_some() {
            wrong.push(format!(
                "{}: {outputs} is not {}; {:?}",
                got.id, case["expected"], got.problem
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(evaluated.cases.len() > 60);
}

#[test]
fn expected_is_not_looked_at() {
    let mut file: Value = serde_json::from_str(FILE).unwrap();
    for case in file["cases"].as_array_mut().unwrap() {
        case.as_object_mut()
            .unwrap()
            .retain(|key, _| ["id", "kind", "inputs"].contains(&key.as_str()));
    }
    let bare = serde_json::to_value(evaluate(&file.to_string()).unwrap()).unwrap();
    assert_eq!(bare, serde_json::to_value(evaluate(FILE).unwrap()).unwrap());
}

#[test]
fn every_kind_has_a_reference_case() {
    let file: Value = serde_json::from_str(FILE).unwrap();
    for (kind, _) in kinds::ALL {
        let cases = file["cases"].as_array().unwrap();
        assert!(cases.iter().any(|case| case["kind"] == *kind), "{kind}");
    }
}

fn problem(case: &Value) -> Problem {
    let text = json!({ "cases": [case] }).to_string();
    evaluate(&text).unwrap().cases.remove(0).problem.unwrap()
}

#[test]
fn what_cannot_be_computed_is_told_per_case() {
    use crate::inputs::Code::{BadInput, NoValue, TooLarge, UnknownKind};
    for (case, code, word) in [
        (json!({"kind": "M/M/7", "inputs": {}}), UnknownKind, "M/M/7"),
        (json!({"kind": "M/M/1"}), BadInput, "inputs"),
        (json!({"inputs": {}}), BadInput, "kind"),
        (json!(7), BadInput, "kind"),
        (json!({"kind": "M/M/1/K", "inputs": {"rho": -1, "K": 4}}), BadInput, "rho"),
        (json!({"kind": "M/M/1/K", "inputs": {"rho": 1e300, "K": 4}}), BadInput, "1e18"),
        (json!({"kind": "M/M/1/K", "inputs": {"rho": "1", "K": 4}}), BadInput, "not a number"),
        (json!({"kind": "M/M/1/K", "inputs": {"rho": 1, "K": 4.5}}), BadInput, "whole number"),
        (json!({"kind": "M/D/1", "inputs": {"service_us": 1, "rho": 1}}), NoValue, "steady state"),
        (
            json!({"kind": "F equal flows hashed uniformly on Q queues",
                   "inputs": {"flows": 1_000_000, "queues": 1000}}),
            TooLarge,
            "too many",
        ),
        (
            json!({"kind": "M/G/1", "inputs": {"lam": 1, "service": [{"p": 0.5, "us": 1}]}}),
            BadInput,
            "sum to 0.5",
        ),
    ] {
        let got = problem(&case);
        assert_eq!(got.code, code, "{case}: {got:?}");
        assert!(got.text.contains(word), "{case}: {got:?}");
    }
}

#[test]
fn what_is_no_file_of_cases_is_refused() {
    let error = evaluate("{\"cases\": [,]}").unwrap_err().to_string();
    assert!(error.starts_with("line 1, column 12: not JSON"), "{error}");
    assert!(evaluate("[]").unwrap_err().to_string().contains("no list `cases`"));
    assert!(evaluate("{\"cases\": []}").unwrap_err().to_string().contains("is empty"));
}

#[test]
fn two_cases_of_one_name_are_both_computed_and_told() {
    let case = |id: &str, rho: f64| serde_json::json!({ "id": id, "kind": "M/M/1/K", "inputs": { "rho": rho, "K": 4 } });
    let file = serde_json::json!({ "cases": [case("a", 0.5), case("b", 0.5), case("a", 0.9)] });
    let evaluated = evaluate(&file.to_string()).unwrap();
    assert!(evaluated.cases.iter().all(|case| !case.outputs.is_empty()));
    let problems: Vec<_> = evaluated.problems().collect();
    let [(id, problem)] = problems[..] else { panic!("{problems:?}") };
    assert_eq!(id, "a");
    assert!(problem.text.contains("`id`: the case at index 0"), "{problem:?}");
}

proptest! {
    #[test]
    fn no_number_in_any_place_panics_or_hangs(
        pick in 0_usize..1000,
        key in 0_usize..20,
        value in prop_oneof![
            Just(0.0), Just(1.0), Just(1e-300), Just(1e18), Just(1e300), Just(-1.0), Just(0.999_999_999),
            1e-9..1e9_f64, (0_u32..100).prop_map(f64::from),
        ],
    ) {
        let file: Value = serde_json::from_str(FILE).unwrap();
        let cases = file["cases"].as_array().unwrap();
        let mut case = cases[pick % cases.len()].clone();
        let inputs = case["inputs"].as_object_mut().unwrap();
        let at = key % inputs.len();
        if let Some((_, slot)) = inputs.iter_mut().nth(at) {
            *slot = value.into();
        }
        let text = json!({ "cases": [case] }).to_string();
        let got = evaluate(&text).unwrap().cases.remove(0);
        prop_assert!(got.problem.is_some() || !got.outputs.is_empty());
        prop_assert!(got.outputs.values().all(|value| !value.is_null()) || got.id.starts_with("napi_budget"));
    }
}
