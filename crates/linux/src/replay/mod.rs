//! Replays a recorded node and compares its answers with the recorded ones.
//!
//! The code of the daemon builds the node from the contents of the recording. The node then gets
//! every input at its recorded time. The hash of each answer is compared with the recorded one. The
//! first difference ends the replay, because later ones may be its consequences.

mod node;
mod ports;
#[cfg(test)]
mod tests;
mod words;

use crate::record::EXTENSION;
use anyhow::{Context, Result, bail};
use axon_capture::recording::{
    Ending, Header, Reader, Record, RecordingError, encode_action, hash,
};
use axon_fabric::FabricText;
use axon_node::{Action, NodeKind};
use axon_wire::{Span, Time};
use node::Rebuilt;
use ports::Capture;
use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Options for a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Time at which the replay ends, counted from the start of the node.
    pub until: Option<Span>,
    /// Pcapng file to which the frames at the ports are written.
    pub into: Option<PathBuf>,
    /// Fabric file that must match the recorded one. A different configuration is an error.
    pub fabric: Option<FabricText>,
}

/// Result of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// Name of the node, such as `s1`.
    pub name: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Number of replayed inputs.
    pub inputs: u64,
    /// Number of actions in the answers.
    pub actions: u64,
    /// Time of the last input, from the node's start.
    pub reached: Time,
    /// Duration of the replay.
    pub took: Duration,
    /// Reason for the end.
    pub end: ReplayEnd,
}

/// Reason for the end of a replay.
#[derive(Debug)]
pub enum ReplayEnd {
    /// The recording has ended without a difference.
    Ending(Ending),
    /// The requested end was reached without a difference.
    Until,
    /// The node answered differently.
    Difference(Box<Difference>),
    /// The recording cannot be read further. There was no difference before.
    Unreadable(RecordingError),
}

/// Input that the node in this binary answers differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Record number, counted from 1.
    pub record: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Time of the input, from the node's start.
    pub at: Time,
    /// Description of the input.
    pub input: String,
    /// Recorded number of actions, and their hash.
    pub expected: (u64, u64),
    /// Hash of the new answer.
    pub hash: u64,
    /// Descriptions of the new actions.
    pub actions: Vec<String>,
}

/// Returns the recordings at `path`: the file itself, or all recordings in a directory, by name.
///
/// # Errors
/// There are no recordings, or the path cannot be read.
pub fn recordings(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|found| found == EXTENSION)).collect();
    if files.is_empty() {
        bail!("{}: no file ends in .{EXTENSION}", path.display());
    }
    files.sort();
    Ok(files)
}

/// Checks that a file in a directory of recordings is named after its node: `s1.axrec`,
/// `s1.2.axrec`, and so on.
///
/// # Errors
/// The file is a recording of another node.
pub fn check_name(file: &Path, name: &str) -> Result<()> {
    let stem = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().unwrap_or_default();
    if stem != name {
        bail!("{}: by its name of {stem}, by its header a recording of {name}", file.display());
    }
    Ok(())
}

/// Replays one recording.
///
/// # Errors
/// Nothing was replayed, because the file cannot be opened, is not a recording that this axon can
/// read, or its node cannot be built. Or the capture cannot be written, or would overwrite the
/// recording.
pub fn replay(file: &Path, options: &ReplayOptions) -> Result<Replayed> {
    let named = || file.display().to_string();
    let source = open_regular(file).with_context(named)?;
    let into = options.into.as_deref();
    let into_named = || into.unwrap_or(Path::new("")).display().to_string();
    if into.is_some_and(|into| is_same(&source, into)) {
        bail!("{}: {} is this recording, and would be overwritten", named(), into_named());
    }
    let reader = Reader::new(source).with_context(named)?;
    let node = Rebuilt::of(reader.header(), options.fabric.as_ref()).with_context(named)?;
    let capture = Capture::open(into, reader.header()).with_context(into_named)?;
    let header = reader.header().clone();
    let run = Run { header, node, capture, bytes: Vec::new(), actions: Vec::new() };
    run.all(reader, options.until).with_context(into_named)
}

/// Opens a regular file. Reading from any other kind, such as a FIFO, may block forever.
fn open_regular(path: &Path) -> std::io::Result<File> {
    // Without this flag, opening a FIFO that has no writer blocks forever.
    let nonblock = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = File::options().read(true).custom_flags(nonblock).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(std::io::Error::other("not a regular file; expected one that `--record` wrote"))
}

/// Returns whether `path` leads to this file, under any name.
fn is_same(file: &File, path: &Path) -> bool {
    let inode = |found: Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(of_file), Ok(of_path)) => inode(of_file) == inode(of_path),
        _ => false,
    }
}

/// Replay in progress.
struct Run {
    header: Header,
    node: Rebuilt,
    capture: Capture,
    /// Scratch buffers, kept for their allocations.
    bytes: Vec<u8>,
    actions: Vec<Action>,
}

impl Run {
    /// Replays all inputs.
    ///
    /// # Errors
    /// The capture cannot be written.
    fn all(mut self, mut reader: Reader<File>, until: Option<Span>) -> std::io::Result<Replayed> {
        let started = Instant::now();
        let until = until.map(|span| Time::ZERO + span);
        let (mut inputs, mut actions, mut reached) = (0, 0, Time::ZERO);
        let end = loop {
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    let cut = Ending::Cut { offset: 0 };
                    break ReplayEnd::Ending(reader.ending().unwrap_or(cut));
                }
                Err(error) => break ReplayEnd::Unreadable(error),
            };
            if until.is_some_and(|until| record.at > until) {
                break ReplayEnd::Until;
            }
            reached = record.at;
            inputs += 1;
            let difference = self.one(record)?;
            actions += self.actions.len() as u64;
            if let Some(difference) = difference {
                break ReplayEnd::Difference(Box::new(difference));
            }
        };
        self.capture.finish()?;
        let Header { name, kind, .. } = self.header;
        let took = started.elapsed();
        Ok(Replayed { name, kind, inputs, actions, reached, took, end })
    }

    /// Replays one input. Returns the difference, if there is one.
    fn one(&mut self, record: Record) -> std::io::Result<Option<Difference>> {
        let Record { number, offset, at, input, .. } = record;
        self.capture.input(&self.node, at, &input)?;
        self.actions.clear();
        self.node.handle(at, input.clone(), &mut self.actions);
        self.capture.actions(&self.node, at, &self.actions)?;
        self.bytes.clear();
        for action in &self.actions {
            encode_action(action, &mut self.bytes);
        }
        let hash = if self.actions.is_empty() { 0 } else { hash(&self.bytes) };
        if (record.actions, record.hash) == (self.actions.len() as u64, hash) {
            return Ok(None);
        }
        let ports = &self.header.ports;
        Ok(Some(Difference {
            record: number,
            offset,
            at,
            input: words::input(ports, at, &input),
            expected: (record.actions, record.hash),
            hash,
            actions: self.actions.iter().map(|action| words::action(ports, action)).collect(),
        }))
    }
}
