//! An agent that violates the protocol.

use super::support::Switch;
use axon_linux::agent_port::handshake::{self, Shared};
use axon_linux::agent_port::layout::{
    DESCRIPTOR_BYTES, Descriptor, FROM_AGENT_TAIL, HEADER_WORDS_END, Layout, TO_AGENT_HEAD,
    TO_AGENT_TAIL,
};
use axon_linux::agent_port::memory::Memory;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;

/// A rogue agent, which writes arbitrary values to the memory.
pub struct Rogue {
    pub memory: Memory,
    pub layout: Layout,
    pub stream: UnixStream,
    /// Event file that wakes it.
    pub ear: OwnedFd,
    tail: u32,
}

impl Rogue {
    pub fn connect(path: &Path) -> Rogue {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(&handshake::hello("rogue")).unwrap();
        Rogue::answered(stream)
    }

    /// Returns an agent that has sent its hello.
    pub fn answered(stream: UnixStream) -> Rogue {
        let Shared { memory, memory_bytes, agent_bell: ear, .. } =
            handshake::parse_answer(&stream).unwrap();
        let memory = Memory::open(memory.as_fd(), memory_bytes).unwrap();
        let mut header = [0; HEADER_WORDS_END];
        memory.read(0, &mut header);
        let layout = Layout::parse(&header, memory_bytes).unwrap();
        Rogue { memory, layout, stream, ear, tail: 0 }
    }

    pub fn attach(switch: &mut Switch) -> Rogue {
        let path = switch.setup.socket.clone();
        switch.attach(move || Rogue::connect(&path))
    }

    /// Writes four words as the next answer, and publishes them.
    pub fn words(&mut self, words: [u64; 4]) {
        let slot = self.tail as usize % self.layout.ring_slots;
        let at = self.layout.from_agent() + slot * DESCRIPTOR_BYTES;
        for (index, word) in words.into_iter().enumerate() {
            self.memory.long(at + 8 * index).store(word, Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(1);
        self.memory.word(FROM_AGENT_TAIL).store(self.tail, Ordering::Release);
    }

    pub fn answer(&mut self, answer: Descriptor) {
        self.words(answer.words());
    }

    /// Returns the descriptor that the switch has written in slot `slot`.
    pub fn given(&self, slot: usize) -> Descriptor {
        let at = self.layout.to_agent() + slot * DESCRIPTOR_BYTES;
        let words = [0, 1, 2, 3].map(|i| self.memory.long(at + 8 * i).load(Ordering::Relaxed));
        Descriptor::from_words(words).unwrap()
    }

    pub fn read_all(&self) {
        let tail = self.memory.word(TO_AGENT_TAIL).load(Ordering::Acquire);
        self.memory.word(TO_AGENT_HEAD).store(tail, Ordering::Release);
    }
}
