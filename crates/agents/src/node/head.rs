//! Head of a packet as the agent has it.

use crate::node::config::PayloadMode;
use alloc::vec::Vec;
use axon_wire::FrameBuf;

/// Headroom by which an agent may lengthen a head, in bytes. It fits the headers of a tunnel, such
/// as VXLAN over IPv6 with a VLAN tag (74 bytes).
pub const HEAD_ROOM_BYTES: usize = 96;

/// Copy of the first bytes of a frame, with headroom.
#[derive(Debug)]
pub(super) struct Head {
    store: Vec<u8>,
    start: usize,
    /// End of the head in `store`. A copied payload follows it.
    end: usize,
    frame_bytes: usize,
}

impl Head {
    /// Copies the head of a frame. The head has `head_bytes` bytes, or is the whole frame if that
    /// is shorter.
    pub(crate) fn of(frame: &[u8], head_bytes: usize, mode: PayloadMode) -> Head {
        let head_bytes = head_bytes.min(frame.len());
        let copied = if mode == PayloadMode::Copied { frame } else { &frame[..head_bytes] };
        let mut store = Vec::with_capacity(HEAD_ROOM_BYTES + copied.len());
        store.resize(HEAD_ROOM_BYTES, 0);
        store.extend_from_slice(copied);
        let end = HEAD_ROOM_BYTES + head_bytes;
        Head { store, start: HEAD_ROOM_BYTES, end, frame_bytes: frame.len() }
    }

    /// Returns the length of the frame as received, in bytes.
    pub const fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.store[self.start..self.end]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.end]
    }

    pub(crate) fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.end..]
    }

    /// Returns all bytes of the frame that the agent has.
    pub(crate) fn all(&self) -> &[u8] {
        &self.store[self.start..]
    }

    /// Resizes the head to `bytes` at its front. Returns whether there was room.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let start = self.end.checked_sub(bytes);
        self.start = start.unwrap_or(self.start);
        start.is_some()
    }

    /// Replaces the frame's original head bytes with those of the agent.
    pub(crate) fn put_on(&self, mut frame: FrameBuf) -> FrameBuf {
        frame.pop_front(self.store.len() - HEAD_ROOM_BYTES);
        let all = self.all();
        if frame.push_front(all.len()).is_err() {
            let mut longer = FrameBuf::new(all);
            // A vector always has room.
            let _ = longer.push_back(frame.bytes());
            return longer;
        }
        frame.bytes_mut()[..all.len()].copy_from_slice(all);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn frame() -> FrameBuf {
        FrameBuf::new(&[1, 2, 3, 4, 5, 6])
    }

    #[test]
    fn a_head_grows_and_shrinks_at_its_front_before_the_payload_that_stays() {
        for mode in [PayloadMode::Cached, PayloadMode::Copied] {
            let mut head = Head::of(frame().bytes(), 4, mode);
            assert_eq!(head.bytes(), [1, 2, 3, 4]);
            assert!(head.resize(5));
            head.bytes_mut()[..2].copy_from_slice(&[9, 8]);
            assert_eq!(head.put_on(frame()).bytes(), [9, 8, 2, 3, 4, 5, 6]);
            assert!(head.resize(1));
            assert_eq!(head.put_on(frame()).bytes(), [4, 5, 6]);
            assert!(!head.resize(HEAD_ROOM_BYTES + 5));
            assert_eq!(head.bytes(), [4], "a head that cannot be is refused");
            assert!(head.resize(HEAD_ROOM_BYTES + 4), "there is room for so much");
        }
    }

    #[test]
    fn a_payload_that_is_copied_goes_back_as_the_agent_leaves_it() {
        let mut head = Head::of(frame().bytes(), 4, PayloadMode::Copied);
        assert_eq!(head.payload_mut(), [5, 6]);
        head.payload_mut()[1] = 7;
        assert_eq!(head.put_on(frame()).bytes(), [1, 2, 3, 4, 5, 7]);
        let mut head = Head::of(frame().bytes(), 4, PayloadMode::Cached);
        assert!(head.payload_mut().is_empty());
    }

    #[test]
    fn a_frame_without_room_in_front_is_moved() {
        let tight = FrameBuf::from_vec(vec![1, 2, 3, 4], 0);
        let mut head = Head::of(tight.bytes(), 2, PayloadMode::Cached);
        assert!(head.resize(4));
        head.bytes_mut().copy_from_slice(&[7, 7, 8, 9]);
        assert_eq!(head.put_on(tight).bytes(), [7, 7, 8, 9, 3, 4]);
    }

    #[test]
    fn a_frame_shorter_than_a_head_is_all_head() {
        let mut head = Head::of(&[1, 2], 128, PayloadMode::Copied);
        assert_eq!((head.bytes().len(), head.payload_mut().len(), head.frame_bytes()), (2, 0, 2));
    }
}
