//! One agent while it is attached, as the switch sees it: packets out, answers in.
//!
//! Nothing that the agent writes is trusted. A descriptor is read once into memory of the switch
//! and then checked: its kind, its chunk or buffer, its lengths, and its handle against what was
//! given with that chunk. A handle that is refused costs the agent that answer; what no working
//! agent writes is an error, and it is detached.

use super::broken::Broken;
use super::counters::AgentCounters;
use super::layout::{
    AGENT_SLEEPS, Descriptor, FROM_AGENT_HEAD, FROM_AGENT_TAIL, HEADROOM, Kind, Layout, QUEUES,
    QUEUES_MAX, SWITCH_SLEEPS, TO_AGENT_HEAD, TO_AGENT_TAIL,
};
use super::memory::Memory;
use super::ring::{Bell, Receiver, Sender};
use crate::port::Pool;
use axon_cache::{Handle, PayloadCache, State};
use axon_wire::{Frame, FrameBuf, Time};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

/// What outlives an agent: the payload buffers of a port and its counters.
pub(super) struct Payloads {
    pub(super) cache: PayloadCache<FrameBuf>,
    pub(super) counters: AgentCounters,
}

/// A chunk that the agent has.
#[derive(Clone, Copy)]
struct Given {
    handle: Handle,
    /// Bytes of the frame that were copied into the chunk.
    copied_bytes: u32,
    /// Bytes of the whole frame.
    frame_bytes: u32,
    /// How many descriptors the ring had seen before this one.
    written: u32,
}

const FREE: Given = Given { handle: Handle::NONE, copied_bytes: 0, frame_bytes: 0, written: 0 };

/// The rings, chunks and buffers of one attached agent.
pub(super) struct Session {
    memory: Memory,
    pub(super) layout: Layout,
    to_agent: Sender,
    from_agent: Receiver,
    agent_bell: Bell,
    /// The agent's end of that bell. The switch keeps it, too: without a reader a pipe is broken.
    agent_ear: OwnedFd,
    pub(super) switch_bell: Bell,
    /// By number of the chunk.
    given: Vec<Given>,
    free_chunks: Vec<u32>,
}

impl Session {
    /// Makes the memory for an agent; the descriptor is for it.
    pub(super) fn create(layout: Layout) -> io::Result<(OwnedFd, Session)> {
        let (fd, memory) = Memory::create(layout.memory_bytes())?;
        memory.write(0, &layout.emit());
        let slots = layout.ring_slots;
        let (agent_bell, agent_ear) = Bell::by_pipe(AGENT_SLEEPS)?;
        let session = Session {
            to_agent: Sender::new(layout.to_agent(), TO_AGENT_TAIL, TO_AGENT_HEAD, slots),
            from_agent: Receiver::new(layout.from_agent(), FROM_AGENT_TAIL, FROM_AGENT_HEAD, slots),
            agent_bell,
            agent_ear,
            switch_bell: Bell::new(SWITCH_SLEEPS)?,
            given: vec![FREE; layout.chunks],
            free_chunks: (0..layout.chunks as u32).rev().collect(),
            memory,
            layout,
        };
        Ok((fd, session))
    }

    /// What the agent waits for.
    pub(super) fn agent_ear(&self) -> BorrowedFd<'_> {
        self.agent_ear.as_fd()
    }

    /// How many more packets the agent gets now.
    pub(super) fn room(&self, payloads: &Payloads) -> usize {
        payloads.cache.room().min(self.free_chunks.len())
    }

    /// Shows the agent what waits in the queues of the ports, from port 0 on, in bytes.
    pub(super) fn show_queues(&self, queued: impl Iterator<Item = Option<u64>>) {
        for (place, bytes) in queued.take(QUEUES_MAX).enumerate() {
            let known = bytes.map_or(0, |bytes| bytes.min(u64::from(u32::MAX) - 1) as u32 + 1);
            self.memory.word(QUEUES + 4 * place).store(known, Ordering::Relaxed);
        }
    }

    /// Gives the agent a packet, which it sees after [`publish`](Session::publish). The frame is
    /// handed back where its payload does not stay, or if there is no room: then the second is
    /// false.
    pub(super) fn give(
        &mut self,
        now: Time,
        frame: FrameBuf,
        payloads: &mut Payloads,
    ) -> Result<(Option<FrameBuf>, bool), Broken> {
        let frame_bytes = frame.bytes().len();
        let copied = self.layout.copied_bytes(frame_bytes);
        if frame_bytes > self.layout.buffer_bytes {
            return Ok((Some(frame), false));
        }
        let Some(&chunk) = self.free_chunks.last() else { return Ok((Some(frame), false)) };
        let at = self.layout.chunk_at(chunk as usize) + HEADROOM;
        self.memory.write(at, &frame.bytes()[..copied]);
        let (kept, back) = if self.layout.stays {
            (frame, None)
        } else {
            (FrameBuf::from_vec(Vec::new(), 0), Some(frame))
        };
        let attached = match payloads.cache.receive(now, kept) {
            Ok(attached) => attached,
            Err(refused) => return Ok((Some(back.unwrap_or(refused.payload)), false)),
        };
        self.free_chunks.pop();
        self.given[chunk as usize] = Given {
            handle: attached.handle,
            copied_bytes: copied as u32,
            frame_bytes: frame_bytes as u32,
            written: self.to_agent.written(),
        };
        payloads.counters.packets += 1;
        payloads.counters.copied_to_agent_bytes += copied as u64;
        self.push(Descriptor {
            chunk,
            offset: HEADROOM as u32,
            head_bytes: copied as u32,
            bytes: frame_bytes as u32,
            ..Descriptor::new(Kind::Packet, attached.handle)
        })?;
        Ok((back, true))
    }

    fn push(&mut self, descriptor: Descriptor) -> Result<(), Broken> {
        if self.to_agent.push(&self.memory, &descriptor)? { Ok(()) } else { Err(Broken::RingFull) }
    }

    /// Shows the agent all that it was given, and wakes it.
    pub(super) fn publish(&self) {
        self.to_agent.publish(&self.memory);
        self.agent_bell.ring(&self.memory);
    }

    /// Whether the agent has written nothing that was not read.
    pub(super) fn is_silent(&self) -> bool {
        self.from_agent.is_empty(&self.memory)
    }

    /// Asks to be woken, and looks once more: returns whether there is something.
    pub(super) fn sleep(&self) -> bool {
        self.switch_bell.sleep(&self.memory);
        !self.is_silent()
    }

    /// Asks no more to be woken.
    pub(super) fn awake(&self) {
        self.switch_bell.awake(&self.memory);
    }

    /// Carries out up to `answers_max` answers; frames that leave the agent go to `out`. Returns
    /// how many there were.
    pub(super) fn answers(
        &mut self,
        now: Time,
        answers_max: usize,
        payloads: &mut Payloads,
        (pool, out): (&mut Pool, &mut Vec<FrameBuf>),
    ) -> Result<usize, Broken> {
        let before = self.to_agent.written();
        let mut count = 0;
        while count < answers_max
            && let Some(words) = self.from_agent.pop(&self.memory)?
        {
            let answer = Descriptor::from_words(words).map_err(Broken::UnknownKind)?;
            self.answer(now, answer, payloads, (pool, out))?;
            count += 1;
        }
        if count > 0 {
            self.from_agent.publish(&self.memory);
        }
        if self.to_agent.written() != before {
            self.publish();
        }
        Ok(count)
    }

    fn answer(
        &mut self,
        now: Time,
        answer: Descriptor,
        payloads: &mut Payloads,
        (pool, out): (&mut Pool, &mut Vec<FrameBuf>),
    ) -> Result<(), Broken> {
        match answer.kind {
            Kind::Forward => {
                self.check_chunk(&answer)?;
                if let Some(given) = self.take_back(&answer, payloads) {
                    out.extend(self.forward(&answer, given, payloads, pool));
                }
            }
            Kind::Drop => {
                self.check_chunk(&answer)?;
                if self.take_back(&answer, payloads).is_some()
                    && let Ok(frame) = payloads.cache.release(answer.handle)
                {
                    payloads.counters.dropped += 1;
                    self.recycle(pool, frame);
                }
            }
            Kind::Fetch => {
                // Its offset is in the frame.
                self.check_chunk(&Descriptor { offset: 0, ..answer })?;
                self.check_buffer(&answer)?;
                self.fetch(&answer, payloads)?;
            }
            Kind::Replace => {
                self.check_chunk(&answer)?;
                self.check_buffer(&answer)?;
                if self.take_back(&answer, payloads).is_some() {
                    out.extend(self.replace(now, &answer, payloads, pool));
                }
                self.hand_back(answer.buffer)?;
            }
            Kind::Send => {
                self.check_buffer(&answer)?;
                out.extend(self.own(now, &answer, payloads, pool));
                self.hand_back(answer.buffer)?;
            }
            Kind::Packet | Kind::Payload | Kind::Returned => {
                return Err(Broken::NotAnAnswer(answer.kind));
            }
        }
        Ok(())
    }

    /// Checks that what an answer says of its chunk lies in it.
    fn check_chunk(&self, answer: &Descriptor) -> Result<(), Broken> {
        let Layout { chunks, chunk_bytes, .. } = self.layout;
        check_piece(answer.chunk, chunks, (answer.offset, answer.head_bytes), chunk_bytes)
    }

    /// The same of its buffer.
    fn check_buffer(&self, answer: &Descriptor) -> Result<(), Broken> {
        let Layout { buffers, buffer_bytes, .. } = self.layout;
        check_piece(answer.buffer, buffers, (0, answer.bytes), buffer_bytes)
    }

    /// Takes the chunk of an answered packet back. `None`, and counted, if that packet was not
    /// given with that chunk: the handle is forged, of another packet, or answered before.
    #[inline]
    fn take_back(&mut self, answer: &Descriptor, payloads: &mut Payloads) -> Option<Given> {
        let given = self.given[answer.chunk as usize];
        if given.handle != answer.handle || given.handle == Handle::NONE {
            refuse(answer.handle, payloads);
            return None;
        }
        self.given[answer.chunk as usize] = FREE;
        self.free_chunks.push(answer.chunk);
        Some(given)
    }

    /// The frame of a packet that the agent forwards: only what was copied to it is copied back.
    #[inline]
    fn forward(
        &mut self,
        answer: &Descriptor,
        given: Given,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Option<FrameBuf> {
        let head_bytes = answer.head_bytes as usize;
        let from = self.layout.chunk_at(answer.chunk as usize) + answer.offset as usize;
        let frame = match payloads.cache.send(answer.handle, head_bytes) {
            Ok(frame) => frame,
            Err(_) => {
                // It was held for too long.
                payloads.counters.answers_refused += 1;
                return None;
            }
        };
        payloads.counters.copied_from_agent_bytes += answer.head_bytes as u64;
        let memory = &self.memory;
        let frame = if self.layout.stays {
            let copied_bytes = given.copied_bytes as usize;
            let mut frame = match with_head_of(frame, copied_bytes, head_bytes) {
                Ok(frame) => frame,
                Err(frame) => {
                    // There is no room before it: the payload has to move, once.
                    let payload = &frame.bytes()[copied_bytes..];
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
        if frame.bytes().len() > self.layout.buffer_bytes {
            payloads.counters.answers_refused += 1;
            pool.recycle(frame);
            return None;
        }
        payloads.counters.forwarded += 1;
        Some(frame)
    }

    /// Copies a part of a payload to a buffer of the agent.
    fn fetch(&mut self, answer: &Descriptor, payloads: &mut Payloads) -> Result<(), Broken> {
        let given = self.given[answer.chunk as usize];
        let mut bytes = 0;
        if given.handle == answer.handle {
            let end = answer.offset.saturating_add(answer.bytes).min(given.frame_bytes) as usize;
            let start = (answer.offset as usize).min(end);
            match payloads.cache.fetch(answer.handle, start..end) {
                Ok(part) => {
                    self.memory.write(self.layout.buffer_at(answer.buffer as usize), part);
                    bytes = part.len();
                    payloads.counters.fetched += 1;
                    payloads.counters.copied_to_agent_bytes += bytes as u64;
                }
                Err(_) => payloads.counters.answers_refused += 1,
            }
        } else {
            refuse(answer.handle, payloads);
        }
        self.push(Descriptor {
            offset: answer.offset,
            buffer: answer.buffer,
            bytes: bytes as u32,
            ..Descriptor::new(Kind::Payload, answer.handle)
        })
    }

    /// The frame of a packet whose payload the agent has brought.
    fn replace(
        &mut self,
        now: Time,
        answer: &Descriptor,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Option<FrameBuf> {
        let (head_bytes, bytes) = (answer.head_bytes as usize, answer.bytes as usize);
        if head_bytes + bytes > self.layout.buffer_bytes {
            refuse(answer.handle, payloads);
            let _ = payloads.cache.release(answer.handle).map(|frame| self.recycle(pool, frame));
            return None;
        }
        let head_at = self.layout.chunk_at(answer.chunk as usize) + answer.offset as usize;
        let payload_at = self.layout.buffer_at(answer.buffer as usize);
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

    /// A frame of the agent's own. Its payload buffer is one of the send segment, and free at once.
    fn own(
        &mut self,
        now: Time,
        answer: &Descriptor,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Option<FrameBuf> {
        let from = self.layout.buffer_at(answer.buffer as usize);
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

    fn hand_back(&mut self, buffer: u32) -> Result<(), Broken> {
        self.push(Descriptor { buffer, ..Descriptor::new(Kind::Returned, Handle::NONE) })
    }

    /// Recycles a frame whose payload stayed; elsewhere it is an empty stand-in.
    fn recycle(&self, pool: &mut Pool, frame: FrameBuf) {
        if self.layout.stays {
            pool.recycle(frame);
        }
    }

    /// Takes packets back that the agent has held for too long. Their chunks stay with it until it
    /// answers, so that it writes into no other packet.
    ///
    /// # Errors
    /// It has not even read one of them, or has so many that it gets no more.
    pub(super) fn expire(
        &mut self,
        now: Time,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Result<(), Broken> {
        let mut unread = false;
        self.to_agent.room(&self.memory)?;
        while let Some((handle, frame)) = payloads.cache.expire(now) {
            self.recycle(pool, frame);
            let given = self.given.iter().find(|given| given.handle == handle);
            let age = given.map(|given| self.to_agent.written().wrapping_sub(given.written));
            unread |= age.is_some_and(|age| age <= self.to_agent.unread());
        }
        let stuck = self.free_chunks.is_empty() && payloads.cache.in_use() == 0;
        if unread || stuck { Err(Broken::Stalled) } else { Ok(()) }
    }
}

/// Counts an answer that is refused; the cache knows whether its handle is old or forged.
#[cold]
fn refuse(handle: Handle, payloads: &mut Payloads) {
    payloads.counters.answers_refused += 1;
    // Never that of a packet which is held, with another chunk.
    if !matches!(payloads.cache.state(handle), Ok(state) if state != State::Free) {
        let _ = payloads.cache.release(handle);
    }
}

/// Checks a piece of memory that the agent names.
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

/// Makes the head of a frame `after` bytes long where it was `before`; its bytes are then any.
///
/// # Errors
/// There is no room before the frame, which is given back as it was.
#[inline]
fn with_head_of(mut frame: FrameBuf, before: usize, after: usize) -> Result<FrameBuf, FrameBuf> {
    if after < before {
        frame.pop_front(before - after);
    } else if after > before && frame.push_front(after - before).is_err() {
        return Err(frame);
    }
    Ok(frame)
}
