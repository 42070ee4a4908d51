//! `tools/test --changed` in small workspaces: the packages that `make check` tests, and the base
//! of the comparison where there is no `main`, no branch or no repository.

use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workspace of two crates, of which `b` depends on `a`. It is removed when the test ends.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Workspace {
        let folder = std::env::temp_dir().join(format!("axon-{name}-{}", std::process::id()));
        let workspace = Workspace(folder);
        workspace.file("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n");
        let manifest = "[package]\nedition = \"2024\"\nversion = \"0.1.0\"\nname = ";
        workspace.file("crates/a/Cargo.toml", &format!("{manifest}\"a\"\n"));
        let needs = "[dependencies]\na = { path = \"../a\" }\n";
        workspace.file("crates/b/Cargo.toml", &format!("{manifest}\"b\"\n{needs}"));
        workspace.file("crates/a/src/lib.rs", "");
        workspace.file("crates/b/src/lib.rs", "");
        workspace.file(".gitignore", "/target\n");
        std::fs::create_dir_all(workspace.0.join("tools")).unwrap();
        std::fs::copy(root().join("tools/test"), workspace.0.join("tools/test")).unwrap();
        workspace.run(env!("CARGO"), &["generate-lockfile", "--offline", "--quiet"]);
        workspace
    }

    fn with_main(name: &str) -> Workspace {
        let workspace = Workspace::new(name);
        workspace.git(&["init", "--quiet", "--initial-branch=main"]);
        workspace.commit();
        workspace
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        // A repository around the folder of temporary files does not belong to this test.
        command.env("GIT_CEILING_DIRECTORIES", self.0.parent().unwrap_or(Path::new("/")));
        let output = command.args(arguments).current_dir(&self.0).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        self.run("git", &[&identity, arguments].concat());
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=change"]);
    }

    /// Returns the printed sentence and the packages.
    fn changed(&self) -> (String, Vec<String>) {
        let text = self.run("python3", &["tools/test", "--changed", "--list"]);
        let mut lines = text.lines().map(str::to_owned);
        (lines.next().unwrap(), lines.collect())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_branch_is_compared_with_main_and_a_change_takes_its_dependents_along() {
    let workspace = Workspace::with_main("changed-branch");
    workspace.git(&["checkout", "--quiet", "-b", "topic"]);
    workspace.file("crates/b/src/lib.rs", "//! B.\n");
    workspace.commit();
    let (sentence, packages) = workspace.changed();
    assert!(sentence.contains("changed since main ("), "{sentence}");
    assert_eq!(packages, ["b"]);
    // Uncommitted files count, including new ones.
    workspace.file("crates/a/src/new.rs", "");
    assert_eq!(workspace.changed().1, ["a", "b"]);
    workspace.git(&["checkout", "--quiet", "--detach"]);
    let (sentence, packages) = workspace.changed();
    assert!(sentence.contains("HEAD being detached"), "{sentence}");
    assert_eq!(packages, ["a", "b"]);
}

#[test]
fn without_another_main_uncommitted_changes_count() {
    let workspace = Workspace::with_main("changed-main");
    assert_eq!(workspace.changed().1, [""; 0]);
    workspace.file("crates/b/src/lib.rs", "//! B.\n");
    let (sentence, packages) = workspace.changed();
    assert!(sentence.contains("this is main: uncommitted changes"), "{sentence}");
    assert_eq!(packages, ["b"]);
    workspace.git(&["branch", "--move", "trunk"]);
    let (sentence, packages) = workspace.changed();
    assert!(sentence.contains("there is no main: uncommitted changes"), "{sentence}");
    assert_eq!(packages, ["b"]);
}

#[test]
fn outside_of_a_repository_all_crates_count() {
    let workspace = Workspace::new("changed-nowhere");
    let (sentence, packages) = workspace.changed();
    assert!(sentence.contains("no git repository: all crates"), "{sentence}");
    assert_eq!(packages, ["a", "b"]);
}
