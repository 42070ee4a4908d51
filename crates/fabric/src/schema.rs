//! Published JSON Schema of the fabric file.
//!
//! A key without a value (null) is the same as an absent key, so every key that may be absent
//! allows null. A kind, one of several keys of which one is chosen, needs a value.

use crate::file::File;
use crate::file::tagged::KIND;
use schemars::Schema;
use serde_json::{Value, json};

/// Returns the schema as text, ending in a newline; `scenarios/fabric.schema.json` is this.
pub fn json_schema() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the schema.
pub(crate) fn schema() -> Schema {
    let mut schema = schemars::schema_for!(File).to_value();
    allow_nulls(&mut schema);
    schema.try_into().unwrap_or_default()
}

/// Returns whether null fits a schema that has no alternatives and refers to no other one.
pub(crate) fn allows_null(schema: &Value) -> bool {
    match &schema["type"] {
        Value::Array(types) => types.iter().any(|one| one == "null"),
        one => one == "null",
    }
}

/// Allows null for each key that may be absent, in a schema and all those inside it.
fn allow_nulls(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (key, property) in properties.into_iter().flatten() {
        let is_kind = property.as_object_mut().is_some_and(|of| of.remove(KIND).is_some());
        if !is_kind && !required.iter().any(|one| one == key) {
            allow_null(property);
        }
    }
    match schema {
        Value::Object(entries) => entries.values_mut().for_each(allow_nulls),
        Value::Array(entries) => entries.iter_mut().for_each(allow_nulls),
        _ => {}
    }
}

/// Adds null to the values of a key.
fn allow_null(property: &mut Value) {
    let Some(of) = property.as_object_mut() else { return };
    let no_value = json!({ "type": "null" });
    if let Some(target) = of.remove("$ref") {
        of.insert("anyOf".into(), json!([{ "$ref": target }, no_value]));
    } else if let Some(Value::Array(others)) = of.get_mut("anyOf") {
        if !others.iter().any(allows_null) {
            others.push(no_value);
        }
    } else if let Some(one @ Value::String(_)) = of.get_mut("type") {
        *one = json!([one.take(), "null"]);
        let values = of.get_mut("enum").and_then(Value::as_array_mut);
        values.into_iter().for_each(|values| values.push(Value::Null));
    }
}
