//! Ends of a ring of descriptors in shared memory, and the bell that wakes the other side.
//!
//! **Rings.** See [`layout`](crate::layout). Each end keeps its own cursor in its own memory and
//! only publishes it. It checks the other side's cursor on every read. Therefore, the other side
//! can hide descriptors or repeat old ones, but it cannot cause an access outside a ring.
//!
//! **Bell.** A side that is about to sleep sets its flag and then checks its ring once more. A side
//! that has published a descriptor then checks the flag. On each side, a sequentially consistent
//! fence separates the two steps. Therefore, at least one side sees the other's step (Dekker's
//! argument): the sleeper finds the descriptor, or the publisher finds the flag and rings. A side
//! that is awake costs no system call.
//!
//! The agent rings with an eventfd, which the switch polls edge-triggered and never reads. The
//! switch rings with one end of a pair of stream sockets, and the agent has the other end. A write
//! to an eventfd blocks if another owner of the same open file description clears `O_NONBLOCK`. A
//! write to a pipe blocks, in spite of `O_NONBLOCK`, on the lock of the pipe, which a reader holds
//! in `splice(2)` while the target is full. With either of these, an agent could block its switch
//! forever. A sender on a stream socket takes no lock that a reader holds while it sleeps. The
//! switch's end receives nothing from the agent, because messages could carry files that take long
//! to close.

use crate::layout::{DESCRIPTOR_BYTES, Descriptor};
use crate::memory::Memory;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, recv, send, shutdown, socketpair,
};
use nix::unistd;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

/// Invalid cursor from the other side, given as the number of descriptors that it implies for the
/// ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCursor(pub u32);

/// Producing end of a ring.
pub struct Sender {
    ring: usize,
    tail_at: usize,
    head_at: usize,
    slots: u32,
    tail: u32,
    /// Read position of the other side when it was last loaded.
    seen: u32,
}

impl Sender {
    /// Creates the end of an empty ring of `slots` descriptors at offset `ring`, whose cursors are
    /// at `tail_at` and `head_at`.
    pub fn new(ring: usize, tail_at: usize, head_at: usize, slots: usize) -> Sender {
        Sender { ring, tail_at, head_at, slots: slots as u32, tail: 0, seen: 0 }
    }

    /// Returns the number of free slots in the ring.
    ///
    /// # Errors
    /// The other side's cursor is ahead of this one, or more than a ring behind.
    #[inline]
    pub fn room(&mut self, memory: &Memory) -> Result<u32, BadCursor> {
        self.seen = memory.word(self.head_at).load(Ordering::Acquire);
        let waiting = self.tail.wrapping_sub(self.seen);
        self.slots.checked_sub(waiting).ok_or(BadCursor(waiting))
    }

    /// Writes a descriptor, which becomes visible to the other side with
    /// [`publish`](Sender::publish). Returns whether there was room.
    ///
    /// # Errors
    /// See [`room`](Sender::room).
    #[inline]
    pub fn push(&mut self, memory: &Memory, descriptor: &Descriptor) -> Result<bool, BadCursor> {
        if self.tail.wrapping_sub(self.seen) >= self.slots && self.room(memory)? == 0 {
            return Ok(false);
        }
        let at = self.ring + (self.tail & (self.slots - 1)) as usize * DESCRIPTOR_BYTES;
        for (index, word) in descriptor.words().into_iter().enumerate() {
            memory.long(at + 8 * index).store(word, Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(1);
        Ok(true)
    }

    /// Publishes all descriptors written so far.
    #[inline]
    pub fn publish(&self, memory: &Memory) {
        memory.word(self.tail_at).store(self.tail, Ordering::Release);
    }

    /// Returns the number of descriptors written since the start, modulo 2^32.
    pub fn written(&self) -> u32 {
        self.tail
    }

    /// Returns the number of descriptors that the other side had read at the last call to
    /// [`room`](Sender::room).
    pub fn read(&self) -> u32 {
        self.seen
    }
}

/// Consuming end of a ring.
pub struct Receiver {
    ring: usize,
    tail_at: usize,
    head_at: usize,
    slots: u32,
    head: u32,
    /// Write position of the other side when it was last loaded.
    seen: u32,
}

impl Receiver {
    /// Creates the consuming end of an empty ring; see [`Sender::new`].
    pub fn new(ring: usize, tail_at: usize, head_at: usize, slots: usize) -> Receiver {
        Receiver { ring, tail_at, head_at, slots: slots as u32, head: 0, seen: 0 }
    }

    /// Returns whether there is nothing to read. Returns `false` if [`pop`](Receiver::pop) would
    /// refuse the cursor.
    #[inline]
    pub fn is_empty(&self, memory: &Memory) -> bool {
        memory.word(self.tail_at).load(Ordering::Acquire) == self.head
    }

    /// Reads the next descriptor once, into four words of its own memory.
    ///
    /// # Errors
    /// The other side's cursor is behind this one, or more than a ring ahead.
    #[inline]
    pub fn pop(&mut self, memory: &Memory) -> Result<Option<[u64; 4]>, BadCursor> {
        if self.seen == self.head {
            let tail = memory.word(self.tail_at).load(Ordering::Acquire);
            let waiting = tail.wrapping_sub(self.head);
            if waiting > self.slots {
                return Err(BadCursor(waiting));
            }
            self.seen = tail;
            if waiting == 0 {
                return Ok(None);
            }
        }
        let at = self.ring + (self.head & (self.slots - 1)) as usize * DESCRIPTOR_BYTES;
        let word = |index: usize| memory.long(at + 8 * index).load(Ordering::Relaxed);
        self.head = self.head.wrapping_add(1);
        Ok(Some([word(0), word(1), word(2), word(3)]))
    }

    /// Returns the slots of all descriptors read so far.
    #[inline]
    pub fn publish(&self, memory: &Memory) {
        memory.word(self.head_at).store(self.head, Ordering::Release);
    }
}

/// Wake-up channel: a flag in the memory, and a file to wait for.
pub struct Bell {
    file: OwnedFd,
    kind: BellKind,
    flag: usize,
}

/// Type of a bell's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BellKind {
    /// Eventfd shared by both sides.
    Event,
    /// One end of a pair of stream sockets.
    Socket,
}

impl Bell {
    /// Creates an eventfd for the flag at `flag`.
    ///
    /// # Errors
    /// The kernel's error, such as EMFILE.
    pub fn new(flag: usize) -> io::Result<Bell> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let file = EventFd::from_flags(flags)?.into();
        Ok(Bell { file, kind: BellKind::Event, flag })
    }

    /// Creates a bell that never blocks when it rings. Also returns the other side's end.
    ///
    /// # Errors
    /// The kernel's error, such as EMFILE.
    pub fn by_sockets(flag: usize) -> io::Result<(Bell, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (own, other) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags)?;
        // After this, nothing can be sent to this end.
        shutdown(own.as_raw_fd(), Shutdown::Read)?;
        Ok((Bell { file: own, kind: BellKind::Socket, flag }, other))
    }

    /// Wraps a file that the other side has created.
    pub(crate) fn of(file: OwnedFd, kind: BellKind, flag: usize) -> Bell {
        Bell { file, kind, flag }
    }

    /// Wakes the other side if it sleeps. Call this after publishing.
    #[inline]
    pub fn ring(&self, memory: &Memory) {
        fence(Ordering::SeqCst);
        let flag = memory.word(self.flag);
        if flag.load(Ordering::Relaxed) != 0 {
            flag.store(0, Ordering::Relaxed);
            let one = 1u64.to_ne_bytes();
            // A counter at its maximum, or a full socket, is also readable.
            let _ = match self.kind {
                BellKind::Event => unistd::write(&self.file, &one),
                BellKind::Socket => {
                    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                    send(self.file.as_raw_fd(), &one, flags)
                }
            };
        }
    }

    /// Sets the sleep flag. The caller must check its ring afterwards, and then sleep or call
    /// [`awake`](Bell::awake).
    #[inline]
    pub fn sleep(&self, memory: &Memory) {
        memory.word(self.flag).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Clears the sleep flag.
    #[inline]
    pub fn awake(&self, memory: &Memory) {
        memory.word(self.flag).store(0, Ordering::Relaxed);
    }

    /// Consumes pending rings, so that the file can be waited for again.
    pub(crate) fn clear(&self) {
        while self.take().is_ok_and(|count| count > 0) {}
    }

    /// Returns the number of rings since the last call. With sockets, each byte counts as one.
    /// Returns 0 if they are closed.
    fn take(&self) -> nix::Result<u64> {
        let mut count = [0; 8];
        match self.kind {
            BellKind::Event => unistd::read(&self.file, &mut count),
            BellKind::Socket => recv(self.file.as_raw_fd(), &mut count, MsgFlags::MSG_DONTWAIT),
        }
        .map(|_| u64::from_ne_bytes(count))
    }

    /// Returns the file to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Kind, Layout, TO_AGENT_HEAD, TO_AGENT_TAIL};
    use axon_cache::Handle;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};

    fn ends() -> (Memory, Memory, Sender, Receiver) {
        let layout = Layout::new((1, 1), 0, 64, true);
        let (fd, switch) = Memory::create(layout.memory_bytes()).unwrap();
        let agent = Memory::open(fd.as_fd(), layout.memory_bytes()).unwrap();
        let (tail, head) = (TO_AGENT_TAIL, TO_AGENT_HEAD);
        let sender = Sender::new(layout.to_agent(), tail, head, layout.ring_slots);
        let receiver = Receiver::new(layout.to_agent(), tail, head, layout.ring_slots);
        (switch, agent, sender, receiver)
    }

    fn numbered(number: u32) -> Descriptor {
        Descriptor { chunk: number, ..Descriptor::new(Kind::Packet, Handle::NONE) }
    }

    #[test]
    fn descriptors_arrive_in_order_round_and_round_and_a_full_ring_takes_none() {
        let (switch, agent, mut sender, mut receiver) = ends();
        let slots = sender.slots;
        let (mut written, mut read) = (0, 0);
        for round in 0..50 {
            for _ in 0..=(round % slots) {
                written += u32::from(sender.push(&switch, &numbered(written)).unwrap());
            }
            assert_eq!(receiver.pop(&agent), Ok(None), "not published");
            sender.publish(&switch);
            while let Some(words) = receiver.pop(&agent).unwrap() {
                assert_eq!(Descriptor::from_words(words), Ok(numbered(read)));
                read += 1;
            }
            receiver.publish(&agent);
            assert_eq!((written, sender.room(&switch)), (read, Ok(slots)));
        }
        let pushed = (0..10).filter(|_| sender.push(&switch, &numbered(0)).unwrap()).count();
        assert_eq!(pushed, slots as usize);
    }

    #[test]
    fn cursors_that_cannot_be_are_refused_at_both_ends() {
        let (switch, agent, mut sender, mut receiver) = ends();
        for bad in [sender.slots + 1, 0x8000_0000, u32::MAX] {
            agent.word(TO_AGENT_TAIL).store(bad, Ordering::Release);
            assert_eq!(receiver.pop(&switch), Err(BadCursor(bad)));
        }
        for bad in [1, sender.slots + 1, 0x8000_0000] {
            agent.word(TO_AGENT_HEAD).store(bad, Ordering::Release);
            assert_eq!(sender.room(&switch), Err(BadCursor(0u32.wrapping_sub(bad))));
        }
    }

    #[test]
    fn a_bell_is_rung_for_a_sleeper_only() {
        let (switch, agent, ..) = ends();
        let bell = Bell::new(crate::layout::AGENT_SLEEPS).unwrap();
        bell.ring(&switch);
        assert!(bell.take().is_err(), "nobody sleeps");
        bell.sleep(&agent);
        bell.ring(&switch);
        bell.ring(&switch);
        assert_eq!(bell.take(), Ok(1));
        bell.sleep(&agent);
        bell.awake(&agent);
        bell.ring(&switch);
        assert!(bell.take().is_err());
    }

    #[test]
    fn an_agent_that_does_not_listen_cannot_make_the_switch_wait_when_it_rings() {
        let (switch, agent, ..) = ends();
        let (bell, ear) = Bell::by_sockets(crate::layout::AGENT_SLEEPS).unwrap();
        // The agent has only this other open file description.
        fcntl(&ear, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        let ear = Bell::of(ear, BellKind::Socket, crate::layout::AGENT_SLEEPS);
        let ring = |times| {
            for _ in 0..times {
                ear.sleep(&agent);
                bell.ring(&switch);
            }
        };
        // This is more than a socket holds.
        ring(10_000);
        assert_eq!(ear.take(), Ok(1));
        ear.clear();
        assert!(ear.take().is_err(), "nothing is left");
        ring(1);
        assert_eq!(ear.take(), Ok(1), "what was full rings again");
        drop(ear);
        bell.sleep(&agent);
        // Ringing without a peer does not end the process (SIGPIPE).
        bell.ring(&switch);
    }

    #[test]
    fn an_agent_can_send_its_switch_nothing_by_what_it_is_woken_with() {
        let (_bell, ear) = Bell::by_sockets(crate::layout::AGENT_SLEEPS).unwrap();
        let sent = send(ear.as_raw_fd(), b"x", MsgFlags::MSG_NOSIGNAL);
        assert_eq!(sent, Err(nix::errno::Errno::EPIPE));
    }
}
