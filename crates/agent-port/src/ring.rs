//! The two ends of a ring of descriptors in shared memory, and the bell that wakes the other side.
//!
//! **Rings.** See [`layout`](crate::layout). Each end keeps its own cursor in its own memory and
//! only publishes it; what the other side's cursor says is checked every time it is read. So the
//! other side can hide descriptors or repeat old ones, but can make nobody read or write outside a
//! ring.
//!
//! **Bell.** A side that is about to sleep sets its flag, then looks at its ring once more; a side
//! that has published looks at the flag afterwards. Between the two steps of each stands a
//! sequentially consistent fence. So at least one sees what the other did (Dekker's argument): the
//! sleeper finds the descriptor, or the other one finds the flag and rings. Who is awake costs
//! nobody a system call.
//!
//! The agent rings by an eventfd, which the switch waits for by edges and never reads. The switch
//! rings by one end of a pair of stream sockets, of which the agent has the other. A write to an
//! eventfd waits if whoever has the same open file says so. One to a pipe waits, in spite of
//! `O_NONBLOCK`, for the lock of the pipe, which a reader holds in `splice(2)` for as long as what
//! it splices to is full. So by either an agent could stop its switch for ever. The sender of a
//! stream socket takes no lock with which a reader sleeps, and the end of the switch takes nothing
//! from the agent: what an agent sends to a switch may hold files whose closing takes long.

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

/// A cursor of the other side that cannot be: how many descriptors would be in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCursor(pub u32);

/// The producing end.
pub struct Sender {
    ring: usize,
    tail_at: usize,
    head_at: usize,
    slots: u32,
    tail: u32,
    /// How far the other side had read when that was last looked at.
    seen: u32,
}

impl Sender {
    /// The end of an empty ring of `slots` at `ring`, whose cursors are at `tail_at` and `head_at`.
    pub fn new(ring: usize, tail_at: usize, head_at: usize, slots: usize) -> Sender {
        Sender { ring, tail_at, head_at, slots: slots as u32, tail: 0, seen: 0 }
    }

    /// How many more descriptors the ring takes now.
    ///
    /// # Errors
    /// The other side's cursor is ahead of this one, or more than a ring behind.
    #[inline]
    pub fn room(&mut self, memory: &Memory) -> Result<u32, BadCursor> {
        self.seen = memory.word(self.head_at).load(Ordering::Acquire);
        let waiting = self.tail.wrapping_sub(self.seen);
        self.slots.checked_sub(waiting).ok_or(BadCursor(waiting))
    }

    /// Writes a descriptor, which the other side sees after [`publish`](Sender::publish). Returns
    /// whether there was room.
    ///
    /// # Errors
    /// As [`room`](Sender::room).
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

    /// Shows the other side all that was written.
    #[inline]
    pub fn publish(&self, memory: &Memory) {
        memory.word(self.tail_at).store(self.tail, Ordering::Release);
    }

    /// How many descriptors were written since the start, modulo 2^32.
    pub fn written(&self) -> u32 {
        self.tail
    }

    /// How many of them the other side had read when [`room`](Sender::room) last looked.
    pub fn read(&self) -> u32 {
        self.seen
    }
}

/// The consuming end.
pub struct Receiver {
    ring: usize,
    tail_at: usize,
    head_at: usize,
    slots: u32,
    head: u32,
    /// How far the other side had written when that was last looked at.
    seen: u32,
}

impl Receiver {
    /// As [`Sender::new`].
    pub fn new(ring: usize, tail_at: usize, head_at: usize, slots: usize) -> Receiver {
        Receiver { ring, tail_at, head_at, slots: slots as u32, head: 0, seen: 0 }
    }

    /// Whether there is nothing to read; not if [`pop`](Receiver::pop) would refuse the cursor.
    #[inline]
    pub fn is_empty(&self, memory: &Memory) -> bool {
        memory.word(self.tail_at).load(Ordering::Acquire) == self.head
    }

    /// Reads the next descriptor once, into four words of this side's own.
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

    /// Gives the slots of all that was read back.
    #[inline]
    pub fn publish(&self, memory: &Memory) {
        memory.word(self.head_at).store(self.head, Ordering::Release);
    }
}

/// One way of waking: a flag in the memory, and a file that can be waited for.
pub struct Bell {
    file: OwnedFd,
    kind: BellKind,
    flag: usize,
}

/// What the file of a bell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BellKind {
    /// An eventfd, which both sides share.
    Event,
    /// One end of a pair of stream sockets.
    Socket,
}

impl Bell {
    /// A new eventfd for the flag at `flag`.
    ///
    /// # Errors
    /// What the kernel answers: EMFILE.
    pub fn new(flag: usize) -> io::Result<Bell> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let file = EventFd::from_flags(flags)?.into();
        Ok(Bell { file, kind: BellKind::Event, flag })
    }

    /// One that nobody can keep from returning when it rings; and what the other side gets.
    ///
    /// # Errors
    /// What the kernel answers: EMFILE.
    pub fn by_sockets(flag: usize) -> io::Result<(Bell, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (own, other) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags)?;
        // From now on nothing can be sent to this end.
        shutdown(own.as_raw_fd(), Shutdown::Read)?;
        Ok((Bell { file: own, kind: BellKind::Socket, flag }, other))
    }

    /// The same with what the other side has made.
    pub fn of(file: OwnedFd, kind: BellKind, flag: usize) -> Bell {
        Bell { file, kind, flag }
    }

    /// Wakes the other side if it sleeps; to be called after publishing.
    #[inline]
    pub fn ring(&self, memory: &Memory) {
        fence(Ordering::SeqCst);
        let flag = memory.word(self.flag);
        if flag.load(Ordering::Relaxed) != 0 {
            flag.store(0, Ordering::Relaxed);
            let one = 1u64.to_ne_bytes();
            // A counter at its end, or a full socket, is readable, too.
            let _ = match self.kind {
                BellKind::Event => unistd::write(&self.file, &one),
                BellKind::Socket => {
                    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                    send(self.file.as_raw_fd(), &one, flags)
                }
            };
        }
    }

    /// Asks to be woken. The caller must look at its ring afterwards, and then sleep or
    /// [`awake`](Bell::awake).
    #[inline]
    pub fn sleep(&self, memory: &Memory) {
        memory.word(self.flag).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Asks no more to be woken.
    #[inline]
    pub fn awake(&self, memory: &Memory) {
        memory.word(self.flag).store(0, Ordering::Relaxed);
    }

    /// Takes what was rung, so that it can be waited for again.
    pub fn clear(&self) {
        while self.take().is_ok_and(|count| count > 0) {}
    }

    /// How often it was rung since the last time; by sockets 1 for each time. 0 at their end.
    fn take(&self) -> nix::Result<u64> {
        let mut count = [0; 8];
        match self.kind {
            BellKind::Event => unistd::read(&self.file, &mut count),
            BellKind::Socket => recv(self.file.as_raw_fd(), &mut count, MsgFlags::MSG_DONTWAIT),
        }
        .map(|_| u64::from_ne_bytes(count))
    }

    /// What to wait for.
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
        // All that an agent has is the other open file.
        fcntl(&ear, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        let ear = Bell::of(ear, BellKind::Socket, crate::layout::AGENT_SLEEPS);
        let ring = |times| {
            for _ in 0..times {
                ear.sleep(&agent);
                bell.ring(&switch);
            }
        };
        // More than a socket holds.
        ring(10_000);
        assert_eq!(ear.take(), Ok(1));
        ear.clear();
        assert!(ear.take().is_err(), "nothing is left");
        ring(1);
        assert_eq!(ear.take(), Ok(1), "what was full rings again");
        drop(ear);
        bell.sleep(&agent);
        // Nobody is there to be woken, which ends no process (SIGPIPE).
        bell.ring(&switch);
    }

    #[test]
    fn an_agent_can_send_its_switch_nothing_by_what_it_is_woken_with() {
        let (_bell, ear) = Bell::by_sockets(crate::layout::AGENT_SLEEPS).unwrap();
        let sent = send(ear.as_raw_fd(), b"x", MsgFlags::MSG_NOSIGNAL);
        assert_eq!(sent, Err(nix::errno::Errno::EPIPE));
    }
}
