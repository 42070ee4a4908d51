//! What the tests of the binary share: folders, scenarios, and what a run must print.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes when the test ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        // Tests of one process may use the same name.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("axon-{name}-{process}-{number}"));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file; its path.
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

/// Of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn scenario(name: &str) -> String {
    root().join(format!("scenarios/{name}.yaml")).to_str().unwrap().to_owned()
}

pub fn axon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_axon")).args(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Standard output of a run that must succeed.
pub fn good(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

/// Standard error of a run that must end with `code` and print nothing else.
pub fn bad(output: &Output, code: i32) -> &str {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    assert!(!output.stderr.is_empty());
    text(&output.stderr)
}

/// Standard error of a run that must fail, whatever it has printed before.
pub fn failed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

/// Standard error of a run that could not do all that it was to do, whatever it has printed before.
pub fn incomplete(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    text(&output.stderr)
}

/// Ethernet frames as a pcap file, all seen at once.
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
