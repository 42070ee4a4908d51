//! `axon reproduce`, `bench`, `demo`, `model` and `cam` run a program beside `axon` or on `PATH`.

use crate::common::{Folder, axon, bad, good, text};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The commands, each with the package that has its program.
const EXPERIMENTS: [(&str, &str); 5] = [
    ("reproduce", "axon-papers"),
    ("cam", "axon-papers"),
    ("bench", "axon-bench"),
    ("demo", "axon-demo"),
    ("model", "axon-model"),
];
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A folder with `axon` in `bin`, and nothing beside it.
struct Place(Folder);

impl Place {
    fn new(name: &str) -> Place {
        let folder = Folder::new(name);
        std::fs::create_dir_all(folder.0.join("bin")).unwrap();
        let (built, own) = (env!("CARGO_BIN_EXE_axon"), folder.0.join("bin/axon"));
        if std::fs::hard_link(built, &own).is_err() {
            let copied = Command::new("cp").arg(built).arg(&own).status().unwrap();
            assert!(copied.success());
        }
        Place(folder)
    }

    /// A path in the folder.
    fn at(&self, path: &str) -> PathBuf {
        self.0.0.join(path)
    }

    fn text_of(&self, path: &str) -> String {
        self.0.path(path)
    }

    /// Writes a file with a mode, in a separate process. If another thread of this process forks
    /// while the file is open for writing, the file cannot be executed.
    fn write(&self, path: &str, mode: &str, contents: &str) {
        let file = self.at(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let script = "printf %s \"$1\" > \"$2\" && chmod \"$3\" \"$2\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", contents]).arg(file).arg(mode);
        assert!(command.status().unwrap().success());
    }

    /// Writes a program that prints its version, or else its path and arguments, and exits with 7.
    fn fake(&self, path: &str, version: &str) {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo {name} {version}; exit; fi\n\
             printf '<%s>' \"$0\" \"$@\"; echo to stderr >&2; exit 7\n"
        );
        self.write(path, "755", &script);
    }

    fn run<S: AsRef<OsStr>>(&self, path: &[&str], arguments: &[S]) -> Output {
        let path = std::env::join_paths(path.iter().map(|folder| self.at(folder))).unwrap();
        let mut command = Command::new(self.at("bin/axon"));
        command.args(arguments).env("PATH", path).output().unwrap()
    }
}

#[test]
fn each_command_becomes_its_program_with_arguments_output_and_status_as_they_are() {
    let place = Place::new("experiment-found");
    for (command, _) in EXPERIMENTS {
        let program = format!("path/axon-{command}");
        place.fake(&program, VERSION);
        for arguments in [
            &[][..],
            &["--help"],
            &["-h"],
            &["--", "x"],
            &["--out", "a b", "-", "--", "--json", "", "*", "$HOME", "'"],
            &["--list", command],
            &[command, "--version"],
        ] {
            let output = place.run(&["none", "path"], &[&[command], arguments].concat());
            let path = place.text_of(&program);
            let said = [path.as_str()].into_iter().chain(arguments.iter().copied());
            let said: String = said.map(|word| format!("<{word}>")).collect();
            assert_eq!(text(&output.stdout), said, "{output:?}");
            assert_eq!(text(&output.stderr), "to stderr\n", "{output:?}");
            assert_eq!(output.status.code(), Some(7), "{output:?}");
        }
        let version = place.run(&["path"], &[command, "--version"]);
        assert_eq!(good(&version), format!("axon-{command} {VERSION}\n"));
    }
    let no_text = OsStr::from_bytes(b"\xff\xfe");
    let output = place.run(&["path"], &[OsStr::new("cam"), no_text]);
    assert!(output.stdout.ends_with(b"<\xff\xfe>"), "{output:?}");
}

#[test]
fn a_program_that_is_not_there_is_named_with_where_it_was_looked_for_and_how_to_build_it() {
    let place = Place::new("experiment-missing");
    // A folder of that name is not a program.
    std::fs::create_dir_all(place.at("path/axon-cam")).unwrap();
    for (command, package) in EXPERIMENTS {
        let output = place.run(&["path"], &[command, "--help"]);
        let expected = format!(
            "axon-{command} is neither in {}, where axon is, nor in a folder of PATH; \
             `make experiments` or `cargo build --release -p {package}` builds it\n",
            place.text_of("bin")
        );
        assert_eq!(bad(&output, 2), expected);
    }
    let mut command = Command::new(place.at("bin/axon"));
    let output = command.arg("demo").env_remove("PATH").output().unwrap();
    assert!(bad(&output, 2).starts_with("axon-demo is neither in "), "{output:?}");
}

#[test]
fn a_program_beside_axon_is_taken_before_one_on_the_path_also_through_a_link() {
    let place = Place::new("experiment-beside");
    place.fake("bin/axon-model", VERSION);
    place.fake("path/axon-model", VERSION);
    let said = format!("<{}><x>", place.text_of("bin/axon-model"));
    assert_eq!(text(&place.run(&["path"], &["model", "x"]).stdout), said);
    std::os::unix::fs::symlink(place.at("bin/axon"), place.at("axon")).unwrap();
    let linked = Command::new(place.at("axon")).args(["model", "x"]).output().unwrap();
    assert_eq!(text(&linked.stdout), said);
    std::fs::remove_file(place.at("bin/axon-model")).unwrap();
    let said = format!("<{}><x>", place.text_of("path/axon-model"));
    assert_eq!(text(&place.run(&["path"], &["model", "x"]).stdout), said);
}

#[test]
fn a_path_with_spaces_and_quotes_is_a_path_like_any_other() {
    let place = Place::new("experiment with 'a' space");
    place.fake("a folder/axon-bench", VERSION);
    let output = place.run(&["a folder"], &["bench", "a b"]);
    let said = format!("<{}><a b>", place.text_of("a folder/axon-bench"));
    assert_eq!(text(&output.stdout), said, "{output:?}");
    place.fake("bin/axon-bench", VERSION);
    let output = place.run(&["a folder"], &["bench"]);
    assert_eq!(text(&output.stdout), format!("<{}>", place.text_of("bin/axon-bench")));
}

#[test]
fn a_program_of_another_version_is_refused_with_both_versions_and_its_path() {
    let place = Place::new("experiment-version");
    place.fake("path/axon-cam", "9.8.7");
    let output = place.run(&["path"], &["cam", "x.pcap"]);
    let expected = format!(
        "{} is of version 9.8.7, and axon of version {VERSION}; `make experiments` or \
         `cargo build --release -p axon-papers` builds it in this version\n",
        place.text_of("path/axon-cam")
    );
    assert_eq!(bad(&output, 2), expected);
}

#[test]
fn a_program_that_is_none_is_refused_in_one_sentence() {
    let place = Place::new("experiment-garbage");
    let path = place.text_of("path/axon-bench");
    let refused = |mode: &str, contents: &str| {
        place.write("path/axon-bench", mode, contents);
        let output = place.run(&["path"], &["bench"]);
        let said = bad(&output, 2).to_owned();
        assert!(said.starts_with(&path) && said.lines().count() == 1, "{said}");
        assert!(said.contains("`make experiments`"), "{said}");
        said
    };
    let script = format!("#!/bin/sh\necho axon-bench {VERSION}\n");
    assert!(refused("644", &script).contains(" is not executable; "));
    // The next program on the path is used.
    place.fake("next/axon-bench", VERSION);
    assert_eq!(place.run(&["path", "next"], &["bench"]).status.code(), Some(7));
    for garbage in ["", "\u{7f}ELF", "axon-bench"] {
        let said = refused("755", garbage);
        assert!(said.contains(" cannot be run: ") && !said.contains("os error"), "{said}");
    }
    assert!(refused("755", "#!/no/such/shell\n").contains(" cannot be run: "));
    for other in [
        "#!/bin/sh\n",
        "#!/bin/sh\necho bench 0.1.0\n",
        "#!/bin/sh\necho axon-benchmark 0.1.0\n",
        "#!/bin/sh\necho axon-bench 0.1.0; exit 1\n",
        "#!/bin/sh\necho axon-bench 0.1.0; echo more\n",
    ] {
        let said = refused("755", other);
        assert!(said.contains(" does not answer --version as axon-bench; "), "{other}: {said}");
    }
}

#[test]
fn experiments_are_listed_in_help_and_completions_and_have_a_manual_page() {
    let folder = Folder::new("experiment-listed");
    let (all, script) = (axon(&["--help"]), axon(&["completions", "bash"]));
    good(&axon(&["man", &folder.path("man")]));
    for (command, _) in EXPERIMENTS {
        assert!(good(&all).contains(&format!("\n  {command} ")), "{command} is not listed");
        assert!(good(&script).contains(command), "{command} is not completed");
        let own = axon(&["help", command]);
        assert!(good(&own).contains(&format!("Usage: axon {command} [ARGUMENTS]...")), "{own:?}");
        assert!(good(&own).contains("\nExit status: "), "{command} does not name its exit status");
        let page = folder.read(&format!("man/axon-{command}.1"));
        assert!(page.contains("EXIT STATUS"), "{page}");
    }
}
