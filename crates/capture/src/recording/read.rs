//! Reader that returns the records of a recording one by one.

use super::EndReason;
use super::codec::Cursor;
use super::error::{Place, RecordingError};
use super::header::{Header, PREAMBLE_BYTES, check_preamble};
use super::section::{self, Changed, Kind, PREFIX_BYTES, SEAL_BYTES};
use axon_node::Input;
use axon_wire::Time;
use std::io::{BufReader, Read};
use xxhash_rust::xxh3::xxh3_64;

/// Recorded input, with a digest of the node's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the record, from 1.
    pub number: u64,
    /// Offset of the record's first byte in the file.
    pub offset: u64,
    /// Time of the input on the node's clock.
    pub at: Time,
    /// The input.
    pub input: Input,
    /// Number of actions in the node's answer.
    pub actions: u64,
    /// Hash of the actions ([`hash`](super::hash)); 0 if there were none.
    pub hash: u64,
}

/// End of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The recording was ended properly, for this reason.
    Whole(EndReason),
    /// The file ends here without an end section, because the node or machine was killed, or the
    /// disk was full. All complete blocks before this point have been read.
    Cut {
        /// Number of usable bytes in the file.
        offset: u64,
    },
}

/// Streaming reader of a recording, with one block in memory at a time.
pub struct Reader<R> {
    input: BufReader<R>,
    header: Header,
    id: u64,
    /// Offset of the next section in the file.
    offset: u64,
    section: Section,
    /// Number of records read so far.
    records: u64,
    /// Time of the last record.
    last: Time,
    ending: Option<Ending>,
}

/// The section that was read last.
#[derive(Default)]
struct Section {
    /// Offset in the file.
    offset: u64,
    payload: Vec<u8>,
    /// Offset of the next record in the payload.
    at: usize,
}

/// Result of an attempt to read a section.
enum Found {
    Section(Kind),
    /// The file ends before or within the section.
    Nothing,
}

impl<R: Read> Reader<R> {
    /// Reads the versions and the header.
    ///
    /// # Errors
    /// The file is not a recording, has other versions, has been altered, or ends within its
    /// header.
    pub fn new(input: R) -> Result<Reader<R>, RecordingError> {
        let mut reader = Reader {
            input: BufReader::with_capacity(1 << 18, input),
            header: Header::nobody(),
            id: 0,
            offset: 0,
            section: Section::default(),
            records: 0,
            last: Time::ZERO,
            ending: None,
        };
        let mut preamble = [0; PREAMBLE_BYTES];
        let count = reader.fill(&mut preamble)?;
        if count < PREAMBLE_BYTES {
            let begins = super::header::begins(&preamble[..count]);
            let cut = RecordingError::NoHeader { offset: count as u64 };
            return Err(if begins { cut } else { RecordingError::NotARecording });
        }
        check_preamble(&preamble)?;
        reader.offset = PREAMBLE_BYTES as u64;
        match reader.read_section()? {
            Found::Section(Kind::Header) => {}
            Found::Section(_) => return Err(reader.broken(0, "no header comes first".into())),
            Found::Nothing => return Err(RecordingError::NoHeader { offset: reader.offset }),
        }
        reader.header = postcard::from_bytes(&reader.section.payload)
            .map_err(|error| reader.broken(0, format!("the header cannot be read: {error}")))?;
        if reader.header.names().any(|name| name.contains(char::is_control)) {
            return Err(reader.broken(0, "a name in the header has control characters".into()));
        }
        reader.id = xxh3_64(&reader.section.payload);
        reader.section.at = reader.section.payload.len();
        Ok(reader)
    }

    /// Returns the header, which identifies the node.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the end of the recording, once [`Reader::next_record`] has returned `None`.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// # Errors
    /// The next section has been altered, is invalid, or cannot be read. Earlier records are as
    /// they were written, and no records follow.
    pub fn next_record(&mut self) -> Result<Option<Record>, RecordingError> {
        while self.section.at >= self.section.payload.len() {
            if self.ending.is_some() || !self.next_block()? {
                return Ok(None);
            }
        }
        let mut cursor = Cursor::new(&self.section.payload, self.section.at);
        let taken = cursor.record(self.last);
        let end = cursor.at;
        let taken = taken.map_err(|what| self.broken(self.section.at, what))?;
        let offset = self.section.offset_of(self.section.at);
        (self.section.at, self.last) = (end, taken.at);
        self.records += 1;
        Ok(Some(Record {
            number: self.records,
            offset,
            at: taken.at,
            input: taken.input,
            actions: taken.actions,
            hash: taken.hash,
        }))
    }

    /// Reads the next block. Returns `false` at the end of the recording.
    fn next_block(&mut self) -> Result<bool, RecordingError> {
        match self.read_section()? {
            Found::Nothing => {
                self.ending = Some(Ending::Cut { offset: self.offset });
                Ok(false)
            }
            Found::Section(Kind::Header) => Err(self.broken(0, "a second header".into())),
            Found::Section(Kind::Block) => {
                let (first, last, at) =
                    self.section.begin().map_err(|what| self.broken(0, what))?;
                if first != self.records + 1 || last < self.last {
                    let expected = self.records + 1;
                    let what = format!("the block begins with record {first} at {last}");
                    let what = format!("{what}; expected {expected}, not before {}", self.last);
                    return Err(self.broken(0, what));
                }
                (self.last, self.section.at) = (last, at);
                Ok(true)
            }
            Found::Section(Kind::End) => {
                let reason = self.check_end().map_err(|what| self.broken(0, what))?;
                self.section.at = self.section.payload.len();
                self.ending = Some(Ending::Whole(reason));
                Ok(false)
            }
        }
    }

    /// Checks that the end section matches the records, and that nothing follows it.
    fn check_end(&mut self) -> Result<EndReason, String> {
        let mut cursor = Cursor::new(&self.section.payload, 0);
        let code = cursor.take(1, "a reason")?[0];
        let records = cursor.number("a count")?;
        let reason = EndReason::from_code(code).ok_or(format!("unknown reason {code}"))?;
        if records != self.records {
            return Err(format!("it ends after {} records; expected {records}", self.records));
        }
        match self.fill(&mut [0]) {
            Ok(0) => Ok(reason),
            _ => Err("the file goes on after the end of the recording".into()),
        }
    }

    /// Reads the next section into `payload`, replacing its contents, and checks it.
    fn read_section(&mut self) -> Result<Found, RecordingError> {
        let mut prefix = [0; PREFIX_BYTES];
        if self.fill(&mut prefix)? < PREFIX_BYTES {
            return Ok(Found::Nothing);
        }
        let (id, offset) = (self.id, self.offset);
        let Some((kind, bytes)) = section::parse_prefix(&prefix, id, offset) else {
            let fits = |tried: &_| section::parse_prefix(tried, id, offset).is_some();
            return Err(match section::mend(&prefix, fits) {
                Some(Changed { at, written }) => RecordingError::AlteredByte {
                    place: self.place(offset + at as u64),
                    written,
                    found: prefix[at],
                },
                None => RecordingError::Altered {
                    place: self.place(offset),
                    to: offset + PREFIX_BYTES as u64,
                },
            });
        };
        self.section.payload.clear();
        self.section.at = 0;
        let limit = bytes as u64;
        let read = self.input.by_ref().take(limit).read_to_end(&mut self.section.payload);
        read.map_err(|error| RecordingError::Io { place: self.place(offset), error })?;
        let mut seal = [0; SEAL_BYTES];
        if self.section.payload.len() < bytes || self.fill(&mut seal)? < SEAL_BYTES {
            self.section.payload.clear();
            return Ok(Found::Nothing);
        }
        self.section.offset = offset;
        let whole = PREFIX_BYTES + bytes + SEAL_BYTES;
        if let Err(changed) = section::check_seal(&self.section.payload, &seal, id, offset) {
            return Err(self.altered(kind, &seal, changed, whole as u64));
        }
        self.offset += whole as u64;
        Ok(Found::Section(kind))
    }

    /// Describes the alteration of the section that has been read, which has `whole` bytes. If only
    /// one byte was altered, the records before it in its block are counted.
    fn altered(
        &mut self,
        kind: Kind,
        seal: &[u8; SEAL_BYTES],
        changed: Option<Changed>,
        whole: u64,
    ) -> RecordingError {
        let Some(Changed { at, written }) = changed else {
            let place = self.place(self.section.offset);
            self.section.payload.clear();
            return RecordingError::Altered { place, to: self.section.offset + whole };
        };
        let payload = self.section.payload.len();
        let offset = self.section.offset_of(at);
        let found = match self.section.payload.get_mut(at) {
            Some(byte) => std::mem::replace(byte, written),
            None => seal[at - payload],
        };
        let mut place = self.place(offset);
        if kind == Kind::Block {
            (place.record, place.time) =
                self.section.record_at(at).unwrap_or((place.record, place.time));
        }
        self.section.payload.clear();
        RecordingError::AlteredByte { place, written, found }
    }

    /// Fills `bytes` as far as the file has data. Returns the number of bytes that were read.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, RecordingError> {
        let mut count = 0;
        while count < bytes.len() {
            match self.input.read(&mut bytes[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(RecordingError::Io { place: self.place(self.offset), error });
                }
            }
        }
        Ok(count)
    }

    /// Returns the position of the next record, with this offset in the file.
    fn place(&self, offset: u64) -> Place {
        Place { offset, record: self.records + 1, time: self.last }
    }

    /// Returns an error about byte `at` of the payload, and ends reading.
    fn broken(&mut self, at: usize, what: String) -> RecordingError {
        let place = self.place(self.section.offset_of(at));
        self.section.payload.clear();
        self.ending = Some(Ending::Cut { offset: self.section.offset });
        RecordingError::Broken { place, what }
    }
}

impl Section {
    /// Returns the offset in the file of byte `at` of the payload.
    fn offset_of(&self, at: usize) -> u64 {
        self.offset + (PREFIX_BYTES + at) as u64
    }

    /// Parses the beginning of a block: the number and time of its first record, and the offset of
    /// the records.
    fn begin(&self) -> Result<(u64, Time, usize), String> {
        let mut cursor = Cursor::new(&self.payload, 0);
        let first = cursor.number("a record's number")?;
        let time = cursor.number("a time")?;
        Ok((first, Time::from_ticks(time), cursor.at))
    }

    /// Returns the number and time of the record that contains byte `at` of a block. Beyond the
    /// last record, returns the next number and the time of the last record.
    fn record_at(&self, at: usize) -> Option<(u64, Time)> {
        let (mut number, mut last, begin) = self.begin().ok()?;
        let mut cursor = Cursor::new(&self.payload, begin);
        while let Ok(taken) = cursor.record(last) {
            last = taken.at;
            if cursor.at > at {
                break;
            }
            number += 1;
        }
        Some((number, last))
    }
}
