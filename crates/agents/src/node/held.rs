//! Packets that an agent holds, and operations on them. This is the [`Outbox`] of the simulator.

use crate::agent::{Full, Outbox};
use crate::node::config::{AgentPortConfig, PayloadMode};
use crate::node::head::Head;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use axon_cache::{ConfigError, Handle, PayloadCache};
use axon_node::Drop;
use axon_wire::{FrameBuf, PortNo, Time};

/// Fetched payload that has not been delivered to the agent yet.
#[derive(Debug)]
pub(super) struct Fetched {
    pub handle: Handle,
    pub offset: usize,
    pub bytes: Vec<u8>,
}

/// Frame in transmission. Its payload stays in the cache until the wire is free, so that a slow
/// wire fills the cache but not the memory of the machine.
#[derive(Debug)]
struct Leaving {
    handle: Handle,
    /// Head as modified by the agent. `None` for a frame that the agent itself has made.
    head: Option<Head>,
}

/// Packets held by an agent.
#[derive(Debug)]
pub(super) struct Held {
    config: AgentPortConfig,
    cache: PayloadCache<FrameBuf>,
    heads: BTreeMap<Handle, Head>,
    leaving: VecDeque<Leaving>,
    pub fetched: VecDeque<Fetched>,
    /// Dropped frames.
    pub ended: Vec<(Drop, FrameBuf)>,
    pub now: Time,
    /// Number of frames sent that the agent itself has made.
    pub own: u64,
    /// Number of refused handles, of packets that the agent has answered before or was never given.
    pub refused: u64,
    /// Queue lengths of the switch by port, as last shown to the agent.
    pub queues: Vec<u64>,
}

impl Held {
    pub(crate) fn new(config: AgentPortConfig) -> Result<Held, ConfigError> {
        let mut cache = config.cache;
        if config.payload == PayloadMode::Copied {
            cache.head_bytes = usize::MAX;
        }
        Ok(Held {
            config,
            cache: PayloadCache::new(cache)?,
            heads: BTreeMap::new(),
            leaving: VecDeque::new(),
            fetched: VecDeque::new(),
            ended: Vec::new(),
            now: Time::ZERO,
            own: 0,
            refused: 0,
            queues: Vec::new(),
        })
    }

    pub fn cache(&self) -> &PayloadCache<FrameBuf> {
        &self.cache
    }

    /// Returns the number of frames held by the agent or in transmission.
    pub(crate) fn frames(&self) -> u64 {
        (self.heads.len() + self.leaving.len()) as u64
    }

    /// Returns the lengths of the head and the frame of a held packet, in bytes.
    pub(crate) fn sizes(&self, handle: Handle) -> Option<(usize, usize)> {
        self.heads.get(&handle).map(|head| (head.bytes().len(), head.frame_bytes()))
    }

    /// Stores the payload of a frame for the agent. Returns the frame if there is no room.
    pub(crate) fn receive(&mut self, frame: FrameBuf) -> Result<Handle, FrameBuf> {
        let head = Head::of(frame.bytes(), self.config.cache.head_bytes, self.config.payload);
        match self.cache.receive(self.now, frame) {
            Ok(attached) => {
                self.heads.insert(attached.handle, head);
                Ok(attached.handle)
            }
            Err(refused) => Err(refused.payload),
        }
    }

    /// Removes the next frame for the wire.
    pub(crate) fn next(&mut self) -> Option<FrameBuf> {
        let Leaving { handle, head } = self.leaving.pop_front()?;
        let copied = head.as_ref().map_or(0, |head| head.all().len());
        let frame = self.cache.send(handle, copied).ok()?;
        Some(match head {
            Some(head) => head.put_on(frame),
            None => frame,
        })
    }

    /// Reclaims packets that the agent has held for too long.
    pub(crate) fn expire(&mut self) {
        while let Some((handle, frame)) = self.cache.expire(self.now) {
            // The packet is either with the agent or in transmission.
            if self.heads.remove(&handle).is_none() {
                self.leaving.retain(|leaving| leaving.handle != handle);
            }
            self.ended.push((Drop::NoProgram, frame));
        }
    }
}

impl Outbox for Held {
    fn head(&mut self, handle: Handle) -> Option<&mut [u8]> {
        self.heads.get_mut(&handle).map(Head::bytes_mut)
    }

    fn payload(&mut self, handle: Handle) -> Option<&mut [u8]> {
        self.heads.get_mut(&handle).map(Head::payload_mut)
    }

    fn resize_head(&mut self, handle: Handle, bytes: usize) -> bool {
        self.heads.get_mut(&handle).is_some_and(|head| head.resize(bytes))
    }

    fn forward(&mut self, handle: Handle) {
        match self.heads.remove(&handle) {
            Some(head) => self.leaving.push_back(Leaving { handle, head: Some(head) }),
            None => self.refused += 1,
        }
    }

    fn drop(&mut self, handle: Handle) {
        if self.heads.remove(&handle).is_none() {
            self.refused += 1;
            return;
        }
        if let Ok(frame) = self.cache.release(handle) {
            self.ended.push((Drop::Consumed, frame));
        }
    }

    fn fetch(&mut self, handle: Handle, offset: usize, bytes: usize) {
        let Some(head) = self.heads.get(&handle) else {
            self.refused += 1;
            return;
        };
        let end = offset.saturating_add(bytes).min(head.frame_bytes());
        if let Ok(part) = self.cache.fetch(handle, offset.min(end)..end) {
            self.fetched.push_back(Fetched { handle, offset, bytes: part.to_vec() });
        }
    }

    fn replace(&mut self, handle: Handle, payload: &[u8]) -> Result<(), Full> {
        let Some(head) = self.heads.get(&handle) else {
            self.refused += 1;
            return Ok(());
        };
        if head.bytes().len() + payload.len() > self.config.frame_bytes_max {
            return Err(Full);
        }
        let mut frame = FrameBuf::new(head.bytes());
        let _ = frame.push_back(payload);
        let (attached, _) = self.cache.replace(self.now, handle, frame).map_err(|_| Full)?;
        self.heads.remove(&handle);
        self.leaving.push_back(Leaving { handle: attached.handle, head: None });
        Ok(())
    }

    fn queue_bytes(&mut self, port: PortNo) -> Option<u64> {
        self.queues.get(port.index()).copied()
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Full> {
        if frame.len() > self.config.frame_bytes_max {
            return Err(Full);
        }
        let attached = self.cache.bring(self.now, FrameBuf::new(frame)).map_err(|_| Full)?;
        self.own += 1;
        self.leaving.push_back(Leaving { handle: attached.handle, head: None });
        Ok(())
    }
}
