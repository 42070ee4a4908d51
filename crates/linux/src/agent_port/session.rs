//! Attachment of one agent: packets to it, and answers from it.
//!
//! Nothing that the agent writes is trusted. A descriptor is read once into memory of the switch
//! and then checked: its kind, its chunk or buffer, its lengths, and its handle against the packet
//! in that chunk. A refused handle invalidates only that answer. Anything else that no correct
//! agent writes is an error, and the agent is detached. `carry` moves the bytes.

use super::broken::Broken;
use super::counters::AgentCounters;
use super::layout::{
    AGENT_SLEEPS, Descriptor, FROM_AGENT_HEAD, FROM_AGENT_TAIL, HEADROOM, Kind, Layout, QUEUES,
    QUEUES_MAX, SWITCH_SLEEPS, TO_AGENT_HEAD, TO_AGENT_TAIL,
};
use super::looks::Looks;
use super::memory::Memory;
use super::ring::{Bell, Receiver, Sender};
use crate::port::Pool;
use axon_cache::{Handle, PayloadCache, State};
use axon_wire::{FrameBuf, Time};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

/// Bytes copied for an agent in one burst. Further answers follow in order in the next burst. Each
/// descriptor from an agent may copy a whole frame, so a limit on the number of descriptors would
/// not bound the work.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// State of a port that outlives an agent: payload buffers and counters.
pub(super) struct Payloads {
    pub(super) cache: PayloadCache<FrameBuf>,
    pub(super) counters: AgentCounters,
}

impl Payloads {
    /// Counts a refused answer. The cache determines whether its handle is stale or forged.
    #[cold]
    pub(super) fn refuse(&mut self, handle: Handle) {
        self.counters.answers_refused += 1;
        // The handle must not be that of a packet that the agent holds in another chunk.
        if !matches!(self.cache.state(handle), Ok(state) if state != State::Free) {
            let _ = self.cache.release(handle);
        }
    }
}

/// Chunk that the agent holds.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) handle: Handle,
    /// Frame bytes that were copied into the chunk.
    pub(super) copied_bytes: u32,
    /// Bytes of the whole frame.
    pub(super) frame_bytes: u32,
    /// Number of descriptors written to the ring before this one.
    written: u32,
}

const FREE: Given = Given { handle: Handle::NONE, copied_bytes: 0, frame_bytes: 0, written: 0 };

/// Rings, chunks and buffers of one attached agent.
pub(super) struct Session {
    pub(super) memory: Memory,
    pub(super) layout: Layout,
    to_agent: Sender,
    from_agent: Receiver,
    agent_bell: Bell,
    pub(super) switch_bell: Bell,
    /// Chunks that the agent holds, by chunk number.
    pub(super) given: Vec<Given>,
    free_chunks: Vec<u32>,
    /// Chunk of the packet in each payload buffer, by buffer number.
    chunk_of: Vec<u32>,
    /// Number of answers read, modulo 2^32.
    read: u32,
    /// Number of the answer up to which answers must be read before due packets expire.
    expires_after: Option<u32>,
    looks: Looks,
    /// Bytes copied for the agent in this burst.
    pub(super) copied_bytes: usize,
    /// Answers and bytes that may still be processed after the agent has gone; `None` while it is
    /// there.
    left: Option<(usize, usize)>,
}

/// Result of reading one burst of answers from the agent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// Number of answers.
    pub(super) count: usize,
    /// True if there may be more, because the burst limit was reached.
    pub(super) more: bool,
}

impl Session {
    /// Creates the memory for an agent. Returns the agent's descriptors: memory and wake-up.
    pub(super) fn create(layout: Layout) -> io::Result<([OwnedFd; 2], Session)> {
        let (fd, memory) = Memory::create(layout.memory_bytes())?;
        memory.write(0, &layout.emit());
        let slots = layout.ring_slots;
        let (agent_bell, ear) = Bell::by_sockets(AGENT_SLEEPS)?;
        let session = Session {
            to_agent: Sender::new(layout.to_agent(), TO_AGENT_TAIL, TO_AGENT_HEAD, slots),
            from_agent: Receiver::new(layout.from_agent(), FROM_AGENT_TAIL, FROM_AGENT_HEAD, slots),
            agent_bell,
            switch_bell: Bell::new(SWITCH_SLEEPS)?,
            given: vec![FREE; layout.chunks],
            free_chunks: (0..layout.chunks as u32).rev().collect(),
            chunk_of: vec![0; layout.payloads],
            read: 0,
            expires_after: None,
            looks: Looks::default(),
            copied_bytes: 0,
            left: None,
            memory,
            layout,
        };
        Ok(([fd, ear], session))
    }

    /// Returns the number of packets for which the agent has room now.
    pub(super) fn room(&self, payloads: &Payloads) -> usize {
        payloads.cache.room().min(self.free_chunks.len())
    }

    /// Publishes the queue lengths of the ports to the agent, in bytes, starting with port 0.
    pub(super) fn show_queues(&self, queued: impl Iterator<Item = Option<u64>>) {
        for (place, bytes) in queued.take(QUEUES_MAX).enumerate() {
            let known = bytes.map_or(0, |bytes| bytes.min(u64::from(u32::MAX) - 1) as u32 + 1);
            self.memory.word(QUEUES + 4 * place).store(known, Ordering::Relaxed);
        }
    }

    /// Writes a packet for the agent, which becomes visible with [`publish`](Session::publish).
    /// Returns the frame if its payload does not stay in the switch. If there is no room, returns
    /// the frame and false.
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
        if let Some(place) = self.chunk_of.get_mut(attached.handle.number()) {
            *place = chunk;
        }
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

    pub(super) fn push(&mut self, descriptor: Descriptor) -> Result<(), Broken> {
        if self.to_agent.push(&self.memory, &descriptor)? { Ok(()) } else { Err(Broken::RingFull) }
    }

    /// Publishes all written packets to the agent and wakes it.
    pub(super) fn publish(&self) {
        self.to_agent.publish(&self.memory);
        self.agent_bell.ring(&self.memory);
    }

    /// Returns whether all answers of the agent have been read.
    pub(super) fn is_silent(&self) -> bool {
        self.from_agent.is_empty(&self.memory)
    }

    /// Requests a wake-up and checks the ring once more. Returns whether the ring has data.
    pub(super) fn sleep(&self) -> bool {
        self.switch_bell.sleep(&self.memory);
        !self.is_silent()
    }

    /// Cancels the wake-up request.
    pub(super) fn awake(&self) {
        self.switch_bell.awake(&self.memory);
    }

    /// Marks the agent as gone. Only its pending answers are processed, at most as many as fit in
    /// its ring, and at most the bytes that fit in its memory. The agent gets nothing more.
    pub(super) fn end(&mut self) {
        self.left = Some((self.layout.ring_slots, self.layout.memory_bytes()));
    }

    /// Returns whether the agent has gone.
    pub(super) fn is_gone(&self) -> bool {
        self.left.is_some()
    }

    /// Processes up to `answers_max` answers, or fewer if they copy many bytes. Frames that leave
    /// the agent go to `out`.
    pub(super) fn answers(
        &mut self,
        now: Time,
        answers_max: usize,
        payloads: &mut Payloads,
        (pool, out): (&mut Pool, &mut Vec<FrameBuf>),
    ) -> Result<Taken, Broken> {
        let before = self.to_agent.written();
        let mut taken = Taken::default();
        self.copied_bytes = 0;
        let answers_max = answers_max.min(self.left.map_or(usize::MAX, |(answers, _)| answers));
        loop {
            taken.more = taken.count >= answers_max || self.copied_bytes >= COPIED_BYTES_MAX;
            if taken.more {
                break;
            }
            let Some(words) = self.from_agent.pop(&self.memory)? else { break };
            self.read = self.read.wrapping_add(1);
            let answer = Descriptor::from_words(words).map_err(Broken::UnknownKind)?;
            self.answer(now, answer, payloads, (pool, out))?;
            taken.count += 1;
        }
        if let Some((answers, bytes)) = &mut self.left {
            *answers -= taken.count;
            *bytes = bytes.saturating_sub(self.copied_bytes);
            taken.more &= *answers > 0 && *bytes > 0;
        }
        if taken.count > 0 {
            self.from_agent.publish(&self.memory);
        }
        if self.to_agent.written() != before {
            self.publish();
        }
        Ok(taken)
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
                // The offset of a fetch is an offset in the frame, not in the chunk.
                self.check_chunk(&Descriptor { offset: 0, ..answer })?;
                self.check_buffer(&answer)?;
                if !self.is_gone() {
                    self.fetch(&answer, payloads)?;
                }
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

    /// Checks that the byte range of an answer lies in its chunk.
    fn check_chunk(&self, answer: &Descriptor) -> Result<(), Broken> {
        let Layout { chunks, chunk_bytes, .. } = self.layout;
        check_piece(answer.chunk, chunks, (answer.offset, answer.head_bytes), chunk_bytes)
    }

    /// Checks that the byte range of an answer lies in its buffer.
    fn check_buffer(&self, answer: &Descriptor) -> Result<(), Broken> {
        let Layout { buffers, buffer_bytes, .. } = self.layout;
        check_piece(answer.buffer, buffers, (0, answer.bytes), buffer_bytes)
    }

    /// Takes back the chunk of an answered packet. If that packet was not given with that chunk,
    /// counts the answer as refused and returns `None`. The handle is then forged, belongs to
    /// another packet, or has already been answered.
    #[inline]
    fn take_back(&mut self, answer: &Descriptor, payloads: &mut Payloads) -> Option<Given> {
        let given = self.given[answer.chunk as usize];
        if given.handle != answer.handle || given.handle == Handle::NONE {
            payloads.refuse(answer.handle);
            return None;
        }
        self.given[answer.chunk as usize] = FREE;
        self.free_chunks.push(answer.chunk);
        Some(given)
    }

    fn hand_back(&mut self, buffer: u32) -> Result<(), Broken> {
        self.push(Descriptor { buffer, ..Descriptor::new(Kind::Returned, Handle::NONE) })
    }

    /// Takes back packets that the agent has held for too long. Their chunks stay with the agent
    /// until it answers, so that it cannot write into another packet. Answers written before the
    /// expiry must be processed first, and until then this does nothing. The hold time of a packet
    /// starts when the agent read it, if that time is known (see `looks`).
    ///
    /// # Errors
    /// The agent has not read a due packet, and has read no other packet for the longest hold time
    /// either. Or it holds so many packets that it gets no more.
    pub(super) fn expire(
        &mut self,
        now: Time,
        payloads: &mut Payloads,
        pool: &mut Pool,
    ) -> Result<(), Broken> {
        let Some(hold_max) = payloads.cache.hold_max() else { return Ok(()) };
        self.to_agent.room(&self.memory)?;
        self.looks.look(now, self.to_agent.read(), hold_max);
        if payloads.cache.due(now).is_none() {
            self.expires_after = None;
            return Ok(());
        }
        let written = || self.memory.word(FROM_AGENT_TAIL).load(Ordering::Acquire);
        let after = *self.expires_after.get_or_insert_with(written);
        let ahead = after.wrapping_sub(self.read);
        // If the agent has moved its cursor back, there is nothing to process.
        if (1..=self.layout.ring_slots as u32).contains(&ahead) && !self.is_silent() {
            return Ok(());
        }
        self.expires_after = None;
        let (mut is_stalled, reads) = (false, self.looks.reads(now, hold_max));
        while let Some(handle) = payloads.cache.due(now) {
            let unread_at = self.unread_at(handle);
            if let Some(at) = unread_at.filter(|&at| reads && at + hold_max > now) {
                payloads.cache.renew(at, handle);
                continue;
            }
            is_stalled |= unread_at == Some(now);
            let Some((_, frame)) = payloads.cache.expire(now) else { break };
            self.recycle(pool, frame);
        }
        let is_stuck = self.free_chunks.is_empty() && payloads.cache.in_use() == 0;
        if is_stalled || is_stuck { Err(Broken::Stalled) } else { Ok(()) }
    }

    /// Returns the time of the last sample at which the agent had not read this packet.
    fn unread_at(&self, handle: Handle) -> Option<Time> {
        let chunk = self.chunk_of.get(handle.number());
        let given = chunk.and_then(|&chunk| self.given.get(chunk as usize))?;
        (given.handle == handle).then(|| self.looks.unread_at(given.written)).flatten()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_port::layout::DESCRIPTOR_BYTES;
    use axon_cache::CacheConfig;
    use std::os::fd::AsFd;

    #[test]
    fn an_agent_that_has_gone_leaves_no_more_than_it_can_have_brought_and_gets_nothing() {
        let layout = Layout::new((512, 2), 64, 60_000, true);
        let ([fd, _ear], mut session) = Session::create(layout).unwrap();
        let agent = Memory::open(fd.as_fd(), layout.memory_bytes()).unwrap();
        let config = CacheConfig { buffers: 512, send_buffers: 2, ..CacheConfig::default() };
        let cache = PayloadCache::new(config).unwrap();
        let mut payloads = Payloads { cache, counters: AgentCounters::default() };
        let (mut pool, mut out) = (Pool::default(), Vec::<FrameBuf>::new());
        session.give(Time::ZERO, FrameBuf::new(&[7; 1000]), &mut payloads).unwrap();
        let handle = session.given[0].handle;
        for slot in 0..layout.ring_slots {
            let kind = if slot == 0 { Kind::Fetch } else { Kind::Send };
            let bytes = if slot == 0 { 1000 } else { 60_000 };
            let answer = Descriptor { bytes, ..Descriptor::new(kind, handle) };
            let at = layout.from_agent() + slot * DESCRIPTOR_BYTES;
            for (index, word) in answer.words().into_iter().enumerate() {
                agent.long(at + 8 * index).store(word, Ordering::Relaxed);
            }
        }
        agent.word(FROM_AGENT_TAIL).store(layout.ring_slots as u32, Ordering::Release);
        session.end();
        let (mut rounds, mut more) = (0, true);
        while more {
            let before: usize = out.iter().map(|frame| frame.bytes().len()).sum();
            let given = (&mut pool, &mut out);
            more = session.answers(Time::ZERO, 256, &mut payloads, given).unwrap().more;
            let bytes: usize = out.iter().map(|frame| frame.bytes().len()).sum();
            assert!(bytes - before < COPIED_BYTES_MAX + 60_000, "{} bytes", bytes - before);
            rounds += 1;
        }
        assert!(rounds > layout.memory_bytes() / (COPIED_BYTES_MAX + 60_000), "{rounds} rounds");
        let bytes: usize = out.iter().map(|frame| frame.bytes().len()).sum();
        let most = layout.memory_bytes() + COPIED_BYTES_MAX + 60_000;
        assert!((layout.memory_bytes()..most).contains(&bytes), "{bytes} of {most}");
        assert_eq!(payloads.counters.fetched, 0);
    }
}
