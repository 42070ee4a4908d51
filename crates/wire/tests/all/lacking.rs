//! Tests that lack a program or a privilege fail in CI, and are skipped elsewhere.

use crate::tshark::needs;
use std::process::Command;

/// The test below runs this one separately, with and without `CI`.
#[test]
#[ignore = "run by the other test, with an environment of its own"]
fn a_test_without_its_program() {
    assert!(!needs::programs(&["sh", "no-such-program"]));
}

#[test]
fn a_test_without_its_program_fails_in_ci_and_is_skipped_aloud_elsewhere() {
    let own = std::env::current_exe().unwrap();
    let run = |ci: Option<&str>| {
        let mut command = Command::new(&own);
        command
            .args(["--ignored", "--exact", "lacking::a_test_without_its_program"])
            .env_remove("CI");
        let output = command.envs(ci.map(|value| ("CI", value))).output().unwrap();
        let texts = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(texts).unwrap())
    };
    for ci in [None, Some("")] {
        let (passed, text) = run(ci);
        assert!(passed && text.contains(" no-such-program is not installed\n"), "{text}");
    }
    for ci in ["true", "1"] {
        let (passed, text) = run(Some(ci));
        let said = "no-such-program is not installed: with CI set, a test that cannot be run has \
                    failed";
        assert!(!passed && text.contains(said), "{text}");
    }
}
