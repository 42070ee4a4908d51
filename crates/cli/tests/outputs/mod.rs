//! Checks the JSON of a program against the types in the sources, which docs/outputs.md lists.
#![allow(dead_code, reason = "each program's tests use their own part")]

pub mod model;

use model::{Body, Field, Model, Shape};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Page that lists every key.
pub const PAGE: &str = "docs/outputs.md";

/// Checks a command's JSON against the type `of`, which is its name and the end of its file's path.
/// The key `format` must be 2.
pub fn checked(title: &str, of: (&str, &str), mut value: Value) {
    let mut model = Model::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let at = model.root(of.0, of.1);
    if model.keys(at).iter().all(|field| field.key != "format") {
        assert_eq!(value.as_object_mut().unwrap().remove("format"), Some(2.into()), "{title}");
    }
    check(&model, &Shape::Type(at), &value, title);
}

/// Returns the JSON that a command prints, whatever its exit status.
fn json(program: &str, arguments: &[&str]) -> Value {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {error}"))
}

/// Runs a program twice and asserts that only `machine` differs.
pub fn twice(program: &str, arguments: &[&str]) -> Value {
    let [first, second] = [(); 2].map(|()| {
        let mut value = json(program, arguments);
        let machine = value.as_object_mut().unwrap().remove("machine");
        (value, machine.is_some())
    });
    assert_eq!(first, second, "{arguments:?}");
    let mut value = json(program, arguments);
    assert_eq!(value.get("machine").is_some(), first.1);
    if let Some(machine) = value.get_mut("machine") {
        let seconds = machine.get("wall_seconds").and_then(Value::as_f64);
        assert!(seconds.is_none_or(|seconds| seconds > 0.0), "{machine}");
    }
    value
}

/// Asserts that the keys of a value are exactly those of its type.
fn check(model: &Model, shape: &Shape, value: &Value, path: &str) {
    match (shape, value) {
        (Shape::Maybe(_), Value::Null) => {}
        (Shape::Maybe(of), value) => check(model, of, value, path),
        (Shape::List(of), Value::Array(all)) => {
            all.iter().for_each(|value| check(model, of, value, &format!("{path}[]")));
        }
        (Shape::Map(of), Value::Object(all)) => {
            all.iter().for_each(|(key, value)| check(model, of, value, &format!("{path}.{key}")));
        }
        (Shape::Type(at), value) => match (&model.types[*at].body, value) {
            (Body::Texts(texts), Value::String(text)) => {
                assert!(texts.iter().any(|(one, _)| one == text), "{path}: {text} is not listed");
            }
            (Body::Object(fields), Value::Object(_)) => check_keys(model, fields, value, path),
            (Body::Forms(_), Value::Object(_)) => {
                check_keys(model, &model.keys(*at), value, path);
            }
            (_, other) => panic!("{path}: {other} is something else"),
        },
        (Shape::Plain(text), value) => {
            let fits = match value {
                Value::Number(_) => text.contains("number"),
                Value::String(_) => {
                    text.contains("text") || *text == format!("`{}`", value.as_str().unwrap())
                }
                Value::Bool(_) => text.contains("true or false"),
                Value::Null => text.contains("null"),
                Value::Array(_) => text.contains("list"),
                Value::Object(_) => text.contains("object"),
            };
            assert!(fits, "{path}: {value} is no {text}");
        }
        (shape, value) => panic!("{path}: {value} is no {shape:?}"),
    }
}

fn check_keys(model: &Model, fields: &[Field], value: &Value, path: &str) {
    let object = value.as_object().unwrap();
    for (key, value) in object {
        let known: Vec<&Field> = fields.iter().filter(|field| field.key == *key).collect();
        assert!(!known.is_empty(), "{path}.{key} is not in {PAGE}");
        if let [field] = known[..] {
            check(model, &field.shape, value, &format!("{path}.{key}"));
        }
    }
    for field in fields.iter().filter(|field| !field.optional && !field.key.contains('.')) {
        assert!(object.contains_key(&field.key), "{path}.{} is in {PAGE} only", field.key);
    }
}
