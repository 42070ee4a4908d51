//! Attachment of one agent: packets to it, and answers from it.
//!
//! Nothing that the agent writes is trusted. A descriptor is read once into memory of the switch
//! and then checked: its kind, its chunk or buffer, its lengths, and its handle against the packet
//! in that chunk. A refused handle invalidates only that answer. Anything else that no correct
//! agent writes is an error, and the agent is detached. `carry` moves the bytes.

use super::broken::Broken;
use super::carry::SharedMemory;
use super::chunks::{Chunks, Given};
use super::layout::{
    AGENT_SLEEPS, Descriptor, FROM_AGENT_HEAD, FROM_AGENT_TAIL, HEADROOM, Kind, Layout,
    SWITCH_SLEEPS, TO_AGENT_HEAD, TO_AGENT_TAIL,
};
use super::looks::Looks;
use super::payloads::Payloads;
use super::ring::{Bell, Receiver, Sender};
use crate::port::Pool;
use axon_cache::Handle;
use axon_wire::{FrameBuf, Time};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

/// Bytes copied for an agent in one burst. Further answers follow in order in the next burst. Each
/// descriptor from an agent may copy a whole frame, so a limit on the number of descriptors would
/// not bound the work.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// Rings, chunks and buffers of one attached agent.
pub(super) struct Session {
    shared: SharedMemory,
    to_agent: Sender,
    from_agent: Receiver,
    agent_bell: Bell,
    switch_bell: Bell,
    chunks: Chunks,
    /// Number of answers read, modulo 2^32.
    read: u32,
    /// Number of the answer up to which answers must be read before due packets expire.
    expires_after: Option<u32>,
    looks: Looks,
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
        let (fd, shared) = SharedMemory::create(layout)?;
        let slots = layout.ring_slots;
        let (agent_bell, ear) = Bell::by_sockets(AGENT_SLEEPS)?;
        let session = Session {
            to_agent: Sender::new(layout.to_agent(), TO_AGENT_TAIL, TO_AGENT_HEAD, slots),
            from_agent: Receiver::new(layout.from_agent(), FROM_AGENT_TAIL, FROM_AGENT_HEAD, slots),
            agent_bell,
            switch_bell: Bell::new(SWITCH_SLEEPS)?,
            chunks: Chunks::new(layout.chunks, layout.payloads),
            read: 0,
            expires_after: None,
            looks: Looks::default(),
            left: None,
            shared,
        };
        Ok(([fd, ear], session))
    }

    /// Returns the descriptor that becomes readable when the agent wakes the switch.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.switch_bell.fd()
    }

    /// Returns the number of packets for which the agent has room now.
    pub(super) fn room(&self, payloads: &Payloads) -> usize {
        payloads.cache.room().min(self.chunks.room())
    }

    /// Publishes the queue lengths of the ports to the agent, in bytes, starting with port 0.
    pub(super) fn show_queues(&self, queued: impl Iterator<Item = Option<u64>>) {
        self.shared.show_queues(queued);
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
        if frame_bytes > self.shared.layout().buffer_bytes {
            return Ok((Some(frame), false));
        }
        let Some(chunk) = self.chunks.next_free() else { return Ok((Some(frame), false)) };
        let copied = self.shared.write_head(chunk, &frame);
        let (kept, back) = if self.shared.layout().stays {
            (frame, None)
        } else {
            (FrameBuf::from_vec(Vec::new(), 0), Some(frame))
        };
        let attached = match payloads.cache.receive(now, kept) {
            Ok(attached) => attached,
            Err(refused) => return Ok((Some(back.unwrap_or(refused.payload)), false)),
        };
        self.chunks.give(Given {
            handle: attached.handle,
            copied_bytes: copied as u32,
            frame_bytes: frame_bytes as u32,
            written: self.to_agent.written(),
        });
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
        if self.to_agent.push(self.shared.memory(), &descriptor)? {
            Ok(())
        } else {
            Err(Broken::RingFull)
        }
    }

    /// Publishes all written packets to the agent and wakes it.
    pub(super) fn publish(&self) {
        self.to_agent.publish(self.shared.memory());
        self.agent_bell.ring(self.shared.memory());
    }

    /// Returns whether all answers of the agent have been read.
    pub(super) fn is_silent(&self) -> bool {
        self.from_agent.is_empty(self.shared.memory())
    }

    /// Requests a wake-up and checks the ring once more. Returns whether the ring has data.
    pub(super) fn sleep(&self) -> bool {
        self.switch_bell.sleep(self.shared.memory());
        !self.is_silent()
    }

    /// Cancels the wake-up request.
    pub(super) fn awake(&self) {
        self.switch_bell.awake(self.shared.memory());
    }

    /// Marks the agent as gone. Only its pending answers are processed, at most as many as fit in
    /// its ring, and at most the bytes that fit in its memory. The agent gets nothing more.
    pub(super) fn end(&mut self) {
        let layout = self.shared.layout();
        self.left = Some((layout.ring_slots, layout.memory_bytes()));
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
        self.shared.begin_burst();
        let answers_max = answers_max.min(self.left.map_or(usize::MAX, |(answers, _)| answers));
        loop {
            taken.more =
                taken.count >= answers_max || self.shared.copied_bytes() >= COPIED_BYTES_MAX;
            if taken.more {
                break;
            }
            let Some(words) = self.from_agent.pop(self.shared.memory())? else { break };
            self.read = self.read.wrapping_add(1);
            let answer = Descriptor::from_words(words).map_err(Broken::UnknownKind)?;
            self.answer(now, answer, payloads, (pool, out))?;
            taken.count += 1;
        }
        if let Some((answers, bytes)) = &mut self.left {
            *answers -= taken.count;
            *bytes = bytes.saturating_sub(self.shared.copied_bytes());
            taken.more &= *answers > 0 && *bytes > 0;
        }
        if taken.count > 0 {
            self.from_agent.publish(self.shared.memory());
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
                self.shared.check_chunk(&answer)?;
                if let Some(given) = self.take_back(&answer, payloads) {
                    out.extend(self.shared.forward(&answer, given, payloads, pool));
                }
            }
            Kind::Drop => {
                self.shared.check_chunk(&answer)?;
                if self.take_back(&answer, payloads).is_some()
                    && let Ok(frame) = payloads.cache.release(answer.handle)
                {
                    payloads.counters.dropped += 1;
                    self.shared.recycle(pool, frame);
                }
            }
            Kind::Fetch => {
                // The offset of a fetch is an offset in the frame, not in the chunk.
                self.shared.check_chunk(&Descriptor { offset: 0, ..answer })?;
                self.shared.check_buffer(&answer)?;
                if !self.is_gone() {
                    let given = self.chunks.given(answer.chunk);
                    let bytes = self.shared.fetch(&answer, given, payloads);
                    self.push(Descriptor {
                        offset: answer.offset,
                        buffer: answer.buffer,
                        bytes,
                        ..Descriptor::new(Kind::Payload, answer.handle)
                    })?;
                }
            }
            Kind::Replace => {
                self.shared.check_chunk(&answer)?;
                self.shared.check_buffer(&answer)?;
                if self.take_back(&answer, payloads).is_some() {
                    out.extend(self.shared.replace(now, &answer, payloads, pool));
                }
                self.hand_back(answer.buffer)?;
            }
            Kind::Send => {
                self.shared.check_buffer(&answer)?;
                out.extend(self.shared.own(now, &answer, payloads, pool));
                self.hand_back(answer.buffer)?;
            }
            Kind::Packet | Kind::Payload | Kind::Returned => {
                return Err(Broken::NotAnAnswer(answer.kind));
            }
        }
        Ok(())
    }

    /// Takes back the chunk of an answered packet. If that packet was not given with that chunk,
    /// counts the answer as refused and returns `None`. The handle is then forged, belongs to
    /// another packet, or has already been answered.
    #[inline]
    fn take_back(&mut self, answer: &Descriptor, payloads: &mut Payloads) -> Option<Given> {
        let given = self.chunks.take_back(answer.chunk, answer.handle);
        if given.is_none() {
            payloads.refuse(answer.handle);
        }
        given
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
        self.to_agent.room(self.shared.memory())?;
        self.looks.look(now, self.to_agent.read(), hold_max);
        if payloads.cache.due(now).is_none() {
            self.expires_after = None;
            return Ok(());
        }
        let written = || self.shared.memory().word(FROM_AGENT_TAIL).load(Ordering::Acquire);
        let after = *self.expires_after.get_or_insert_with(written);
        let ahead = after.wrapping_sub(self.read);
        // If the agent has moved its cursor back, there is nothing to process.
        if (1..=self.shared.layout().ring_slots as u32).contains(&ahead) && !self.is_silent() {
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
            self.shared.recycle(pool, frame);
        }
        let is_stuck = self.chunks.next_free().is_none() && payloads.cache.in_use() == 0;
        if is_stalled || is_stuck { Err(Broken::Stalled) } else { Ok(()) }
    }

    /// Returns the time of the last sample at which the agent had not read this packet.
    fn unread_at(&self, handle: Handle) -> Option<Time> {
        self.looks.unread_at(self.chunks.of(handle)?.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_port::counters::AgentCounters;
    use crate::agent_port::layout::DESCRIPTOR_BYTES;
    use crate::agent_port::memory::Memory;
    use axon_cache::{CacheConfig, PayloadCache};
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
        let handle = session.chunks.given(0).handle;
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
