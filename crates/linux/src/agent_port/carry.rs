//! Memory shared with an agent. Moves the bytes of a packet to the agent and back.

use super::broken::Broken;
use super::chunks::Given;
use super::layout::{Descriptor, HEADROOM, Layout, QUEUES, QUEUES_MAX};
use super::memory::Memory;
use super::payloads::Payloads;
use crate::port::Pool;
use axon_wire::{FrameBuf, Time};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

/// Memory shared with one agent.
pub(super) struct SharedMemory {
    memory: Memory,
    layout: Layout,
    /// Bytes copied for the agent in this burst.
    copied_bytes: usize,
}

impl SharedMemory {
    /// Creates the memory, and returns its descriptor with it.
    pub(super) fn create(layout: Layout) -> io::Result<(OwnedFd, SharedMemory)> {
        let (fd, memory) = Memory::create(layout.memory_bytes())?;
        memory.write(0, &layout.emit());
        Ok((fd, SharedMemory { memory, layout, copied_bytes: 0 }))
    }

    /// Returns the memory.
    pub(super) const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the layout of the memory.
    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Begins a burst, in which no bytes have been copied.
    pub(super) fn begin_burst(&mut self) {
        self.copied_bytes = 0;
    }

    /// Returns the bytes copied for the agent in this burst.
    pub(super) const fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }

    /// Writes the queue lengths of the ports, in bytes, starting with port 0.
    pub(super) fn show_queues(&self, queued: impl Iterator<Item = Option<u64>>) {
        for (place, bytes) in queued.take(QUEUES_MAX).enumerate() {
            let known = bytes.map_or(0, |bytes| bytes.min(u64::from(u32::MAX) - 1) as u32 + 1);
            self.memory.word(QUEUES + 4 * place).store(known, Ordering::Relaxed);
        }
    }

    /// Copies the head of a frame into a chunk. Returns the number of its bytes.
    pub(super) fn write_head(&self, chunk: u32, frame: &FrameBuf) -> usize {
        let copied = self.layout.copied_bytes(frame.bytes().len());
        let at = self.layout.chunk_at(chunk as usize) + HEADROOM;
        self.memory.write(at, &frame.bytes()[..copied]);
        copied
    }

    /// Checks that the byte range of an answer lies in its chunk.
    pub(super) fn check_chunk(&self, answer: &Descriptor) -> Result<(), Broken> {
        let Layout { chunks, chunk_bytes, .. } = self.layout;
        check_piece(answer.chunk, chunks, (answer.offset, answer.head_bytes), chunk_bytes)
    }

    /// Checks that the byte range of an answer lies in its buffer.
    pub(super) fn check_buffer(&self, answer: &Descriptor) -> Result<(), Broken> {
        let Layout { buffers, buffer_bytes, .. } = self.layout;
        check_piece(answer.buffer, buffers, (0, answer.bytes), buffer_bytes)
    }

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

    /// Copies part of a payload to a buffer of the agent. Returns the number of copied bytes, which
    /// is 0 for a refused handle.
    pub(super) fn fetch(
        &mut self,
        answer: &Descriptor,
        given: Given,
        payloads: &mut Payloads,
    ) -> u32 {
        if given.handle != answer.handle {
            payloads.refuse(answer.handle);
            return 0;
        }
        let end = answer.offset.saturating_add(answer.bytes).min(given.frame_bytes) as usize;
        let start = (answer.offset as usize).min(end);
        let Ok(part) = payloads.cache.fetch(answer.handle, start..end) else {
            payloads.counters.answers_refused += 1;
            return 0;
        };
        self.memory.write(self.layout.buffer_at(answer.buffer as usize), part);
        self.copied_bytes += part.len();
        payloads.counters.fetched += 1;
        payloads.counters.copied_to_agent_bytes += part.len() as u64;
        part.len() as u32
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

/// Checks a chunk or buffer range that the agent names.
#[inline]
fn check_piece(
    number: u32,
    count: usize,
    (offset, bytes): (u32, u32),
    piece_bytes: usize,
) -> Result<(), Broken> {
    if number as usize >= count {
        return Err(Broken::NoPiece { number, count });
    }
    if u64::from(offset) + u64::from(bytes) > piece_bytes as u64 {
        return Err(Broken::Outside { offset, bytes, piece_bytes });
    }
    Ok(())
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
