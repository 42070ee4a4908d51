//! Writes a recording.
//!
//! Records gather in a block, which goes to the file when it is large, or old. A file that would
//! grow beyond its bound ends before the record that would be too much, with an end that says so.

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

/// A block that is not large goes to the file when its first record is this old.
pub const FLUSH_INTERVAL: Span = Span::from_millis(100);
/// From this size on a block goes to the file, in bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// Two numbers at most, of the end or of the beginning of a block.
const NUMBERS_BYTES_MAX: usize = 20;
/// Bytes of the end, at most.
const END_BYTES_MAX: u64 = (PREFIX_BYTES + 1 + NUMBERS_BYTES_MAX + SEAL_BYTES) as u64;

/// Creates a file that only its owner may read. One that exists is left alone.
///
/// # Errors
/// It exists, or what else the file system says.
pub fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// A recording that is being written. Each input is recorded in two steps: [`Writer::input`]
/// before the node handles it, [`Writer::answer`] after. To be ended with [`Writer::finish`];
/// without, the recording ends as that of a node that was killed.
pub struct Writer<W> {
    out: W,
    /// Of this recording; every section's hashes depend on it.
    id: u64,
    /// Bytes written.
    offset: u64,
    bytes_max: u64,
    block: Vec<u8>,
    /// Where in the block its first record begins.
    records_begin: usize,
    /// Where in the block the record begins whose answer is not known yet.
    begin: usize,
    /// When the block's first record was.
    first: Time,
    /// Of the last record.
    last: Time,
    /// The time of the record before the one that begins at `begin`.
    before: Time,
    /// Whole records so far.
    records: u64,
    /// Of these, how many went to the writer, and the time of the last of them.
    sent: (u64, Time),
    /// Kept for its memory.
    actions: Vec<u8>,
    end: Option<EndReason>,
}

impl<W: Write> Writer<W> {
    /// Starts a recording of at most `bytes_max` bytes, and writes its header.
    ///
    /// # Errors
    /// What the writer says; a header that is larger than the recording may be, or than
    /// [`HEADER_BYTES_MAX`].
    pub fn new(out: W, header: &Header, bytes_max: u64) -> io::Result<Writer<W>> {
        let payload = postcard::to_allocvec(header).map_err(io::Error::other)?;
        let mut writer = Writer {
            out,
            id: 0,
            offset: 0,
            bytes_max,
            block: Vec::new(),
            records_begin: 0,
            begin: 0,
            first: Time::ZERO,
            last: Time::ZERO,
            before: Time::ZERO,
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

    /// Records an input that the node is about to handle at `at`, which is never before that of
    /// the last one. Nothing happens once the recording has ended.
    pub fn input(&mut self, at: Time, input: &Input) {
        if self.end.is_some() {
            return;
        }
        if self.block.is_empty() {
            put(&mut self.block, self.records + 1);
            put(&mut self.block, at.ticks());
            self.records_begin = self.block.len();
            self.first = at;
            self.last = at;
        }
        self.begin = self.block.len();
        self.before = self.last;
        put_input(&mut self.block, self.last, at, input);
        self.last = at;
    }

    /// Records what the node answered to the last input. Returns how the recording has ended, if
    /// it has.
    ///
    /// # Errors
    /// What the writer says, a full disk for one; what was written stays a recording that is cut
    /// short.
    pub fn answer(&mut self, actions: &[Action]) -> io::Result<Option<EndReason>> {
        if self.end.is_some() {
            return Ok(self.end);
        }
        self.actions.clear();
        for action in actions {
            encode_action(action, &mut self.actions);
        }
        let hash = hash(&self.actions);
        put_answer(&mut self.block, self.begin, actions.len() as u64, hash);
        let size = self.offset + section_bytes(self.block.len()) + END_BYTES_MAX;
        if size > self.bytes_max || self.block.len() > BLOCK_BYTES_MAX {
            self.drop_last();
            self.finish(EndReason::SizeBound)?;
            return Ok(self.end);
        }
        self.records += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(None)
    }

    /// Takes the last record away; a block that it was alone in is none.
    fn drop_last(&mut self) {
        let is_first = self.begin == self.records_begin;
        self.block.truncate(if is_first { 0 } else { self.begin });
        self.last = self.before;
    }

    /// When [`Writer::flush`] is to be called next.
    pub fn flush_at(&self) -> Option<Time> {
        (!self.block.is_empty()).then_some(self.first + FLUSH_INTERVAL)
    }

    /// Brings all whole records to the file.
    ///
    /// # Errors
    /// What the writer says.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.block);
        let sent = self.section(Kind::Block, &block);
        block.clear();
        self.block = block;
        self.sent = (self.records, self.last);
        sent.and_then(|()| self.out.flush())
    }

    /// Ends the recording after what went to the writer: what has gathered since is left out.
    ///
    /// # Errors
    /// What the writer says.
    pub fn cut(&mut self, reason: EndReason) -> io::Result<()> {
        if self.end.is_none() {
            self.block.clear();
            (self.records, self.last) = self.sent;
        }
        self.finish(reason)
    }

    /// Where it goes to.
    pub fn out_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the recording, so that its reader knows that nothing is missing. Harmless if it has
    /// ended.
    ///
    /// # Errors
    /// What the writer says.
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

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Whole records so far.
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

/// Bytes of a section with a payload of so many.
const fn section_bytes(payload: usize) -> u64 {
    (PREFIX_BYTES + payload + SEAL_BYTES) as u64
}
