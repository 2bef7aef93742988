//! The change from one JSON value to the next, and how to apply a change.
//!
//! Rows of tables are identified by their names, not by their place: tables are sorted by values that change. A change
//! is
//!
//! - a number, a text, `true`, `false` or `null`: the new value,
//! - `{"=": VALUE}`: the new value, where it is a list or an object,
//! - `{"o": {KEY: CHANGE}, "-": [KEY]}`: of an object these keys change, and these go,
//! - `{"a": {PLACE: CHANGE}}`: of a list with the same rows these change,
//! - `{"l": [ITEM]}`: a list in a new order: `PLACE` for the row that was there, `{"i": PLACE, "c": CHANGE}` where it
//!   changed too, `{"n": VALUE}` for a new one.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// What names a row, of all kinds of rows that there are.
const NAMES: [&str; 16] = [
    "cpu",
    "comm",
    "device",
    "inode",
    "local",
    "netns",
    "pid",
    "place",
    "port",
    "protocol",
    "queue",
    "reason",
    "remote",
    "socket_inode",
    "source",
    "stage",
];

/// What leads from `old` to `new`; none where they are the same.
pub fn between(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    Some(match (old, new) {
        (Value::Object(old), Value::Object(new)) => of_objects(old, new),
        (Value::Array(old), Value::Array(new)) => of_lists(old, new),
        (_, Value::Object(_) | Value::Array(_)) => json!({ "=": new }),
        _ => new.clone(),
    })
}

fn of_objects(old: &Map<String, Value>, new: &Map<String, Value>) -> Value {
    let mut changed = Map::new();
    for (key, value) in new {
        let change = match old.get(key) {
            Some(before) => between(before, value),
            None => Some(json!({ "=": value })),
        };
        changed.extend(change.map(|change| (key.clone(), change)));
    }
    let gone: Vec<&String> = old.keys().filter(|key| !new.contains_key(*key)).collect();
    if gone.is_empty() { json!({ "o": changed }) } else { json!({ "o": changed, "-": gone }) }
}

fn of_lists(old: &[Value], new: &[Value]) -> Value {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, row) in old.iter().enumerate().rev() {
        places.entry(name(row)).or_default().push(at);
    }
    let from: Vec<Option<usize>> =
        new.iter().map(|row| places.get_mut(&name(row)).and_then(Vec::pop)).collect();
    let stays = old.len() == new.len() && from.iter().enumerate().all(|(at, old)| *old == Some(at));
    if stays {
        let changes = old.iter().zip(new).enumerate();
        let changes = changes.filter_map(|(at, (old, new))| Some((at, between(old, new)?)));
        let changes: Map<String, Value> = changes.map(|(at, new)| (at.to_string(), new)).collect();
        return json!({ "a": changes });
    }
    let item = |(row, from): (&Value, Option<usize>)| match from.map(|at| (at, &old[at])) {
        None => json!({ "n": row }),
        Some((at, before)) => match between(before, row) {
            None => json!(at),
            Some(change) => json!({ "i": at, "c": change }),
        },
    };
    json!({ "l": new.iter().zip(from).map(item).collect::<Vec<Value>>() })
}

/// The name of this row: the same for rows that cannot be distinguished.
fn name(row: &Value) -> String {
    let Value::Object(row) = row else { return String::new() };
    let named = NAMES.iter().filter_map(|key| match row.get(*key)? {
        value @ (Value::String(_) | Value::Number(_)) => Some(value.to_string()),
        _ => None,
    });
    named.collect::<Vec<String>>().join(" ")
}

/// The value that a change makes of `old`.
///
/// **Errors** what is no change of it.
pub fn apply(old: Value, change: Value) -> Result<Value, String> {
    let Value::Object(mut change) = change else {
        return if change.is_array() { Err("a list is no change".into()) } else { Ok(change) };
    };
    if let Some(new) = change.remove("=") {
        return Ok(new);
    }
    match (old, change.remove("o"), change.remove("a"), change.remove("l")) {
        (Value::Object(old), Some(Value::Object(keys)), None, None) => {
            in_object(old, keys, change.remove("-"))
        }
        (Value::Array(old), None, Some(Value::Object(rows)), None) => in_places(old, rows),
        (Value::Array(old), None, None, Some(Value::Array(items))) => in_new_order(old, items),
        _ => Err("a change of something else".into()),
    }
}

fn in_object(
    mut old: Map<String, Value>,
    keys: Map<String, Value>,
    gone: Option<Value>,
) -> Result<Value, String> {
    for (key, change) in keys {
        let before = old.remove(&key).unwrap_or(Value::Null);
        old.insert(key, apply(before, change)?);
    }
    let Value::Array(gone) = gone.unwrap_or_else(|| json!([])) else {
        return Err("no list of keys".into());
    };
    for key in gone.iter().filter_map(Value::as_str) {
        old.remove(key);
    }
    Ok(Value::Object(old))
}

fn in_places(mut old: Vec<Value>, rows: Map<String, Value>) -> Result<Value, String> {
    for (place, change) in rows {
        let row = place.parse::<usize>().ok().and_then(|at| old.get_mut(at));
        let row = row.ok_or_else(|| format!("no row {place}"))?;
        *row = apply(row.take(), change)?;
    }
    Ok(Value::Array(old))
}

/// Each row of before goes to one place at most: nothing multiplies.
fn in_new_order(old: Vec<Value>, items: Vec<Value>) -> Result<Value, String> {
    let mut rows: Vec<Option<Value>> = old.into_iter().map(Some).collect();
    let mut take = |place: &Value| {
        let at = place.as_u64().and_then(|at| usize::try_from(at).ok());
        let row = at.and_then(|at| rows.get_mut(at)).and_then(Option::take);
        row.ok_or_else(|| format!("no row {place}"))
    };
    let item = |item: Value| match item {
        Value::Object(mut item) => match (item.remove("n"), item.remove("i"), item.remove("c")) {
            (Some(new), None, None) => Ok(new),
            (None, Some(place), Some(change)) => apply(take(&place)?, change),
            _ => Err("no row".to_owned()),
        },
        place => take(&place),
    };
    Ok(Value::Array(items.into_iter().map(item).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaf() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0u32..4).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ]
    }

    /// Small ones, so that many rows have the same name, or differ in little.
    fn value() -> impl Strategy<Value = Value> {
        leaf().prop_recursive(4, 40, 6, |inner| {
            let keys = prop_oneof![Just("pid"), Just("comm"), Just("x"), Just("="), Just("o")];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec((keys, inner), 0..4).prop_map(|pairs| {
                    Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_change_leads_from_the_old_to_the_new(old in value(), new in value()) {
            match between(&old, &new) {
                None => prop_assert_eq!(old, new),
                Some(change) => prop_assert_eq!(apply(old, change), Ok(new)),
            }
        }

        #[test]
        fn no_change_panics_or_makes_more_than_it_brings(old in value(), change in value()) {
            let most = old.to_string().len() + change.to_string().len() + 8;
            if let Ok(new) = apply(old, change) {
                prop_assert!(new.to_string().len() <= most, "{new}");
            }
        }
    }

    #[test]
    fn a_table_that_is_sorted_anew_costs_its_places_only() {
        let row = |pid: u32, share: f64| json!({"pid": pid, "comm": "a long name", "share": share});
        let old = json!([row(1, 0.5), row(2, 0.4), row(3, 0.0)]);
        let new = json!([row(2, 0.6), row(1, 0.5), row(3, 0.0), row(4, 0.1)]);
        let change = between(&old, &new).unwrap();
        let items = json!({"l": [{"i": 1, "c": {"o": {"share": 0.6}}}, 0, 2, {"n": row(4, 0.1)}]});
        assert_eq!(change, items);
        assert_eq!(apply(old, change), Ok(new));
    }
}
