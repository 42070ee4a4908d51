//! Every kind of error has a file in `tests/errors` and the exact message beside it. `BLESS=1`
//! rewrites the messages; the diff is reviewed like code.

use std::path::Path;

#[test]
fn every_wrong_file_is_answered_word_for_word() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let bless = std::env::var_os("BLESS").is_some();
    let mut failures = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = Path::new(path.file_name().unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        let answer = match axon_fabric::parse(name, &text) {
            Ok(_) => "it loads\n".into(),
            Err(error) => format!("{error}\n"),
        };
        let golden = path.with_extension("txt");
        if bless {
            std::fs::write(&golden, &answer).unwrap();
        }
        let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
        if answer != wanted || answer == "it loads\n" {
            failures.push(format!("wanted {wanted}   got {answer}"));
        }
        count += 1;
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(count >= 30, "only {count} cases");
}

#[test]
fn a_file_that_is_not_there_is_an_error_with_its_name() {
    let error = axon_fabric::load(Path::new("no/such.yaml")).unwrap_err();
    assert!(error.to_string().starts_with("no/such.yaml: cannot be read: "), "{error}");
}
