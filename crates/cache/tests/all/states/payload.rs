//! Unique payload that cannot be duplicated.

/// Maximum length of a payload, in bytes.
const BYTES_MAX: usize = 64;

/// Frame with a number. It has no `Clone`, so a cache must keep it in order to send it twice.
#[derive(Debug, PartialEq, Eq)]
pub struct Payload {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl Payload {
    /// Makes the payload with this number. It has 8 to 64 bytes, which the number determines.
    pub fn new(number: usize) -> Payload {
        let mut bytes = [number as u8 ^ 0x5a; BYTES_MAX];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        Payload { bytes, length: 8 + number % (BYTES_MAX - 7) }
    }

    /// Checks every byte, and returns the number.
    pub fn number(&self) -> usize {
        let number = self.bytes.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
        assert_eq!(*self, Payload::new(number as usize), "the bytes of a payload have changed");
        number as usize
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
