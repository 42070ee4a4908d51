//! The status of a lab as a table for people.

use serde_json::Value;
use std::fmt::Write;

const HEADINGS: [&str; 8] =
    ["node", "ports up", "neighbours", "hosts", "routes", "controller", "rx frames", "drops"];

/// One line for each daemon of [`super::Lab::status`].
pub fn table(status: &[Value]) -> String {
    let rows: Vec<[String; 8]> = status.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.chain([HEADINGS[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: [&str; 8]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(HEADINGS);
    for row in &rows {
        line(row.each_ref().map(String::as_str));
    }
    text
}

fn row(status: &Value) -> [String; 8] {
    let name = status["name"].as_str().unwrap_or("?").to_owned();
    if let Some(error) = status["error"].as_str() {
        let none = String::new;
        return [
            name,
            format!("no answer: {error}"),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
        ];
    }
    let node = &status["node"];
    let ports = status["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let up = ports.iter().filter(|port| port["up"] == true).count();
    let count = |value: &Value| match value {
        Value::Array(list) => list.len().to_string(),
        Value::Number(number) => number.to_string(),
        _ => "-".to_owned(),
    };
    let controller = match (&node["controller_path"], node["role"].as_str()) {
        (_, Some("controller")) => "itself".to_owned(),
        (Value::String(hops), _) => hops.clone(),
        _ => "not found".to_owned(),
    };
    let drops = node["plane"]["drops"].as_object();
    // The ordinary end of a control packet is no loss.
    let lost = drops.into_iter().flatten().filter(|(reason, _)| *reason != "consumed");
    let lost: u64 = lost.filter_map(|(_, count)| count.as_u64()).sum();
    [
        name,
        format!("{up}/{}", ports.len()),
        count(&node["neighbours"]),
        count(&node["hosts"]),
        count(&node["routes"]),
        controller,
        count(&node["plane"]["rx_frames"]),
        lost.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_daemon_that_does_not_answer_has_a_line_too() {
        let text = table(&[
            json!({ "name": "s1", "ports": [{ "up": true }, { "up": false }],
                "node": { "role": "switch", "controller_path": "p0 cpu", "hosts": [1, 2],
                    "plane": { "rx_frames": 7, "drops": { "consumed": 5, "no_route": 1 } } } }),
            json!({ "name": "s2", "error": "refused" }),
        ]);
        let lines: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["s1", "1/2", "-", "2", "-", "p0", "cpu", "7", "1"]);
        assert_eq!(lines[1][..3], ["s2", "no", "answer:"]);
    }
}
