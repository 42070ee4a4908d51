//! Invariants for any bytes that are read as a capture. The fuzz target checks them, too.

use axon_capture::pcap::{Direction, FRAME_BYTES_MAX, LinkType, ReadError, Reader, Writer};
use std::io::Read;

/// A frame as read from a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Name of its interface; empty if there is none.
    pub name: String,
    /// Link type of the frame.
    pub link_type: LinkType,
    /// Direction of the frame, if known.
    pub direction: Option<Direction>,
    /// Capture time in nanoseconds since the Unix epoch.
    pub unix_nanos: u64,
    /// Length on the wire in bytes.
    pub wire_bytes: usize,
    /// Captured bytes.
    pub bytes: Vec<u8>,
}

/// Reads all frames, and returns the error that ended reading before the end of the file.
pub fn read(input: impl Read) -> (Vec<Owned>, Option<ReadError>) {
    let mut reader = match Reader::new(input) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let (mut frames, mut offset) = (Vec::new(), 0);
    loop {
        let frame = match reader.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        };
        assert_eq!(frame.number, frames.len() as u64 + 1);
        assert!(frame.offset > offset, "each is behind the one before");
        offset = frame.offset;
        frames.push(Owned {
            name: frame.name.unwrap_or("").to_owned(),
            link_type: frame.link_type,
            direction: frame.direction,
            unix_nanos: frame.unix_nanos,
            wire_bytes: frame.wire_bytes,
            bytes: frame.bytes.to_vec(),
        });
    }
}

/// Writes frames to a pcapng file. Frames without a direction are written as inbound.
pub fn write(frames: &[Owned]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, FRAME_BYTES_MAX as u32, u64::MAX).unwrap();
    let mut names: Vec<&str> = Vec::new();
    for frame in frames {
        let known = names.iter().position(|name| *name == frame.name);
        let port = known.unwrap_or(names.len());
        if known.is_none() {
            names.push(&frame.name);
        }
        let direction = frame.direction.unwrap_or(Direction::Inbound);
        let (port, nanos) = ((port, &frame.name[..]), frame.unix_nanos);
        writer.record(port, frame.link_type, direction, nanos, &frame.bytes).unwrap();
    }
    drop(writer);
    file
}

/// Reads any bytes as a capture. Asserts that nothing panics, that frames keep within their limits,
/// and that they are unchanged when written and read again.
pub fn check(input: &[u8]) {
    let (mut frames, _) = read(input);
    let mut kept = 0;
    for frame in &mut frames {
        assert!(frame.bytes.len() <= FRAME_BYTES_MAX);
        assert!(frame.wire_bytes >= frame.bytes.len());
        kept += frame.bytes.len();
        // Properties that the writer cannot represent.
        frame.wire_bytes = frame.bytes.len();
        frame.direction.get_or_insert(Direction::Inbound);
        frame.name.truncate(frame.name.floor_char_boundary(255));
    }
    assert!(kept <= input.len(), "no byte is made up");
    let (again, end) = read(&write(&frames)[..]);
    assert!(end.is_none(), "{end:?}");
    assert_eq!(again, frames);
}
