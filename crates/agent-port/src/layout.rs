//! Layout of the shared memory of an agent port, version `VERSION`: offsets and descriptors. Both
//! sides use this file. A client in another language must follow it.
//!
//! All numbers are little-endian. From the start of the memory:
//!
//! ```text
//! header       4,096 bytes: the sizes below, then the cursors and the sleep flags
//! ring         to the agent: `ring_slots` descriptors of 32 bytes
//! ring         from the agent: the same
//! head chunks  `chunks` pieces of `chunk_bytes`: `headroom` free bytes, then the head of a frame;
//!              behind it the payload, where that does not stay in the switch
//! buffers      `buffers` pieces of `buffer_bytes`, which belong to the agent at the start
//! ```
//!
//! A ring has one producer and one consumer. Cursors count descriptors since the start, modulo
//! 2^32. The slot of a descriptor is its cursor modulo `ring_slots`, which is a power of two. A
//! producer writes slots and then its cursor (`tail`) with release order. A consumer reads that
//! cursor with acquire order, reads the slots, and then writes its own cursor (`head`) with release
//! order. Therefore, only one side at a time writes a slot.
//!
//! A ring holds one descriptor for each chunk and buffer. If the agent reads before it answers,
//! neither side ever finds its ring full.

use axon_agents::node::HEAD_ROOM_BYTES;
use axon_cache::Handle;

/// Magic number: the first eight bytes of the memory and of both handshake messages.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"AXONAGNT");
/// Version of this layout, of its descriptors, and of the descriptors in the answer of the
/// [handshake](crate::handshake). Both sides must have the same version. In version 1, a pipe woke
/// the agent.
pub(crate) const VERSION: u32 = 2;
/// Length of the header, in bytes.
pub(crate) const HEADER_BYTES: usize = 4096;
/// Length of a descriptor, in bytes.
pub const DESCRIPTOR_BYTES: usize = 32;
/// Alignment of chunks, buffers and cursors, in bytes: a cache line of current CPUs.
const LINE: usize = 64;
/// Headroom before the head in its chunk, in bytes, for an agent that lengthens the head. It
/// consists of whole cache lines.
pub const HEADROOM: usize = HEAD_ROOM_BYTES.next_multiple_of(LINE);
/// Alignment of areas, in bytes.
const PAGE: usize = 4096;

/// Header offset of the number of descriptors written for the agent.
pub const TO_AGENT_TAIL: usize = 1024;
/// Header offset of the number of descriptors read by the agent.
pub const TO_AGENT_HEAD: usize = 1152;
/// Header offset of the number of descriptors written by the agent.
pub const FROM_AGENT_TAIL: usize = 1280;
/// Header offset of the number of descriptors read by the switch.
pub const FROM_AGENT_HEAD: usize = 1408;
/// Header offset of the agent's sleep flag, which is not 0 while the agent sleeps and must be
/// woken.
pub const AGENT_SLEEPS: usize = 1536;
/// Header offset of the switch's sleep flag.
pub const SWITCH_SLEEPS: usize = 1664;
/// Header offset of the queue lengths, with 4 bytes for each port, starting with port 0. Each is
/// the number of queued bytes plus one, or 0 if it is unknown. They are as of the time when the
/// switch last delivered packets.
pub const QUEUES: usize = 2048;
/// Number of ports whose queue lengths are shown.
pub const QUEUES_MAX: usize = (HEADER_BYTES - QUEUES) / 4;

/// Sizes of one agent's memory. Each is below 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of descriptors in a ring, a power of two.
    pub ring_slots: usize,
    /// Number of head chunks.
    pub chunks: usize,
    /// Length of a chunk, in bytes.
    pub chunk_bytes: usize,
    /// Longest head, in bytes.
    pub head_bytes: usize,
    /// Number of the agent's buffers.
    pub buffers: usize,
    /// Length of a buffer, in bytes: that of the longest frame, without FCS. The next buffer begins
    /// at the next cache line.
    pub buffer_bytes: usize,
    /// Number of payload buffers in the switch. Handles contain buffer numbers from 0 up to this
    /// one, exclusive.
    pub payloads: usize,
    /// True if payloads stay in the switch. Otherwise, a chunk contains the whole frame.
    pub stays: bool,
}

impl Layout {
    /// Computes the layout for these numbers of payload buffers and agent buffers, and for these
    /// lengths of heads and frames, in bytes.
    pub fn new(
        (payloads, buffers): (usize, usize),
        head_bytes: usize,
        frame_bytes_max: usize,
        stays: bool,
    ) -> Layout {
        let head_bytes = head_bytes.min(frame_bytes_max);
        let copied_bytes = if stays { head_bytes } else { frame_bytes_max };
        // Half of the chunks may belong to packets that the agent has held for too long.
        let chunks = 2 * payloads;
        Layout {
            ring_slots: (chunks + buffers).next_power_of_two(),
            chunks,
            chunk_bytes: (HEADROOM + copied_bytes).next_multiple_of(LINE),
            head_bytes,
            buffers,
            buffer_bytes: frame_bytes_max,
            payloads,
            stays,
        }
    }

    /// Returns the number of frame bytes that the switch copies into a chunk.
    #[inline]
    pub fn copied_bytes(&self, frame_bytes: usize) -> usize {
        frame_bytes.min(if self.stays { self.head_bytes } else { self.buffer_bytes })
    }

    /// Returns the offset of the ring to the agent.
    pub const fn to_agent(&self) -> usize {
        HEADER_BYTES
    }

    /// Returns the offset of the ring from the agent.
    pub fn from_agent(&self) -> usize {
        (self.to_agent() + self.ring_slots * DESCRIPTOR_BYTES).next_multiple_of(PAGE)
    }

    /// Returns the offset of chunk `number`.
    pub fn chunk_at(&self, number: usize) -> usize {
        let first = self.from_agent() + self.ring_slots * DESCRIPTOR_BYTES;
        first.next_multiple_of(PAGE) + number * self.chunk_bytes
    }

    /// Returns the offset of buffer `number`.
    pub fn buffer_at(&self, number: usize) -> usize {
        let first = self.chunk_at(self.chunks).next_multiple_of(PAGE);
        first + number * self.buffer_bytes.next_multiple_of(LINE)
    }

    /// Returns the length of the whole memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.buffer_at(self.buffers).next_multiple_of(PAGE)
    }

    /// Returns the initial header with magic number, version, sizes and offsets; see
    /// [`Layout::parse`].
    pub fn emit(&self) -> [u8; HEADER_WORDS_END] {
        let mut header = [0; HEADER_WORDS_END];
        header[..8].copy_from_slice(&MAGIC.to_le_bytes());
        let words = [
            VERSION as usize,
            self.ring_slots,
            self.chunks,
            self.chunk_bytes,
            HEADROOM,
            self.head_bytes,
            self.buffers,
            self.buffer_bytes,
            self.payloads,
            usize::from(self.stays),
            self.to_agent(),
            self.from_agent(),
            self.chunk_at(0),
            self.buffer_at(0),
            self.memory_bytes(),
        ];
        for (place, word) in header[8..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&(word as u32).to_le_bytes());
        }
        header
    }

    /// Parses the header of a memory of `memory_bytes` bytes, for the agent.
    ///
    /// # Errors
    /// A value is not the expected one. The error gives both values.
    pub fn parse(header: &[u8; HEADER_WORDS_END], memory_bytes: usize) -> Result<Layout, String> {
        let word = |index: usize| {
            let at = 8 + 4 * index;
            header.get(at..at + 4).map_or(0, |bytes| {
                u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
            })
        };
        if header[..8] != MAGIC.to_le_bytes() {
            return Err("this is not the memory of an agent port".to_owned());
        }
        if word(0) != VERSION as usize {
            return Err(format!("memory of version {}, expected version {VERSION}", word(0)));
        }
        let layout = Layout {
            ring_slots: word(1),
            chunks: word(2),
            chunk_bytes: word(3),
            head_bytes: word(5),
            buffers: word(6),
            buffer_bytes: word(7),
            payloads: word(8),
            stays: word(9) != 0,
        };
        let fits = HEADROOM + layout.copied_bytes(layout.buffer_bytes) <= layout.chunk_bytes
            && layout.chunks == 2 * layout.payloads;
        if !fits || layout.emit() != *header || layout.memory_bytes() != memory_bytes {
            return Err(format!("the header says {layout:?}, which {memory_bytes} bytes are not"));
        }
        Ok(layout)
    }
}

/// Offset of the end of the sizes in the header, in bytes.
pub const HEADER_WORDS_END: usize = 8 + 15 * 4;

/// Kind of a descriptor. The numbers are those in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// To the agent: a packet. `chunk` contains its first `head_bytes` bytes, starting at `offset`,
    /// or the whole frame if payloads do not stay. `bytes` is the length of the whole frame.
    Packet = 1,
    /// To the agent: `buffer` contains `bytes` bytes of the frame, starting at byte `offset`. They
    /// are at most as many as requested, and none if the handle was refused. The buffer is returned
    /// to the agent.
    Payload = 2,
    /// To the agent: `buffer` is returned.
    Returned = 3,
    /// From the agent: send the packet. Its `chunk` now contains `head_bytes` bytes of head,
    /// starting at `offset`. The payload is unchanged.
    Forward = 16,
    /// From the agent: drop the packet.
    Drop = 17,
    /// From the agent: copy `bytes` bytes of the frame in `chunk`, as received, to `buffer`,
    /// starting at byte `offset`. If payloads do not stay, the agent already has them.
    Fetch = 18,
    /// From the agent: in place of the packet, send `head_bytes` bytes from `chunk`, starting at
    /// `offset`, followed by the first `bytes` bytes in `buffer`.
    Replace = 19,
    /// From the agent: send the first `bytes` bytes in `buffer`, which are the agent's own frame.
    Send = 20,
}

impl Kind {
    fn from_number(number: u32) -> Option<Kind> {
        use Kind::*;
        let all = [Packet, Payload, Returned, Forward, Drop, Fetch, Replace, Send];
        all.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Entry in a ring. Fields that a kind does not use are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Kind of the descriptor.
    pub kind: Kind,
    /// Handle of the packet.
    pub handle: Handle,
    /// Number of a head chunk.
    pub chunk: u32,
    /// Offset in bytes, from the start of the chunk or of the frame.
    pub offset: u32,
    /// Length of the head, in bytes.
    pub head_bytes: u32,
    /// Number of a buffer of the agent.
    pub buffer: u32,
    /// Length, in bytes, as the kind defines it.
    pub bytes: u32,
}

impl Descriptor {
    /// Creates a descriptor that contains only a handle.
    pub fn new(kind: Kind, handle: Handle) -> Descriptor {
        Descriptor { kind, handle, chunk: 0, offset: 0, head_bytes: 0, buffer: 0, bytes: 0 }
    }

    /// Returns the four words for the memory: kind and `chunk`; handle; `offset` and `head_bytes`;
    /// `buffer` and `bytes`. The first of each pair is in the low half.
    pub fn words(&self) -> [u64; 4] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            pair(self.kind as u32, self.chunk),
            self.handle.raw(),
            pair(self.offset, self.head_bytes),
            pair(self.buffer, self.bytes),
        ]
    }

    /// Parses a descriptor from four words.
    ///
    /// # Errors
    /// The kind is unknown. The error is its number.
    pub fn from_words(words: [u64; 4]) -> Result<Descriptor, u32> {
        let pair = |word: u64| (word as u32, (word >> 32) as u32);
        let [(number, chunk), (offset, head_bytes), (buffer, bytes)] =
            [pair(words[0]), pair(words[2]), pair(words[3])];
        let kind = Kind::from_number(number).ok_or(number)?;
        let handle = Handle::from_raw(words[1]);
        Ok(Descriptor { kind, handle, chunk, offset, head_bytes, buffer, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_follow_each_other_and_do_not_overlap() {
        for (payloads, head, stays) in [(1, 0, true), (384, 128, true), (1000, 128, false)] {
            let layout = Layout::new((payloads, 64), head, 9018, stays);
            assert!(layout.ring_slots.is_power_of_two());
            assert!(layout.ring_slots >= layout.chunks + layout.buffers);
            let ring = layout.ring_slots * DESCRIPTOR_BYTES;
            assert!(layout.from_agent() >= layout.to_agent() + ring);
            assert!(layout.chunk_at(0) >= layout.from_agent() + ring);
            assert!(layout.buffer_at(0) >= layout.chunk_at(layout.chunks));
            assert!(layout.memory_bytes() >= layout.buffer_at(layout.buffers));
            assert!(layout.chunk_bytes >= HEADROOM + layout.copied_bytes(9018));
            assert_eq!(layout.chunk_at(1) % LINE + layout.buffer_at(1) % LINE, 0);
            assert_eq!(layout.copied_bytes(9018), if stays { head } else { 9018 });
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_another_version_is_refused() {
        let layout = Layout::new((384, 64), 128, 1518, true);
        let header = layout.emit();
        assert_eq!(Layout::parse(&header, layout.memory_bytes()), Ok(layout));
        assert!(Layout::parse(&header, layout.memory_bytes() - 1).is_err());
        for at in 0..HEADER_WORDS_END {
            let mut damaged = header;
            damaged[at] ^= 0x40;
            assert!(Layout::parse(&damaged, layout.memory_bytes()).is_err(), "byte {at}");
        }
        let mut newer = header;
        newer[8] = 3;
        let error = Layout::parse(&newer, layout.memory_bytes()).unwrap_err();
        assert_eq!(error, "memory of version 3, expected version 2");
    }

    #[test]
    fn a_descriptor_is_read_as_it_was_written_and_an_unknown_kind_is_refused() {
        let handle = Handle::from_raw(0x0123_4567_89ab_cdef);
        for number in 0..64 {
            let Some(kind) = Kind::from_number(number) else {
                assert_eq!(Descriptor::from_words([u64::from(number), 0, 0, 0]), Err(number));
                continue;
            };
            let (chunk, offset, head_bytes, buffer, bytes) = (1, 2, 3, 4, u32::MAX);
            let whole = Descriptor { kind, handle, chunk, offset, head_bytes, buffer, bytes };
            assert_eq!(Descriptor::from_words(whole.words()), Ok(whole));
        }
        let words = Descriptor { chunk: 1, bytes: 5, ..Descriptor::new(Kind::Forward, handle) };
        assert_eq!(words.words(), [1 << 32 | 16, handle.raw(), 0, 5 << 32]);
    }

    #[test]
    fn no_two_cursors_share_a_cache_line_pair() {
        let all = [
            TO_AGENT_TAIL,
            TO_AGENT_HEAD,
            FROM_AGENT_TAIL,
            FROM_AGENT_HEAD,
            AGENT_SLEEPS,
            SWITCH_SLEEPS,
        ];
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 128));
        assert!(all[0] >= HEADER_WORDS_END && all[5] < HEADER_BYTES);
    }
}
