//! The second reader of the golden vectors, `vectors/read.py`: it accepts the files, and refuses
//! files with a planted fault.

use crate::tshark::needs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILES: [&str; 6] =
    ["control.txt", "dcb.txt", "edge.txt", "forward.txt", "header.txt", "probe.txt"];

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

fn text_of(file: &str) -> String {
    fs::read_to_string(vectors().join(file)).expect("the vectors are part of the repository")
}

/// Runs the reader over the files in `folder`. Returns whether it accepts them, and its output;
/// `None` without python3.
fn read(folder: &Path) -> Option<(bool, String)> {
    if !needs::programs(&["python3"]) {
        return None;
    }
    let reader = vectors().join("read.py");
    let output = Command::new("python3").arg(reader).arg(folder).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.is_empty(), "{complaint}");
    Some((output.status.success(), String::from_utf8(output.stdout).unwrap()))
}

/// Reads a copy of the vectors, changed by `change`, with an additional empty file if `more` names
/// one. Asserts that the reader refuses it, and returns its output.
fn refusal(
    name: &str,
    more: Option<&str>,
    change: impl Fn(&str, String) -> String,
) -> Option<String> {
    let folder = std::env::temp_dir().join(format!("axon-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for file in FILES {
        fs::write(folder.join(file), change(file, text_of(file))).unwrap();
    }
    if let Some(file) = more {
        fs::write(folder.join(file), "").unwrap();
    }
    let answer = read(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let (agrees, text) = answer?;
    assert!(!agrees, "the fault was not found: {text}");
    Some(text)
}

fn is_case(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

#[test]
fn both_readers_agree_on_every_case() {
    let Some((agrees, text)) = read(&vectors()) else { return };
    assert!(agrees, "\n{text}");
    for file in FILES {
        let cases = text_of(file).lines().filter(|line| is_case(line)).count();
        assert!(text.contains(&format!("{file}: {cases} cases\n")), "{file}: {text}");
    }
}

#[test]
fn a_fault_in_any_case_is_found_with_its_file_and_line() {
    // Changes the last digit or letter.
    let altered = |line: &str| {
        let rest = &line[..line.len() - 1];
        format!("{rest}{}", if line.ends_with('0') { '1' } else { '0' })
    };
    let change = |_: &str, text: String| {
        let alter = |line: &str| if is_case(line) { altered(line) } else { line.to_string() };
        text.lines().map(|line| alter(line) + "\n").collect()
    };
    let Some(text) = refusal("every-case", None, change) else { return };
    for file in FILES {
        for (index, line) in text_of(file).lines().enumerate().filter(|(_, line)| is_case(line)) {
            let place = format!("{file}:{}: ", index + 1);
            assert!(text.contains(&place), "not found: {place}{line}");
        }
    }
}

/// A past error: the code changed to a new version, the cases kept the old one, and the right sides
/// were rewritten. Every case is then true, but no envelope is opened any more.
#[test]
fn a_file_whose_good_cases_became_errors_is_refused() {
    let change = |_: &str, text: String| {
        let rewrite = |line: &str| match line.split_once(" => ") {
            Some((inputs, _)) if line.starts_with("open 08") && inputs.len() >= 59 => {
                format!("{} => error version\n", inputs.replacen("open 08", "open 02", 1))
            }
            _ => format!("{line}\n"),
        };
        text.lines().map(rewrite).collect()
    };
    let Some(text) = refusal("hollow", None, change) else { return };
    let problem = "control.txt: 0 cases of `open ok`, where at least 4 were expected";
    assert!(text.contains(problem), "{text}");
    assert!(!text.contains("control.txt:1"), "no case is false: {text}");
}

#[test]
fn files_and_kinds_of_cases_that_are_not_known_are_refused() {
    let change = |file: &str, text: String| match file {
        "header.txt" => text + "perse 8 -\n",
        _ => text,
    };
    let Some(text) = refusal("unknown", Some("more.txt"), change) else { return };
    let line = text_of("header.txt").lines().count() + 1;
    assert!(text.contains(&format!("header.txt:{line}: perse 8 -")), "{text}");
    assert!(text.contains("more.txt: this reader does not know it"), "{text}");
}

#[test]
fn a_file_without_its_cases_is_refused() {
    let change = |file: &str, text: String| match file {
        "probe.txt" => String::new(),
        _ => text,
    };
    let Some(text) = refusal("without", None, change) else { return };
    let problem = "probe.txt: 0 cases of `congestion ok`, where at least 1";
    assert!(text.contains(problem), "{text}");
}
