//! Writes what ports carry to a pcapng file (draft-ietf-opsawg-pcapng).
//!
//! Each port is one interface per kind of frame: Ethernet (LINKTYPE_ETHERNET, 1), and
//! Axon packets on the links between switches (LINKTYPE_USER0, 147). Both have the port's
//! name. Times are wall-clock nanoseconds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_EPB_FLAGS: u16 = 2;

/// What and how much to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// The file; one that exists is overwritten.
    pub path: PathBuf,
    /// Bytes kept of each frame.
    pub snap_bytes: u32,
    /// Writing ends before the file is larger than this.
    pub file_bytes_max: u64,
}

impl CaptureOptions {
    /// Whole frames, and at most 256 MiB of them.
    pub fn to(path: impl Into<PathBuf>) -> CaptureOptions {
        CaptureOptions { path: path.into(), snap_bytes: 65_535, file_bytes_max: 256 << 20 }
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum LinkType {
    /// LINKTYPE_ETHERNET.
    Ethernet = 1,
    /// LINKTYPE_USER0: an Axon packet, from the first byte of its header.
    Axon = 147,
}

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    /// Into the port.
    Inbound = 1,
    /// Out of the port.
    Outbound = 2,
}

/// An open capture.
pub struct Capture<W: Write = BufWriter<File>> {
    out: W,
    snap_bytes: u32,
    bytes_left: u64,
    interfaces: BTreeMap<(usize, LinkType), u32>,
    block: Vec<u8>,
}

impl Capture {
    /// Creates the file and writes its header.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(options: &CaptureOptions) -> io::Result<Capture> {
        let file = BufWriter::new(create_private(&options.path)?);
        Capture::new(file, options.snap_bytes, options.file_bytes_max)
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

impl<W: Write> Capture<W> {
    /// Starts a capture on any writer.
    ///
    /// # Errors
    /// What the writer says.
    pub fn new(out: W, snap_bytes: u32, bytes_max: u64) -> io::Result<Capture<W>> {
        let interfaces = BTreeMap::new();
        let block = Vec::new();
        let mut capture = Capture { out, snap_bytes, bytes_left: bytes_max, interfaces, block };
        capture.put32(0x1a2b_3c4d);
        capture.put16(1);
        capture.put16(0);
        capture.block.extend_from_slice(&u64::MAX.to_le_bytes());
        capture.write_block(SECTION_HEADER)?;
        Ok(capture)
    }

    /// Writes one frame that port number `port`, called `name`, carried at `unix_nanos`.
    ///
    /// # Errors
    /// What the writer says.
    pub fn record(
        &mut self,
        (port, name): (usize, &str),
        link_type: LinkType,
        direction: Direction,
        unix_nanos: u64,
        frame: &[u8],
    ) -> io::Result<()> {
        let interface = match self.interfaces.get(&(port, link_type)) {
            Some(interface) => *interface,
            None => self.describe(port, name, link_type)?,
        };
        let kept = &frame[..frame.len().min(self.snap_bytes as usize)];
        self.put32(interface);
        self.put32((unix_nanos >> 32) as u32);
        self.put32(unix_nanos as u32);
        self.put32(kept.len() as u32);
        self.put32(frame.len() as u32);
        self.block.extend_from_slice(kept);
        self.pad();
        self.put_option(OPTION_EPB_FLAGS, &(direction as u32).to_le_bytes());
        self.put32(0);
        self.write_block(ENHANCED_PACKET)
    }

    /// Brings what was recorded so far to the file.
    ///
    /// # Errors
    /// What the writer says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn describe(&mut self, port: usize, name: &str, link_type: LinkType) -> io::Result<u32> {
        self.put16(link_type as u16);
        self.put16(0);
        self.put32(self.snap_bytes);
        self.put_option(OPTION_IF_NAME, name.as_bytes());
        self.put_option(OPTION_IF_TSRESOL, &[9]);
        self.put32(0);
        self.write_block(INTERFACE_DESCRIPTION)?;
        let interface = self.interfaces.len() as u32;
        self.interfaces.insert((port, link_type), interface);
        Ok(interface)
    }

    fn put16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn put32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn put_option(&mut self, code: u16, value: &[u8]) {
        self.put16(code);
        self.put16(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    /// Writes the collected body as one block: its type and length before it, its length
    /// again after it. A block that would exceed the file's limit ends the capture.
    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let length = self.block.len() as u32 + 12;
        if u64::from(length) > self.bytes_left {
            self.bytes_left = 0;
            self.block.clear();
            return Ok(());
        }
        self.bytes_left -= u64::from(length);
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
            let length = word(4) as usize;
            assert_eq!(word(length - 4) as usize, length);
            blocks.push((word(0), file[8..length - 4].to_vec()));
            file = &file[length..];
        }
        blocks
    }

    #[test]
    fn an_interface_is_described_once_for_each_kind_of_frame_it_carries() {
        let mut capture = Capture::new(Vec::new(), 8, 1 << 20).unwrap();
        for link_type in [LinkType::Axon, LinkType::Ethernet, LinkType::Axon] {
            let port = (3, "s1-p3");
            capture.record(port, link_type, Direction::Outbound, 1 << 33 | 5, &[9; 13]).unwrap();
        }
        let blocks = blocks(&capture.out);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 6, 1, 6, 6]);
        assert_eq!(blocks[1].1[..2], [147, 0]);
        assert_eq!(
            blocks[5].1[..20],
            [0, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 13, 0, 0, 0]
        );
    }

    #[test]
    fn a_full_capture_stays_a_whole_file() {
        let mut capture = Capture::new(Vec::new(), 100, 200).unwrap();
        for _ in 0..10 {
            let port = (0, "s1-p0");
            capture.record(port, LinkType::Ethernet, Direction::Inbound, 0, &[1; 60]).unwrap();
        }
        assert!(capture.out.len() <= 200);
        assert!(blocks(&capture.out).len() >= 2);
    }
}
