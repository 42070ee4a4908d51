//! Frames of a capture for replay: Ethernet only, with times relative to the first.

pub use axon_capture::CapturedFrame;

use axon_capture::pcap::{LinkType, ReadError, Reader};
use axon_wire::Span;
use std::io::Read;

/// Reason that a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The capture cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A frame is not Ethernet.
    #[error("frame {number}, at byte {offset}, is of link type {link_type}, not Ethernet (1)")]
    LinkType {
        /// Number of the frame, counted from 1.
        number: u64,
        /// Offset of its record, in bytes from the beginning of the file.
        offset: u64,
        /// Link type of the frame.
        link_type: u16,
    },
    /// The capture is longer than allowed.
    #[error("it has more than {0} bytes")]
    TooLong(u64),
}

/// Reads all frames of a pcap or pcapng file. A record that the end of the file cuts off is left
/// out, since an interrupted capture ends in one.
///
/// # Errors
/// The file is no capture, not one of Ethernet, broken, or longer than `bytes_max`.
pub(crate) fn read(input: impl Read, bytes_max: u64) -> Result<Vec<CapturedFrame>, CaptureError> {
    let mut reader = Reader::new(input)?;
    let mut frames = Vec::new();
    let (mut first, mut latest) = (None, Span::ZERO);
    loop {
        let frame = match reader.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) | Err(ReadError::CutOff { .. }) => return Ok(frames),
            Err(error) => return Err(error.into()),
        };
        if frame.offset > bytes_max {
            return Err(CaptureError::TooLong(bytes_max));
        }
        if frame.link_type != LinkType::ETHERNET {
            let (number, offset) = (frame.number, frame.offset);
            return Err(CaptureError::LinkType { number, offset, link_type: frame.link_type.0 });
        }
        let first = *first.get_or_insert(frame.unix_nanos);
        latest = latest.max(Span::from_nanos(frame.unix_nanos.saturating_sub(first)));
        let (bytes, wire_bytes) = (frame.bytes.to_vec(), frame.wire_bytes);
        frames.push(CapturedFrame { at: latest, bytes, wire_bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_capture::pcap::{Direction, Writer};

    /// Returns a capture of frames of 60 bytes with these link types and times.
    fn capture(frames: &[(LinkType, u64)]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, 40, u64::MAX).unwrap();
        for (link_type, nanos) in frames {
            let port = (0, "h1-p0");
            writer.record(port, *link_type, Direction::Inbound, *nanos, &[7; 60]).unwrap();
        }
        drop(writer);
        file
    }

    fn refusal(file: &[u8], bytes_max: u64) -> String {
        read(file, bytes_max).unwrap_err().to_string()
    }

    #[test]
    fn times_count_from_the_first_frame_and_never_run_back() {
        let nanos = [1_700_000_000_000_000_000, 1_700_000_000_000_000_250, 5, u64::MAX];
        let file = capture(&nanos.map(|nanos| (LinkType::ETHERNET, nanos)));
        let frames = read(&file[..], 1 << 20).unwrap();
        let at: Vec<Span> = frames.iter().map(|frame| frame.at).collect();
        let last = Span::from_nanos(u64::MAX - nanos[0]);
        assert_eq!(at, [Span::ZERO, Span::from_nanos(250), Span::from_nanos(250), last]);
        assert_eq!((&frames[3].bytes[..], frames[3].wire_bytes), (&[7; 40][..], 60));
    }

    #[test]
    fn a_frame_that_is_cut_off_is_left_out() {
        let file = capture(&[(LinkType::ETHERNET, 1); 3]);
        assert_eq!(read(&file[..file.len() - 1], 1 << 20).unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_its_place() {
        let file = capture(&[(LinkType::ETHERNET, 1), (LinkType::AXON, 2)]);
        let text = "frame 2, at byte 200, is of link type 147, not Ethernet (1)";
        assert_eq!(refusal(&file, 1 << 20), text);
        assert_eq!(refusal(&file, 50), "it has more than 50 bytes");
        assert_eq!(refusal(b"GIF89a", 50), "it is neither a pcap nor a pcapng file");
        let mut broken = capture(&[(LinkType::ETHERNET, 1); 2]);
        broken[160..164].fill(0xfc);
        let refused = refusal(&broken, 1 << 20);
        assert!(refused.contains("where frame 2 is expected: a block of 4244438268"), "{refused}");
    }
}
