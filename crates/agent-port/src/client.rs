//! Agent side of an agent port.
//!
//! Heads and the agent's own buffers are slices of the shared memory. Only bytes that the agent
//! itself provides ([`replace`](Outbox::replace), [`send`](Outbox::send)) are copied.

use crate::handshake::{self, Shared};
use crate::layout::{
    AGENT_SLEEPS, Descriptor, FROM_AGENT_HEAD, FROM_AGENT_TAIL, HEADER_WORDS_END, HEADROOM, Kind,
    Layout, QUEUES, QUEUES_MAX, SWITCH_SLEEPS, TO_AGENT_HEAD, TO_AGENT_TAIL,
};
use crate::memory::Memory;
use crate::ring::{BadCursor, Bell, BellKind, Receiver, Sender};
use axon_agents::node::HEAD_ROOM_BYTES;
use axon_agents::{Full, Outbox, Packet};
use axon_cache::Handle;
use axon_wire::PortNo;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time limit for the switch's answer. A port that limits its agents ignores them for at most a
/// second.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Packet that the agent holds.
#[derive(Clone, Copy)]
struct Held {
    handle: Handle,
    chunk: u32,
    /// Offset of the head in the chunk, in bytes.
    offset: u32,
    head_bytes: u32,
    /// Number of payload bytes after the head in the chunk.
    payload_bytes: u32,
    frame_bytes: u32,
}

const NONE: Held = Held {
    handle: Handle::NONE,
    chunk: 0,
    offset: 0,
    head_bytes: 0,
    payload_bytes: 0,
    frame_bytes: 0,
};

/// Event from the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Packet that the agent holds from now on.
    Packet(Packet),
    /// Part of a payload that the agent has fetched; see [`Client::fetched`].
    Payload(Fetched),
}

/// Part of a payload in the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Packet to which the payload belongs.
    pub handle: Handle,
    /// Offset of the part in the frame as received, in bytes.
    pub offset: usize,
    at: usize,
    bytes: usize,
    /// Buffer that is to be freed afterwards.
    buffer: Option<u32>,
}

/// Attached agent.
pub struct Client {
    memory: Memory,
    memory_fd: OwnedFd,
    layout: Layout,
    from_switch: Receiver,
    to_switch: Sender,
    agent_bell: Bell,
    switch_bell: Bell,
    stream: UnixStream,
    /// Held packets, by the number of the payload buffer, which is the low half of a handle.
    held: Vec<Held>,
    free_buffers: Vec<u32>,
    /// Fetches that wait for a buffer.
    to_fetch: VecDeque<Descriptor>,
    /// Fetched parts of payloads that are already in shared memory.
    here: VecDeque<Fetched>,
    /// Number of answers for packets that are not held, since the ring was last seen empty.
    unheld: usize,
    /// True if the switch has broken the protocol.
    broken: bool,
}

impl Client {
    /// Attaches an agent at the socket of an agent port. `name` has at most 48 bytes.
    ///
    /// # Errors
    /// The error of `connect(2)`, or the reason why the switch refuses the agent. `TimedOut` if the
    /// switch has not answered within two seconds.
    pub fn connect(socket: &Path, name: &str) -> io::Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(&handshake::hello(name))?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let late = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock => {
                let why = format!("the switch has not answered within {ANSWER_MAX:?}");
                io::Error::new(ErrorKind::TimedOut, why)
            }
            _ => error,
        };
        let Shared { memory_bytes, memory: memory_fd, agent_bell, switch_bell } =
            handshake::parse_answer(&stream).map_err(late)?;
        let memory = Memory::open(memory_fd.as_fd(), memory_bytes)?;
        let invalid = |why: String| io::Error::new(ErrorKind::InvalidData, why);
        let mut header = [0; HEADER_WORDS_END];
        if memory_bytes < crate::layout::HEADER_BYTES {
            return Err(invalid(format!("a memory of {memory_bytes} bytes")));
        }
        memory.read(0, &mut header);
        let layout = Layout::parse(&header, memory_bytes).map_err(invalid)?;
        let slots = layout.ring_slots;
        let (to, from) = (layout.to_agent(), layout.from_agent());
        Ok(Client {
            from_switch: Receiver::new(to, TO_AGENT_TAIL, TO_AGENT_HEAD, slots),
            to_switch: Sender::new(from, FROM_AGENT_TAIL, FROM_AGENT_HEAD, slots),
            agent_bell: Bell::of(agent_bell, BellKind::Socket, AGENT_SLEEPS),
            switch_bell: Bell::of(switch_bell, BellKind::Event, SWITCH_SLEEPS),
            stream,
            held: vec![NONE; layout.payloads],
            free_buffers: (0..layout.buffers as u32).rev().collect(),
            to_fetch: VecDeque::new(),
            here: VecDeque::new(),
            unheld: 0,
            broken: false,
            memory,
            memory_fd,
            layout,
        })
    }

    /// Returns the sizes of the shared memory.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the shared memory, for an agent that maps it itself; see
    /// [`head_place`](Client::head_place).
    pub fn memory_fd(&self) -> BorrowedFd<'_> {
        self.memory_fd.as_fd()
    }

    /// Returns the range of a held packet's head in the shared memory, or `None` if the packet is
    /// not held.
    pub fn head_place(&self, handle: Handle) -> Option<Range<usize>> {
        let held = self.held(handle)?;
        let at = self.layout.chunk_at(held.chunk as usize) + held.offset as usize;
        Some(at..at + held.head_bytes as usize)
    }

    /// Returns the range of the bytes after the head, which are those of [`Outbox::payload`].
    pub fn payload_place(&self, handle: Handle) -> Option<Range<usize>> {
        let head = self.head_place(handle)?;
        let bytes = self.held(handle)?.payload_bytes as usize;
        Some(head.end..head.end + bytes)
    }

    /// Returns the length of the longest head, in bytes, that [`Outbox::resize_head`] can make for
    /// a held packet.
    pub fn head_bytes_max(&self, handle: Handle) -> Option<usize> {
        let held = self.held(handle)?;
        let end = held.offset as usize + held.head_bytes as usize;
        Some(end.saturating_sub(HEADROOM - HEAD_ROOM_BYTES))
    }

    /// Returns the length of a held packet's whole frame as received, in bytes.
    pub fn frame_bytes(&self, handle: Handle) -> Option<usize> {
        Some(self.held(handle)?.frame_bytes as usize)
    }

    /// Returns whether the switch has written a descriptor or has broken the protocol.
    pub fn has_given(&self) -> bool {
        !self.here.is_empty() || !self.from_switch.is_empty(&self.memory)
    }

    /// Returns the next packet or payload, if there is one.
    ///
    /// # Errors
    /// The switch has broken the protocol. This attachment is then no longer usable.
    pub fn next_given(&mut self) -> io::Result<Option<Given>> {
        if let Some(fetched) = self.here.pop_front() {
            return Ok(Some(Given::Payload(fetched)));
        }
        loop {
            let words = self.from_switch.pop(&self.memory).map_err(bad_cursor)?;
            let Some(words) = words.filter(|_| !self.broken) else {
                return if self.broken { Err(protocol("a full ring")) } else { Ok(None) };
            };
            // Publishes the read position, so that the switch sees progress during a long batch.
            self.from_switch.publish(&self.memory);
            let Ok(descriptor) = Descriptor::from_words(words) else {
                return Err(protocol("an unknown descriptor"));
            };
            let Descriptor { handle, offset, buffer, bytes, .. } = descriptor;
            match descriptor.kind {
                Kind::Packet => return self.hold(&descriptor).map(|p| Some(Given::Packet(p))),
                Kind::Payload
                    if (buffer as usize) < self.layout.buffers
                        && bytes as usize <= self.layout.buffer_bytes =>
                {
                    if self.held(handle).is_none() {
                        // The agent has answered the packet after it requested the payload.
                        self.free_buffer(buffer);
                        continue;
                    }
                    let at = self.layout.buffer_at(buffer as usize);
                    let (offset, bytes) = (offset as usize, bytes as usize);
                    let buffer = Some(buffer);
                    return Ok(Some(Given::Payload(Fetched { handle, offset, at, bytes, buffer })));
                }
                Kind::Returned if (buffer as usize) < self.layout.buffers => {
                    self.free_buffer(buffer);
                }
                _ => return Err(protocol("a descriptor that is not for an agent")),
            }
        }
    }

    /// Returns the bytes of part of a payload, and releases its buffer.
    pub fn fetched(&mut self, fetched: Fetched) -> &mut [u8] {
        if let Some(buffer) = fetched.buffer {
            self.free_buffers.push(buffer);
        }
        self.memory.slice(fetched.at, fetched.bytes)
    }

    /// Records a packet. If the switch has reclaimed the previous packet in the same payload
    /// buffer, because it was held too long, the chunk of that packet is returned.
    fn hold(&mut self, descriptor: &Descriptor) -> io::Result<Packet> {
        let Descriptor { handle, chunk, offset, head_bytes: copied, bytes, .. } = *descriptor;
        let index = handle.number();
        let Some(place) = self.held.get_mut(index).filter(|_| {
            let Layout { chunks, chunk_bytes, buffer_bytes, stays, .. } = self.layout;
            (chunk as usize) < chunks
                && u64::from(offset) + u64::from(copied) <= chunk_bytes as u64
                && bytes as usize <= buffer_bytes
                && if stays { copied <= bytes } else { copied == bytes }
        }) else {
            return Err(protocol("a packet without a place"));
        };
        let head_bytes = copied.min(self.layout.head_bytes as u32);
        let payload_bytes = copied - head_bytes;
        let held = Held { handle, chunk, offset, head_bytes, payload_bytes, frame_bytes: bytes };
        let old = std::mem::replace(place, held);
        if old.handle != Handle::NONE {
            self.forget_fetches(old.handle);
            self.push(Descriptor { chunk: old.chunk, ..Descriptor::new(Kind::Drop, old.handle) });
        }
        Ok(Packet { handle, head_bytes: head_bytes as usize, frame_bytes: bytes as usize })
    }

    fn held(&self, handle: Handle) -> Option<Held> {
        self.held.get(handle.number()).copied().filter(|held| held.handle == handle)
    }

    /// Removes a packet from the held ones.
    fn take(&mut self, handle: Handle) -> Option<Held> {
        let place = self.held.get_mut(handle.number()).filter(|held| held.handle == handle)?;
        let taken = std::mem::replace(place, NONE);
        self.forget_fetches(handle);
        Some(taken)
    }

    /// Cancels the fetches for a packet whose chunk is returned.
    fn forget_fetches(&mut self, handle: Handle) {
        self.here.retain(|fetched| fetched.handle != handle);
        self.to_fetch.retain(|fetch| fetch.handle != handle);
    }

    /// Reuses a buffer for a fetch that waits for one, or frees it.
    fn free_buffer(&mut self, buffer: u32) {
        match self.to_fetch.pop_front() {
            Some(fetch) => self.push(Descriptor { buffer, ..fetch }),
            None => self.free_buffers.push(buffer),
        }
    }

    /// Sends the switch an answer for a packet that is not held, so that the switch counts it. Such
    /// answers use only room that is to spare, and any excess is left out.
    fn push_unheld(&mut self, handle: Handle) {
        let Layout { ring_slots, chunks, buffers, .. } = self.layout;
        match self.to_switch.room(&self.memory) {
            Ok(room) if room as usize == ring_slots => self.unheld = 0,
            Ok(_) => {}
            Err(_) => self.broken = true,
        }
        if self.unheld < ring_slots - (chunks + buffers) {
            self.unheld += 1;
            self.push(Descriptor::new(Kind::Drop, handle));
        }
    }

    fn push(&mut self, descriptor: Descriptor) {
        // There is always room for one answer to every descriptor from the switch.
        self.broken |= !matches!(self.to_switch.push(&self.memory, &descriptor), Ok(true));
    }

    /// Returns the answer for a packet with its current head, or `None` if the packet is not held.
    fn answer(&mut self, kind: Kind, handle: Handle) -> Option<Descriptor> {
        let Some(held) = self.take(handle) else {
            self.push_unheld(handle);
            return None;
        };
        Some(Descriptor {
            chunk: held.chunk,
            offset: held.offset,
            head_bytes: held.head_bytes + held.payload_bytes,
            ..Descriptor::new(kind, handle)
        })
    }

    /// Publishes all answers written so far.
    pub fn flush(&mut self) {
        while let Some(buffer) = self.free_buffers.pop_if(|_| !self.to_fetch.is_empty()) {
            self.free_buffer(buffer);
        }
        self.to_switch.publish(&self.memory);
        self.switch_bell.ring(&self.memory);
    }

    /// Waits for a descriptor from the switch, for at most `timeout`.
    ///
    /// # Errors
    /// `ConnectionAborted` if the switch has ended the attachment.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        self.agent_bell.sleep(&self.memory);
        if !self.from_switch.is_empty(&self.memory) {
            self.agent_bell.awake(&self.memory);
            return Ok(());
        }
        let mut fds = [
            PollFd::new(self.agent_bell.fd(), PollFlags::POLLIN),
            PollFd::new(self.stream.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let woken = fds.map(|fd| fd.revents().is_some_and(|events| !events.is_empty()));
        self.agent_bell.awake(&self.memory);
        if woken[0] {
            self.agent_bell.clear();
        }
        if woken[1] && self.from_switch.is_empty(&self.memory) {
            let why = "the switch has ended the attachment";
            return Err(io::Error::new(ErrorKind::ConnectionAborted, why));
        }
        Ok(())
    }
}

fn protocol(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the switch has broken the protocol: {what}"))
}

fn bad_cursor(cursor: BadCursor) -> io::Error {
    protocol(&format!("{} descriptors in a ring", cursor.0))
}

impl Outbox for Client {
    fn head(&mut self, handle: Handle) -> Option<&mut [u8]> {
        let place = self.head_place(handle)?;
        Some(self.memory.slice(place.start, place.len()))
    }

    fn payload(&mut self, handle: Handle) -> Option<&mut [u8]> {
        let place = self.payload_place(handle)?;
        Some(self.memory.slice(place.start, place.len()))
    }

    fn resize_head(&mut self, handle: Handle, bytes: usize) -> bool {
        let Some(held) = self.held(handle) else { return false };
        if self.head_bytes_max(handle).is_none_or(|most| bytes > most) {
            return false;
        }
        let offset = held.offset as usize + held.head_bytes as usize - bytes;
        if let Some(place) = self.held.get_mut(handle.number()) {
            (place.offset, place.head_bytes) = (offset as u32, bytes as u32);
        }
        true
    }

    fn forward(&mut self, handle: Handle) {
        if let Some(answer) = self.answer(Kind::Forward, handle) {
            self.push(answer);
        }
    }

    fn drop(&mut self, handle: Handle) {
        if let Some(answer) = self.answer(Kind::Drop, handle) {
            self.push(answer);
        }
    }

    fn fetch(&mut self, handle: Handle, offset: usize, bytes: usize) {
        let Some(held) = self.held(handle) else { return self.push_unheld(handle) };
        let end = offset.saturating_add(bytes).min(held.frame_bytes as usize);
        let offset = offset.min(end);
        let bytes = end - offset;
        if !self.layout.stays {
            let at = self.layout.chunk_at(held.chunk as usize) + HEADROOM + offset;
            self.here.push_back(Fetched { handle, offset, at, bytes, buffer: None });
            return;
        }
        let fetch = Descriptor {
            chunk: held.chunk,
            offset: offset as u32,
            bytes: bytes as u32,
            ..Descriptor::new(Kind::Fetch, handle)
        };
        match self.free_buffers.pop() {
            Some(buffer) => self.push(Descriptor { buffer, ..fetch }),
            None => self.to_fetch.push_back(fetch),
        }
    }

    fn replace(&mut self, handle: Handle, payload: &[u8]) -> Result<(), Full> {
        let Some(held) = self.held(handle) else {
            self.push_unheld(handle);
            return Ok(());
        };
        if held.head_bytes as usize + payload.len() > self.layout.buffer_bytes {
            return Err(Full);
        }
        let buffer = self.free_buffers.pop().ok_or(Full)?;
        let at = self.layout.buffer_at(buffer as usize);
        self.memory.write(at, payload);
        if let Some(answer) = self.answer(Kind::Replace, handle) {
            let (head_bytes, bytes) = (held.head_bytes, payload.len() as u32);
            self.push(Descriptor { head_bytes, buffer, bytes, ..answer });
        }
        Ok(())
    }

    fn queue_bytes(&mut self, port: PortNo) -> Option<u64> {
        let at = (port.index() < QUEUES_MAX).then_some(QUEUES + 4 * port.index())?;
        self.memory.word(at).load(Ordering::Relaxed).checked_sub(1).map(u64::from)
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Full> {
        if frame.is_empty() || frame.len() > self.layout.buffer_bytes {
            return Err(Full);
        }
        let buffer = self.free_buffers.pop().ok_or(Full)?;
        self.memory.write(self.layout.buffer_at(buffer as usize), frame);
        let bytes = frame.len() as u32;
        self.push(Descriptor { buffer, bytes, ..Descriptor::new(Kind::Send, Handle::NONE) });
        Ok(())
    }
}
