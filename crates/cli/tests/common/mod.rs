//! Helpers for tests of programs: folders, scenarios, and checks of printed output.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Directory that is removed when the test ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        // Tests in one process may use the same name.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("axon-{name}-{process}-{number}"));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file. Returns its path.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), contents).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn scenario(name: &str) -> String {
    root().join(format!("scenarios/{name}.yaml")).to_str().unwrap().to_owned()
}

pub fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Asserts that a run succeeded. Returns its standard output.
pub fn good(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

/// Asserts that a run exited with `code` and printed nothing to standard output. Returns its
/// standard error.
pub fn bad(output: &Output, code: i32) -> &str {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    assert!(!output.stderr.is_empty());
    text(&output.stderr)
}

/// Asserts that a run failed, with or without output. Returns its standard error.
pub fn failed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

/// Asserts that a run could not complete its task, with or without output. Returns its standard
/// error.
pub fn incomplete(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    text(&output.stderr)
}

/// Writes Ethernet frames as a pcap file, all with the same timestamp.
pub fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    for frame in frames {
        let length = (frame.len() as u32).to_le_bytes();
        bytes.extend([0; 8]);
        bytes.extend(length.into_iter().chain(length));
        bytes.extend(frame);
    }
    bytes
}

/// Checks help, version and usage errors of a program other than `axon`, such as `axon-bench`, also
/// when it is started by `axon bench`.
pub fn check_usage(program: &str) {
    let name = Path::new(program).file_name().unwrap().to_str().unwrap().to_owned();
    let from_axon = name.replacen('-', " ", 1);
    for started_as in [&name, &from_axon] {
        let mut command = Command::new(program);
        let output = command.arg0(started_as).arg("--help").output().unwrap();
        let help = good(&output);
        assert!(help.contains(&format!("Usage: {started_as}")), "{help}");
        assert!(help.contains("\nExit status: "), "{help}");
        let mut command = Command::new(program);
        let output = command.arg0(started_as).arg("--no-such-option").output().unwrap();
        let said = bad(&output, 2);
        assert!(said.contains("--no-such-option") && said.contains("--help"), "{said}");
        assert!(said.contains(&format!("Usage: {started_as}")), "{said}");
    }
    let version = run(program, &["--version"]);
    assert_eq!(good(&version), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    for argument in ["--help", "--version"] {
        let mut command = Command::new(program);
        command.arg(argument).stdout(File::options().write(true).open("/dev/full").unwrap());
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = incomplete(&output);
        assert_eq!(said, "cannot write standard output: No space left on device\n");
    }
}
