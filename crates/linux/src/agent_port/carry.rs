//! Moves the bytes of a packet after its agent has answered.

use super::broken::Broken;
use super::layout::{Descriptor, Kind};
use super::session::{Given, Payloads, Session};
use crate::port::Pool;
use axon_wire::{FrameBuf, Time};

impl Session {
    /// Returns the frame of a forwarded packet. Only the bytes that were copied to the agent are
    /// copied back.
    #[inline]
    pub(super) fn forward(
        &mut self,
        answer: &Descriptor,
        given: Given,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Option<FrameBuf> {
        let head_bytes = answer.head_bytes as usize;
        let from = self.layout.chunk_at(answer.chunk as usize) + answer.offset as usize;
        let stays = if self.layout.stays { given.frame_bytes - given.copied_bytes } else { 0 };
        if head_bytes + stays as usize > self.layout.buffer_bytes {
            self.refuse_too_long(answer, payloads, pool);
            return None;
        }
        let frame = match payloads.cache.send(answer.handle, head_bytes) {
            Ok(frame) => frame,
            Err(_) => {
                // The agent has held the packet for too long, so its buffer has been taken back.
                payloads.counters.answers_refused += 1;
                return None;
            }
        };
        payloads.counters.copied_from_agent_bytes += answer.head_bytes as u64;
        self.copied_bytes += head_bytes;
        let memory = &self.memory;
        let frame = if self.layout.stays {
            let copied_bytes = given.copied_bytes as usize;
            let mut frame = match with_head_of(frame, copied_bytes, head_bytes) {
                Ok(frame) => frame,
                Err(frame) => {
                    // Without headroom, the payload has to be moved once.
                    let payload = &frame.bytes()[copied_bytes..];
                    self.copied_bytes += payload.len();
                    payloads.counters.moved_bytes += payload.len() as u64;
                    let moved = pool.filled(head_bytes + payload.len(), |bytes| {
                        bytes[head_bytes..].copy_from_slice(payload);
                    });
                    pool.recycle(frame);
                    moved
                }
            };
            memory.read(from, &mut frame.bytes_mut()[..head_bytes]);
            frame
        } else {
            pool.filled(head_bytes, |bytes| memory.read(from, bytes))
        };
        payloads.counters.forwarded += 1;
        Some(frame)
    }

    /// Drops a packet that the agent has extended beyond the longest frame.
    #[cold]
    fn refuse_too_long(&mut self, answer: &Descriptor, payloads: &mut Payloads, pool: &mut Pool) {
        payloads.counters.answers_refused += 1;
        if let Ok(frame) = payloads.cache.release(answer.handle) {
            self.recycle(pool, frame);
        }
    }

    /// Copies part of a payload to a buffer of the agent.
    pub(super) fn fetch(
        &mut self,
        answer: &Descriptor,
        payloads: &mut Payloads,
    ) -> Result<(), Broken> {
        let given = self.given[answer.chunk as usize];
        let mut bytes = 0;
        if given.handle == answer.handle {
            let end = answer.offset.saturating_add(answer.bytes).min(given.frame_bytes) as usize;
            let start = (answer.offset as usize).min(end);
            match payloads.cache.fetch(answer.handle, start..end) {
                Ok(part) => {
                    self.memory.write(self.layout.buffer_at(answer.buffer as usize), part);
                    bytes = part.len();
                    self.copied_bytes += bytes;
                    payloads.counters.fetched += 1;
                    payloads.counters.copied_to_agent_bytes += bytes as u64;
                }
                Err(_) => payloads.counters.answers_refused += 1,
            }
        } else {
            payloads.refuse(answer.handle);
        }
        self.push(Descriptor {
            offset: answer.offset,
            buffer: answer.buffer,
            bytes: bytes as u32,
            ..Descriptor::new(Kind::Payload, answer.handle)
        })
    }

    /// Returns the frame of a packet whose payload the agent has replaced.
    pub(super) fn replace(
        &mut self,
        now: Time,
        answer: &Descriptor,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Option<FrameBuf> {
        let (head_bytes, bytes) = (answer.head_bytes as usize, answer.bytes as usize);
        if head_bytes + bytes > self.layout.buffer_bytes {
            self.refuse_too_long(answer, payloads, pool);
            return None;
        }
        let head_at = self.layout.chunk_at(answer.chunk as usize) + answer.offset as usize;
        let payload_at = self.layout.buffer_at(answer.buffer as usize);
        self.copied_bytes += head_bytes + bytes;
        let frame = pool.filled(head_bytes + bytes, |to| {
            let (head, payload) = to.split_at_mut(head_bytes);
            self.memory.read(head_at, head);
            self.memory.read(payload_at, payload);
        });
        let (attached, old) = match payloads.cache.replace(now, answer.handle, frame) {
            Ok(replaced) => replaced,
            Err(refused) => {
                payloads.counters.answers_refused += 1;
                pool.recycle(refused.payload);
                return None;
            }
        };
        self.recycle(pool, old);
        let counters = &mut payloads.counters;
        counters.copied_from_agent_bytes += (head_bytes + bytes) as u64;
        counters.replaced += 1;
        counters.forwarded += 1;
        payloads.cache.send(attached.handle, 0).ok()
    }

    /// Returns a frame that the agent originates. Its buffer in the send segment is free again at
    /// once.
    pub(super) fn own(
        &mut self,
        now: Time,
        answer: &Descriptor,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Option<FrameBuf> {
        let from = self.layout.buffer_at(answer.buffer as usize);
        self.copied_bytes += answer.bytes as usize;
        let frame = pool.filled(answer.bytes as usize, |bytes| self.memory.read(from, bytes));
        let handle = match payloads.cache.bring(now, frame) {
            Ok(attached) => attached.handle,
            Err(refused) => {
                payloads.counters.answers_refused += 1;
                pool.recycle(refused.payload);
                return None;
            }
        };
        payloads.counters.copied_from_agent_bytes += u64::from(answer.bytes);
        payloads.counters.sent += 1;
        payloads.cache.send(handle, 0).ok()
    }

    /// Recycles a frame whose payload stayed in the switch. In copy mode, drops the empty
    /// placeholder.
    pub(super) fn recycle(&self, pool: &mut Pool, frame: FrameBuf) {
        if self.layout.stays {
            pool.recycle(frame);
        }
    }
}

/// Changes the length of the frame's head from `before` to `after` bytes. The contents of the head
/// are then unspecified.
///
/// # Errors
/// There is not enough headroom. The frame is returned unchanged.
#[inline]
fn with_head_of(mut frame: FrameBuf, before: usize, after: usize) -> Result<FrameBuf, FrameBuf> {
    if after < before {
        frame.pop_front(before - after);
    } else if after > before && frame.push_front(after - before).is_err() {
        return Err(frame);
    }
    Ok(frame)
}
