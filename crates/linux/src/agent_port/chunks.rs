//! Head chunks of an agent: those that it holds, and the packet in each.

use axon_cache::Handle;

/// Chunk that the agent holds.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) handle: Handle,
    /// Frame bytes that were copied into the chunk.
    pub(super) copied_bytes: u32,
    /// Bytes of the whole frame.
    pub(super) frame_bytes: u32,
    /// Number of descriptors written to the ring before this one.
    pub(super) written: u32,
}

const FREE: Given = Given { handle: Handle::NONE, copied_bytes: 0, frame_bytes: 0, written: 0 };

/// Chunks of one agent.
pub(super) struct Chunks {
    /// Chunks that the agent holds, by chunk number.
    given: Vec<Given>,
    free: Vec<u32>,
    /// Chunk of the packet in each payload buffer, by buffer number.
    of_buffer: Vec<u32>,
}

impl Chunks {
    /// Creates free chunks, for packets in `payloads` buffers.
    pub(super) fn new(chunks: usize, payloads: usize) -> Chunks {
        let free = (0..chunks as u32).rev().collect();
        Chunks { given: vec![FREE; chunks], free, of_buffer: vec![0; payloads] }
    }

    /// Returns the number of free chunks.
    pub(super) fn room(&self) -> usize {
        self.free.len()
    }

    /// Returns the free chunk that is given next.
    pub(super) fn next_free(&self) -> Option<u32> {
        self.free.last().copied()
    }

    /// Gives the agent the [next free](Chunks::next_free) chunk with this packet.
    pub(super) fn give(&mut self, given: Given) {
        let Some(chunk) = self.free.pop() else { return };
        self.given[chunk as usize] = given;
        if let Some(place) = self.of_buffer.get_mut(given.handle.number()) {
            *place = chunk;
        }
    }

    /// Returns the packet in a chunk, which must exist.
    pub(super) fn given(&self, chunk: u32) -> Given {
        self.given[chunk as usize]
    }

    /// Takes back a chunk, which must exist. Returns `None` if it was not given with this handle.
    #[inline]
    pub(super) fn take_back(&mut self, chunk: u32, handle: Handle) -> Option<Given> {
        let given = self.given(chunk);
        if given.handle != handle || given.handle == Handle::NONE {
            return None;
        }
        self.given[chunk as usize] = FREE;
        self.free.push(chunk);
        Some(given)
    }

    /// Returns the entry of a packet that the agent holds.
    pub(super) fn of(&self, handle: Handle) -> Option<Given> {
        let chunk = self.of_buffer.get(handle.number());
        let given = chunk.and_then(|&chunk| self.given.get(chunk as usize))?;
        (given.handle == handle).then_some(*given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_comes_back_once_and_only_with_the_handle_of_its_packet() {
        let mut chunks = Chunks::new(2, 1);
        let [first, other] = [1, 2].map(|generation| Handle::from_raw(generation << 32));
        assert_eq!((chunks.next_free(), chunks.room()), (Some(0), 2));
        chunks.give(Given { handle: first, ..FREE });
        assert!(chunks.of(first).is_some() && chunks.of(other).is_none());
        assert!(chunks.take_back(0, other).is_none() && chunks.take_back(1, first).is_none());
        assert!(chunks.take_back(0, first).is_some() && chunks.take_back(0, first).is_none());
        assert!(chunks.take_back(1, Handle::NONE).is_none(), "a free chunk");
        assert_eq!((chunks.next_free(), chunks.room()), (Some(0), 2));
    }
}
