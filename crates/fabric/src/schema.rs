//! Published JSON Schema of the fabric file.

use crate::file::File;

/// Returns the schema as text, ending in a newline; `scenarios/fabric.schema.json` is this.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(File);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
