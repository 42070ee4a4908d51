//! Reader that returns the frames of a pcap or pcapng file in order.
//!
//! Each record begins with a header that gives its length, which is checked against a limit. Then
//! the complete record is read and parsed. Its memory grows with the bytes received, not with the
//! bytes claimed.

use super::block::{BLOCK_BYTES_MIN, Packet, Section};
use super::error::ReadError;
use super::frame::{FRAME_BYTES_MAX, Frame};
use super::legacy::{HEADER_BYTES, Legacy, RECORD_HEADER_BYTES};
use std::io::{BufReader, Read};

/// Maximum length of a pcapng block that is read, in bytes. It is the same as in Wireshark.
pub const BLOCK_BYTES_MAX: usize = 16 << 20;
/// Type of a section header block, with which every pcapng file begins.
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Number of bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// Streaming reader of a capture of any size.
pub struct Reader<R> {
    input: BufReader<R>,
    format: Format,
    /// The part of the record at `offset` that has been read so far.
    record: Vec<u8>,
    offset: u64,
    /// Number of frames read so far.
    frames: u64,
    /// Capture time of the last frame, in nanoseconds since 1970.
    unix_nanos: u64,
    /// True once the end or an error has been returned.
    ended: bool,
}

enum Format {
    Pcap(Legacy),
    Pcapng(Section),
}

impl<R: Read> Reader<R> {
    /// Reads the header of a pcap file or the section header of a pcapng file.
    ///
    /// # Errors
    /// The input has neither format, ends within its header, or cannot be read.
    pub fn new(input: R) -> Result<Reader<R>, ReadError> {
        let mut reader = Reader {
            input: BufReader::with_capacity(READ_BYTES, input),
            format: Format::Pcapng(Section::default()),
            record: Vec::new(),
            offset: 0,
            frames: 0,
            unix_nanos: 0,
            ended: false,
        };
        reader.fill(PCAPNG_MAGIC.len())?;
        if reader.record == PCAPNG_MAGIC {
            reader.read_record()?;
            reader.decode()?;
        } else {
            reader.fill(HEADER_BYTES)?;
            let legacy = Legacy::new(&reader.record).map_err(|_| ReadError::NotACapture)?;
            reader.format = Format::Pcap(legacy);
        }
        Ok(reader)
    }

    /// Returns the next frame, or `None` at the end of the file and after an error.
    ///
    /// # Errors
    /// The next record is truncated or malformed, or cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        let packet = match self.next_packet() {
            Ok(Some(packet)) => packet,
            end => {
                self.ended = true;
                return end.map(|_| None);
            }
        };
        self.frames += 1;
        self.unix_nanos = packet.unix_nanos.unwrap_or(self.unix_nanos);
        let name = match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(section) => packet.interface.and_then(|index| section.name(index)),
        };
        Ok(Some(Frame {
            number: self.frames,
            offset: self.offset,
            unix_nanos: self.unix_nanos,
            link_type: packet.link_type,
            name,
            direction: packet.direction,
            wire_bytes: packet.wire_bytes,
            bytes: &self.record[packet.bytes],
        }))
    }

    /// Returns the next packet. Blocks without frames are skipped.
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        while !self.ended {
            self.offset += self.record.len() as u64;
            self.record.clear();
            if !self.read_record()? {
                break;
            }
            let packet = self.decode()?;
            if packet.is_some() {
                return Ok(packet);
            }
        }
        Ok(None)
    }

    /// Parses the record that has been read.
    fn decode(&mut self) -> Result<Option<Packet>, ReadError> {
        let packet = match &mut self.format {
            Format::Pcap(legacy) => legacy.packet(&self.record).map(Some),
            Format::Pcapng(section) => section.block(&self.record),
        };
        packet.map_err(|what| self.broken(what))
    }

    /// Reads the remainder of the record. Returns `false` if there is no further record.
    fn read_record(&mut self) -> Result<bool, ReadError> {
        let head = match &self.format {
            Format::Pcap(_) => RECORD_HEADER_BYTES,
            Format::Pcapng(_) => BLOCK_BYTES_MIN,
        };
        if !self.fill(head)? {
            return if self.record.is_empty() { Ok(false) } else { Err(self.cut_off()) };
        }
        let bytes = self.record_bytes().map_err(|what| self.broken(what))?;
        if self.fill(bytes)? { Ok(true) } else { Err(self.cut_off()) }
    }

    /// Returns the length of the record as claimed by its head.
    fn record_bytes(&self) -> Result<usize, String> {
        let head = &self.record[..];
        let (what, before, claimed, most) = match &self.format {
            Format::Pcap(legacy) => {
                ("frame", RECORD_HEADER_BYTES, legacy.claimed_bytes(head), FRAME_BYTES_MAX)
            }
            Format::Pcapng(section) => ("block", 0, section.claimed_bytes(head), BLOCK_BYTES_MAX),
        };
        match usize::try_from(claimed) {
            // A block that claims less than the minimum is refused when it is parsed.
            Ok(bytes) if bytes <= most => Ok((before + bytes).max(head.len())),
            _ => Err(format!("a {what} of {claimed} bytes; expected at most {most}")),
        }
    }

    /// Reads until the record has `bytes` bytes. Returns `false` if the file ends before that.
    fn fill(&mut self, bytes: usize) -> Result<bool, ReadError> {
        let missing = bytes.saturating_sub(self.record.len()) as u64;
        match self.input.by_ref().take(missing).read_to_end(&mut self.record) {
            Ok(_) => Ok(self.record.len() >= bytes),
            Err(error) => Err(ReadError::Io { frame: self.frames + 1, offset: self.offset, error }),
        }
    }

    fn cut_off(&self) -> ReadError {
        ReadError::CutOff { frame: self.frames + 1, offset: self.offset }
    }

    fn broken(&self, what: String) -> ReadError {
        ReadError::Broken { frame: self.frames + 1, offset: self.offset, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a section header, followed by a block that claims `bytes` bytes.
    fn claiming(bytes: u32) -> Vec<u8> {
        let mut file = PCAPNG_MAGIC.to_vec();
        file.extend([28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
        file.extend([[0xff; 8], [28, 0, 0, 0, 6, 0, 0, 0]].concat());
        file.extend(bytes.to_le_bytes());
        file.resize(file.len() + 100, 7);
        file
    }

    #[test]
    fn memory_grows_with_what_comes_and_not_with_what_is_claimed() {
        for claimed in [u32::MAX, BLOCK_BYTES_MAX as u32 + 4, BLOCK_BYTES_MAX as u32] {
            let file = claiming(claimed);
            let mut reader = Reader::new(&file[..]).unwrap();
            let error = reader.next_frame().unwrap_err();
            let refused = matches!(error, ReadError::Broken { frame: 1, offset: 28, .. });
            assert_eq!(refused, claimed as usize > BLOCK_BYTES_MAX, "{error}");
            assert!(reader.record.capacity() < 4096, "{}", reader.record.capacity());
            assert!(reader.next_frame().unwrap().is_none(), "nothing follows an error");
        }
    }
}
