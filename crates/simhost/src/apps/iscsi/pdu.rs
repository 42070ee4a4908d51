//! PDU headers (RFC 7143 clause 11), as far as data transfer needs them.

/// Length of a basic header segment, in bytes.
pub(super) const HEADER_BYTES: usize = 48;

const COMMAND: u8 = 0x01;
const DATA_OUT: u8 = 0x05;
const RESPONSE: u8 = 0x21;
const DATA_IN: u8 = 0x25;
const R2T: u8 = 0x31;

const FINAL: u8 = 0x80;
const READ: u8 = 0x40;
const WRITE: u8 = 0x20;
/// Data-In flag: the PDU carries the status.
const STATUS: u8 = 0x01;

/// PDU. `tag` is the initiator task tag, `data` the length of the data after the header in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pdu {
    /// Read or write of `length` bytes; a write has immediate data.
    Command { tag: u32, is_read: bool, length: u32, data: u32 },
    /// Data of a write; `is_last` marks the end of a burst.
    DataOut { tag: u32, offset: u32, data: u32, is_last: bool },
    /// Data of a read; the last PDU carries the status.
    DataIn { tag: u32, offset: u32, data: u32, is_last: bool },
    /// Target's request for `length` bytes of a write.
    ReadyToTransfer { tag: u32, offset: u32, length: u32 },
    /// Completion of a write.
    Response { tag: u32 },
}

impl Pdu {
    /// Returns the length of the data after the header in bytes.
    pub(super) fn data(&self) -> u32 {
        match *self {
            Pdu::Command { data, .. } | Pdu::DataOut { data, .. } | Pdu::DataIn { data, .. } => {
                data
            }
            Pdu::ReadyToTransfer { .. } | Pdu::Response { .. } => 0,
        }
    }

    /// Returns the data length on the wire: data is padded to whole words (clause 11.2.3).
    pub(super) fn padded(&self) -> u32 {
        self.data().next_multiple_of(4)
    }

    /// Returns the header.
    pub(super) fn emit(&self) -> [u8; HEADER_BYTES] {
        let last = |is_last| if is_last { FINAL } else { 0 };
        // Opcode and flags, tag, and the words at offsets 20, 40 and 44.
        let (opcode, flags, tag, words) = match *self {
            Pdu::Command { tag, is_read, length, .. } => {
                (COMMAND, FINAL | if is_read { READ } else { WRITE }, tag, [length, 0, 0])
            }
            Pdu::DataOut { tag, offset, is_last, .. } => {
                (DATA_OUT, last(is_last), tag, [0, offset, 0])
            }
            Pdu::DataIn { tag, offset, is_last, .. } => {
                let status = if is_last { STATUS } else { 0 };
                (DATA_IN, last(is_last) | status, tag, [0, offset, 0])
            }
            Pdu::ReadyToTransfer { tag, offset, length } => (R2T, FINAL, tag, [0, offset, length]),
            Pdu::Response { tag } => (RESPONSE, FINAL, tag, [0; 3]),
        };
        let mut header = [0; HEADER_BYTES];
        (header[0], header[1]) = (opcode, flags);
        header[5..8].copy_from_slice(&self.data().to_be_bytes()[1..]);
        header[16..20].copy_from_slice(&tag.to_be_bytes());
        for (at, word) in [20, 40, 44].into_iter().zip(words) {
            header[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        header
    }

    /// Parses a header. Returns `None` for any other PDU.
    pub(super) fn parse(header: &[u8; HEADER_BYTES]) -> Option<Pdu> {
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (data, tag) = (word(4) & 0xff_ffff, word(16));
        let (length, offset) = (word(20), word(40));
        let is_last = header[1] & FINAL != 0;
        match header[0] & 0x3f {
            COMMAND => Some(Pdu::Command { tag, is_read: header[1] & READ != 0, length, data }),
            DATA_OUT => Some(Pdu::DataOut { tag, offset, data, is_last }),
            DATA_IN => Some(Pdu::DataIn { tag, offset, data, is_last }),
            R2T => Some(Pdu::ReadyToTransfer { tag, offset, length: word(44) }),
            RESPONSE => Some(Pdu::Response { tag }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_they_were_made_of() {
        for pdu in [
            Pdu::Command { tag: 7, is_read: true, length: 1 << 20, data: 0 },
            Pdu::Command { tag: 8, is_read: false, length: 1 << 20, data: 8192 },
            Pdu::DataOut { tag: 8, offset: 8192, data: 8191, is_last: true },
            Pdu::DataIn { tag: 7, offset: 16_384, data: 8192, is_last: false },
            Pdu::ReadyToTransfer { tag: 8, offset: 8192, length: 262_144 },
            Pdu::Response { tag: u32::MAX },
        ] {
            assert_eq!(Pdu::parse(&pdu.emit()), Some(pdu));
        }
        assert_eq!(Pdu::parse(&[0x3f; HEADER_BYTES]), None);
    }

    #[test]
    fn fields_stand_where_the_standard_has_them() {
        let header = Pdu::ReadyToTransfer { tag: 0x0102_0304, offset: 5, length: 6 }.emit();
        assert_eq!((header[0], header[1]), (0x31, 0x80));
        assert_eq!((&header[16..20], header[43], header[47]), (&[1, 2, 3, 4][..], 5, 6));
        let odd = Pdu::DataIn { tag: 1, offset: 0, data: 0x01_0203, is_last: true };
        assert_eq!((&odd.emit()[4..8], odd.emit()[1]), (&[0, 1, 2, 3][..], 0x81));
        assert_eq!(odd.padded(), 0x01_0204);
    }
}
