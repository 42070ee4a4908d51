//! Writer of a recording.
//!
//! Records are collected in a block, which is written when it is large or old enough. If a record
//! would make the file exceed its size limit, the recording ends before that record and states this
//! reason.

use super::codec::{encode_action, put, put_answer, put_input};
use super::header::{Header, preamble};
use super::section::{self, BLOCK_BYTES_MAX, HEADER_BYTES_MAX, Kind, PREFIX_BYTES, SEAL_BYTES};
use super::{EndReason, hash};
use axon_node::{Action, Input};
use axon_wire::{Span, Time};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Age of the first record in a block at which the block is written.
pub const FLUSH_INTERVAL: Span = Span::from_millis(100);
/// Size in bytes at which a block is written.
const BLOCK_BYTES: usize = 64 << 10;
/// Maximum length in bytes of the two numbers in an end section or at the beginning of a block.
const NUMBERS_BYTES_MAX: usize = 20;
/// Maximum length of the end section in bytes.
const END_BYTES_MAX: u64 = (PREFIX_BYTES + 1 + NUMBERS_BYTES_MAX + SEAL_BYTES) as u64;

/// Creates a file that only its owner may read. An existing file is not changed.
///
/// # Errors
/// The file already exists, or another file system error.
pub fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Writer of a recording. Each input is recorded in two steps: [`Writer::input`] before the node
/// handles it, and [`Writer::answer`] after that. End the recording with [`Writer::finish`], since
/// otherwise it looks like that of a killed node.
pub struct Writer<W> {
    out: W,
    /// ID of this recording, on which the hashes of every section depend.
    id: u64,
    /// Number of bytes written.
    offset: u64,
    bytes_max: u64,
    block: Block,
    /// Time of the last record.
    last: Time,
    /// Number of complete records so far.
    records: u64,
    /// Number of records written, and the time of the last of them.
    sent: (u64, Time),
    /// Buffer for encoded actions, which is reused.
    actions: Vec<u8>,
    end: Option<EndReason>,
}

/// Records that have not been written.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// Offset of the first record.
    records_begin: usize,
    /// Offset of the record whose answer is pending.
    begin: usize,
    /// Time of the first record.
    first: Time,
    /// Time of the record before the one that begins at `begin`.
    before: Time,
}

impl Block {
    /// Appends a record without its answer; the one before it was at `last`.
    fn push(&mut self, (number, last): (u64, Time), at: Time, input: &Input) {
        self.before = last;
        if self.bytes.is_empty() {
            put(&mut self.bytes, number);
            put(&mut self.bytes, at.ticks());
            self.records_begin = self.bytes.len();
            (self.first, self.before) = (at, at);
        }
        self.begin = self.bytes.len();
        put_input(&mut self.bytes, self.before, at, input);
    }

    /// Removes the last record, and all of the block if it was the only one. Returns the time of
    /// the one before.
    fn drop_last(&mut self) -> Time {
        let is_first = self.begin == self.records_begin;
        self.bytes.truncate(if is_first { 0 } else { self.begin });
        self.before
    }
}

impl<W: Write> Writer<W> {
    /// Starts a recording of at most `bytes_max` bytes and writes its header.
    ///
    /// # Errors
    /// The error of the writer, or the header exceeds `bytes_max` or [`HEADER_BYTES_MAX`].
    pub fn new(out: W, header: &Header, bytes_max: u64) -> io::Result<Writer<W>> {
        let payload = postcard::to_allocvec(header).map_err(io::Error::other)?;
        let mut writer = Writer {
            out,
            id: 0,
            offset: 0,
            bytes_max,
            block: Block::default(),
            last: Time::ZERO,
            records: 0,
            sent: (0, Time::ZERO),
            actions: Vec::new(),
            end: None,
        };
        let needed = preamble().len() as u64 + section_bytes(payload.len()) + END_BYTES_MAX;
        if needed > bytes_max || payload.len() > HEADER_BYTES_MAX {
            let text = format!("the header alone takes {needed} bytes, and {bytes_max} may be");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        writer.send(&preamble())?;
        writer.section(Kind::Header, &payload)?;
        writer.id = xxh3_64(&payload);
        writer.out.flush()?;
        Ok(writer)
    }

    /// Records an input that the node is about to handle at `at`, which must not be earlier than
    /// the time of the last input. Does nothing once the recording has ended.
    pub fn input(&mut self, at: Time, input: &Input) {
        if self.end.is_none() {
            self.block.push((self.records + 1, self.last), at, input);
            self.last = at;
        }
    }

    /// Records the node's answer to the last input. If the recording has ended, returns the reason.
    ///
    /// # Errors
    /// The error of the writer, such as a full disk. The part written so far remains as a truncated
    /// recording.
    pub fn answer(&mut self, actions: &[Action]) -> io::Result<Option<EndReason>> {
        if self.end.is_some() {
            return Ok(self.end);
        }
        self.actions.clear();
        for action in actions {
            encode_action(action, &mut self.actions);
        }
        let hash = hash(&self.actions);
        put_answer(&mut self.block.bytes, self.block.begin, actions.len() as u64, hash);
        let block_bytes = self.block.bytes.len();
        let size = self.offset + section_bytes(block_bytes) + END_BYTES_MAX;
        if size > self.bytes_max || block_bytes > BLOCK_BYTES_MAX {
            self.last = self.block.drop_last();
            self.finish(EndReason::SizeBound)?;
            return Ok(self.end);
        }
        self.records += 1;
        if block_bytes >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(None)
    }

    /// Returns the time at which [`Writer::flush`] is due next.
    pub fn flush_at(&self) -> Option<Time> {
        (!self.block.bytes.is_empty()).then_some(self.block.first + FLUSH_INTERVAL)
    }

    /// Writes all complete records to the file.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.block.bytes.is_empty() {
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.block.bytes);
        let sent = self.section(Kind::Block, &block);
        block.clear();
        self.block.bytes = block;
        self.sent = (self.records, self.last);
        sent.and_then(|()| self.out.flush())
    }

    /// Ends the recording after the part written so far. Later records are omitted.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn cut(&mut self, reason: EndReason) -> io::Result<()> {
        if self.end.is_none() {
            self.block.bytes.clear();
            (self.records, self.last) = self.sent;
        }
        self.finish(reason)
    }

    /// Returns the underlying writer.
    pub fn out_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the recording, so that its reader can tell that it is complete. Has no effect if it has
    /// already ended.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn finish(&mut self, reason: EndReason) -> io::Result<()> {
        if self.end.is_some() {
            return Ok(());
        }
        self.end = Some(reason);
        self.flush()?;
        let mut payload = vec![reason.code()];
        put(&mut payload, self.records);
        put(&mut payload, self.last.ticks());
        self.section(Kind::End, &payload)?;
        self.out.flush()
    }

    /// Returns the number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Returns the number of complete records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn section(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let offset = self.offset;
        self.send(&section::prefix(kind, payload.len(), self.id, offset))?;
        self.send(payload)?;
        self.send(&section::seal(payload, self.id, offset))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Returns the length in bytes of a section with this payload length.
const fn section_bytes(payload: usize) -> u64 {
    (PREFIX_BYTES + payload + SEAL_BYTES) as u64
}
