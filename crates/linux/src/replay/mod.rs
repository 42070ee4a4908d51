//! Runs a recorded node again, and compares what it answers with what it answered.
//!
//! The node is built by the same code as the daemon builds it, from what the recording holds, and
//! gets every input at its time. The hash of each answer is compared with the recorded one. The
//! first that differs ends the replay, since later ones may differ for that reason alone.

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

/// What to do beside comparing.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Go no further than this, counted from the start of the node.
    pub until: Option<Span>,
    /// Write what the ports carried to this pcapng file.
    pub into: Option<PathBuf>,
    /// The recording must be of this fabric.
    pub fabric: Option<FabricText>,
}

/// What came of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The node: `s1`.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Inputs that it was given.
    pub inputs: u64,
    /// Actions that it answered with.
    pub actions: u64,
    /// The time of the last input, from the node's start.
    pub reached: Time,
    /// How long the replay took.
    pub took: Duration,
    /// How it ended.
    pub end: ReplayEnd,
}

/// How a replay ended.
#[derive(Debug)]
pub enum ReplayEnd {
    /// Where the recording does: no difference.
    Ending(Ending),
    /// Where it was asked to: no difference before.
    Until,
    /// The node answered otherwise.
    Difference(Box<Difference>),
    /// The recording cannot be read on; no difference before.
    Unreadable(RecordingError),
}

/// An input that this binary's node answers otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The record, from 1.
    pub record: u64,
    /// Its place in the file, in bytes.
    pub offset: u64,
    /// When it was, from the node's start.
    pub at: Time,
    /// The input, in words.
    pub input: String,
    /// How many actions were recorded, and their hash.
    pub expected: (u64, u64),
    /// The hash of what was answered now.
    pub hash: u64,
    /// What was answered now, in words.
    pub actions: Vec<String>,
}

/// The recordings at `path`: the file, or all in a directory, by name.
///
/// # Errors
/// There is nothing, or it cannot be read.
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

/// Whether a file of a directory of recordings is named for its node: `s1.axrec`, `s1.2.axrec`.
///
/// # Errors
/// It is the recording of another node.
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
/// Nothing was replayed: the file cannot be opened, is no recording that this axon can read, or its
/// node cannot be built; or the capture cannot be written, or would overwrite the recording.
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

/// Opens a regular file; the bytes of anything else, a FIFO for one, may never come.
fn open_regular(path: &Path) -> std::io::Result<File> {
    // Without the flag, opening a FIFO that nobody writes to would take for ever.
    let nonblock = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = File::options().read(true).custom_flags(nonblock).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(std::io::Error::other("not a regular file; expected one that `--record` wrote"))
}

/// Whether `path` leads to this file, by whatever name.
fn is_same(file: &File, path: &Path) -> bool {
    let inode = |found: Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(of_file), Ok(of_path)) => inode(of_file) == inode(of_path),
        _ => false,
    }
}

/// A replay on its way.
struct Run {
    header: Header,
    node: Rebuilt,
    capture: Capture,
    /// Kept for their memory.
    bytes: Vec<u8>,
    actions: Vec<Action>,
}

impl Run {
    /// Fails only if the capture cannot be written.
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

    /// Gives the node one input; answers with the difference, if there is one.
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
