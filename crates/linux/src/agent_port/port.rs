//! Switch's side of an agent port: a [`Port`] with an agent at its far end.
//!
//! The port listens on a Unix socket. At most one agent is attached at a time, and the port has
//! carrier while it is. One epoll descriptor covers all events for the run loop: the socket, the
//! agent's hang-up, the agent's bell (an eventfd), and a timer.
//!
//! Flow control frames apply to the port itself. While a priority is paused, the port reads nothing
//! from the agent's ring, which then fills up.

use super::broken::Broken;
use super::counters::{AgentCounters, AgentStatus};
use super::expiry::ExpiryTimer;
use super::handshake::{self, HELLO_BYTES};
use super::layout::Layout;
use super::listener::{Listener, peek, token};
use super::payloads::Payloads;
use super::session::{Session, Taken};
use super::setup::AgentPortSetup;
use crate::clock::Clock;
use crate::notes::{AgentEvent as Event, NoteLog};
use crate::pauses;
use crate::port::{Pool, Port, PortCounters};
use crate::seed::seed;
use anyhow::Context;
use axon_agents::node::WhenFull;
use axon_cache::PayloadCache;
use axon_wire::mac_control;
use axon_wire::priority::PrioritySet;
use axon_wire::{FrameBuf, Span, Time};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Number of answers from the agent that are processed in one burst.
const BURST: usize = 256;

/// Longest time for which an agent that answers continuously can defer all other events of the
/// port.
const LOOK: Span = Span::from_millis(1);

/// Attached agent.
struct Attached {
    session: Session,
    stream: UnixStream,
    name: String,
    pid: i32,
}

/// Switch port at which an agent can attach.
pub struct AgentPort {
    name: String,
    setup: AgentPortSetup,
    layout: Layout,
    clock: Clock,
    epoll: Epoll,
    listener: Listener,
    expiry: ExpiryTimer,
    agent: Option<Attached>,
    payloads: Payloads,
    /// True if the port has requested a wake-up from the agent.
    sleeps: bool,
    paused: PrioritySet,
    counters: PortCounters,
    /// True if an agent was detached since the last receive. The node must see the detachment
    /// first.
    was_detached: bool,
    /// Time of the next check of all events other than the ring.
    look_at: Time,
    notes: NoteLog,
    /// Scratch vector, kept for its allocation.
    rest: Vec<FrameBuf>,
}

impl AgentPort {
    /// Listens for the agent of port `name`. The name appears in log lines.
    ///
    /// # Errors
    /// A setting is out of range, or the socket cannot be opened.
    pub fn open(name: &str, setup: &AgentPortSetup) -> anyhow::Result<AgentPort> {
        setup.check().with_context(|| format!("agent port {name}"))?;
        let cache = setup.cache(seed()?);
        let cache = PayloadCache::new(cache).with_context(|| format!("agent port {name}"))?;
        let layout = setup.layout();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let listener = Listener::open(setup, &epoll)?;
        let expiry = ExpiryTimer::open(&epoll)?;
        Ok(AgentPort {
            name: name.to_owned(),
            setup: setup.clone(),
            layout,
            clock: Clock::start(),
            epoll,
            listener,
            expiry,
            agent: None,
            payloads: Payloads { cache, counters: AgentCounters::default() },
            sleeps: false,
            paused: PrioritySet::EMPTY,
            counters: PortCounters::default(),
            was_detached: false,
            look_at: Time::ZERO,
            notes: NoteLog::default(),
            rest: Vec::new(),
        })
    }

    /// Returns the layout of the memory shared with the agent.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Handles a few pending events other than those of the ring. Attaches an agent only if
    /// `may_greet`.
    fn events(&mut self, may_greet: bool, pool: &mut Pool) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 8];
        let count = match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let has = |wanted| events[..count].iter().any(|event| event.data() == wanted);
        self.notes.round(self.clock.now(), &self.name);
        if has(token::TIMER) {
            self.expire(pool);
        }
        if let Some(event) = events[..count].iter().find(|event| event.data() == token::AGENT) {
            self.hang_up(event.events(), pool);
        }
        match &self.agent {
            // The next agent waits until the previous one has been detached.
            Some(agent) if has(token::HELLO) && agent.session.is_gone() => {
                self.listener.defer(&self.epoll);
            }
            _ if has(token::HELLO) && may_greet && !self.was_detached => self.greet(),
            _ => {}
        }
        if has(token::LISTENER) {
            self.listener.accept(self.clock.now(), &self.epoll);
        }
        if has(token::BACKOFF) {
            self.listener.resume(&self.epoll);
        }
        Ok(())
    }

    /// Attaches the agent that has sent a hello, or refuses it.
    fn greet(&mut self) {
        let Some((stream, greeted)) = self.listener.greet(&self.epoll) else { return };
        let greeted = greeted.and_then(|greeted| match &self.agent {
            Some(Attached { name, pid, .. }) => {
                Err(format!("agent {name:?} (process {pid}) is attached to this port already"))
            }
            None => Ok(greeted),
        });
        match greeted {
            Ok((name, pid)) => self.attach(stream, name, pid),
            Err(why) => {
                self.payloads.counters.refused += 1;
                if self.says(Event::Refused) {
                    tracing::warn!(port = self.name, "agent refused: {why}");
                }
                handshake::refuse(&stream, &why);
                self.listener.close(stream, &self.epoll);
            }
        }
    }

    /// Returns whether a log line may be written. The limit keeps agents from flooding the log.
    fn says(&mut self, event: Event) -> bool {
        self.notes.agent(self.clock.now(), event)
    }

    fn attach(&mut self, stream: UnixStream, name: String, pid: i32) {
        let says = self.says(Event::Attached);
        let port = &self.name;
        match self.share(&stream) {
            Ok(session) => {
                if says {
                    tracing::info!(port, agent = name, pid, "agent attached");
                }
                self.payloads.counters.attached += 1;
                self.agent = Some(Attached { session, stream, name, pid });
                self.paused = PrioritySet::EMPTY;
            }
            Err(error) => {
                if says {
                    tracing::warn!(port, agent = name, pid, "agent cannot be attached: {error}");
                }
                self.listener.close(stream, &self.epoll);
            }
        }
    }

    /// Creates the memory shared with an agent and sends it the descriptors.
    fn share(&self, stream: &UnixStream) -> io::Result<Session> {
        let ([memory, ear], session) = Session::create(self.layout)?;
        let bell = session.bell();
        // The connection is not registered if its event arrived together with the end of another
        // agent.
        let _ = self.epoll.delete(stream);
        // Edge-triggered, because data after the hello stays unread; see `closer`.
        let gone = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.epoll.add(stream, EpollEvent::new(gone, token::AGENT))?;
        // Edge-triggered, so that it need not be read.
        let edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        self.epoll.add(bell, EpollEvent::new(edges, token::BELL))?;
        let memory_bytes = self.layout.memory_bytes();
        handshake::attach(stream, memory_bytes, [memory.as_fd(), ear.as_fd(), bell])?;
        Ok(session)
    }

    /// Handles the end of the agent's connection. Answers written before the end are processed
    /// first, in the following rounds.
    fn hang_up(&mut self, events: EpollFlags, pool: &mut Pool) {
        let Some(agent) = &mut self.agent else { return };
        let hung_up = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        let why = match peek(&agent.stream, &mut [0; HELLO_BYTES + 1]) {
            Ok(count) if count > HELLO_BYTES => Broken::Sends,
            _ if events.intersects(hung_up) => Broken::Gone,
            _ => return,
        };
        if why == Broken::Gone && !agent.session.is_silent() {
            return agent.session.end();
        }
        self.detach(why, pool);
    }

    /// Ends the attachment. Packets that the agent holds are lost, and their buffers are freed.
    fn detach(&mut self, why: Broken, pool: &mut Pool) {
        let Some(agent) = self.agent.take() else { return };
        self.was_detached = true;
        self.listener.resume_deferred(&self.epoll);
        let stays = self.layout.stays;
        let lost = self.payloads.cache.reset(|frame| {
            if stays {
                pool.recycle(frame)
            }
        }) as u64;
        self.payloads.counters.lost += lost;
        self.listener.close(agent.stream, &self.epoll);
        let _ = self.epoll.delete(agent.session.bell());
        let is_broken = why != Broken::Gone;
        if is_broken {
            self.payloads.counters.broken += 1;
            self.listener.broken(self.clock.now(), &self.epoll);
        }
        let says = self.says(if is_broken { Event::Broken } else { Event::Detached });
        let (port, agent, pid) = (&self.name, agent.name, agent.pid);
        match is_broken {
            true if says => {
                tracing::warn!(port, agent, pid, lost, "ALARM: agent detached: it {why}")
            }
            false if says => tracing::info!(port, agent, pid, lost, "agent detached: it {why}"),
            _ => {}
        }
    }

    /// Takes back packets that the agent has held for too long.
    fn expire(&mut self, pool: &mut Pool) {
        self.expiry.fired();
        let now = self.clock.now();
        // While the port is paused, its agent waits for the switch.
        if let Some(agent) = &mut self.agent
            && self.paused.is_empty()
            && !agent.session.is_gone()
            && let Err(broken) = agent.session.expire(now, &mut self.payloads, pool)
        {
            self.detach(broken, pool);
        }
        self.expiry.arm(&self.clock, &self.payloads.cache);
    }

    /// Passes one frame to the agent. Returns the frame if the port does not keep it.
    fn give(&mut self, now: Time, frame: FrameBuf) -> Result<Option<FrameBuf>, Broken> {
        if mac_control::is_mac_control(frame.bytes()) {
            self.paused = pauses::after(self.paused, frame.bytes()).unwrap_or(self.paused);
            return Ok(Some(frame));
        }
        let Some(agent) = self.agent.as_mut().filter(|agent| !agent.session.is_gone()) else {
            self.counters.tx_refused += 1;
            return Ok(Some(frame));
        };
        let bytes = frame.bytes().len() as u64;
        let (back, taken) = agent.session.give(now, frame, &mut self.payloads)?;
        if taken {
            self.counters.tx_frames += 1;
            self.counters.tx_bytes += bytes;
        } else if bytes <= self.layout.buffer_bytes as u64 {
            self.payloads.counters.full_drops += 1;
        } else {
            self.counters.tx_refused += 1;
        }
        Ok(back)
    }

    /// Returns the status of the port in addition to its [counters](Port::counters).
    pub fn agent_status(&self) -> AgentStatus {
        AgentStatus {
            agent: self.agent.as_ref().map(|agent| (agent.name.clone(), agent.pid)),
            counters: AgentCounters { waits: self.listener.waits(), ..self.payloads.counters },
            cache: *self.payloads.cache.counters(),
        }
    }
}

impl Port for AgentPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    fn has_frame(&self) -> Option<bool> {
        let speaks = self.agent.as_ref().is_some_and(|agent| !agent.session.is_silent());
        Some(speaks && self.paused.is_empty())
    }

    fn receive(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) -> io::Result<bool> {
        let (before, now) = (out.len(), self.clock.now());
        let (mut taken, mut broken) = (Taken::default(), None);
        let may_greet = !std::mem::take(&mut self.was_detached);
        if let Some(agent) = &mut self.agent
            && self.paused.is_empty()
        {
            match agent.session.answers(now, BURST, &mut self.payloads, (pool, out)) {
                Ok(answers) => {
                    taken = answers;
                    broken = (agent.session.is_gone() && !taken.more).then_some(Broken::Gone);
                }
                Err(error) => broken = Some(error),
            }
        }
        if let Some(broken) = broken {
            self.detach(broken, pool);
        }
        // Reading a ring that has data needs no system call.
        if taken.count == 0 || self.sleeps || now >= self.look_at {
            self.look_at = now + LOOK;
            if let Some(agent) = self.agent.as_ref().filter(|_| self.sleeps) {
                agent.session.awake();
            }
            self.sleeps = false;
            self.events(may_greet, pool)?;
        }
        let frames = &out[before..];
        self.counters.rx_frames += frames.len() as u64;
        self.counters.rx_bytes +=
            frames.iter().map(|frame| frame.bytes().len() as u64).sum::<u64>();
        let is_ending = self.agent.as_ref().is_some_and(|agent| agent.session.is_gone());
        Ok(taken.more || is_ending && self.paused.is_empty())
    }

    fn transmit(&mut self, frames: &mut Vec<FrameBuf>) -> io::Result<()> {
        let now = self.clock.now();
        let mut rest = std::mem::take(&mut self.rest);
        let mut broken = None;
        for frame in frames.drain(..) {
            match self.give(now, frame) {
                Ok(back) => rest.extend(back),
                Err(error) => broken = Some(error),
            }
        }
        std::mem::swap(&mut rest, frames);
        self.rest = rest;
        if let Some(broken) = broken {
            // The memory of held packets goes back to the system, because the pool is not
            // accessible here.
            let mut pool = Pool::default();
            self.detach(broken, &mut pool);
        }
        if let Some(agent) = &self.agent {
            agent.session.publish();
        }
        self.expiry.arm(&self.clock, &self.payloads.cache);
        Ok(())
    }

    fn show_queues(&mut self, queued: &mut dyn Iterator<Item = Option<u64>>) {
        if let Some(agent) = &self.agent {
            agent.session.show_queues(queued);
        }
    }

    fn room(&self) -> usize {
        match (&self.agent, self.setup.when_full) {
            (Some(agent), WhenFull::Wait) if agent.session.is_gone() => 0,
            (Some(agent), WhenFull::Wait) => agent.session.room(&self.payloads),
            _ => usize::MAX,
        }
    }

    fn carrier(&self) -> Option<bool> {
        Some(self.agent.is_some())
    }

    fn before_wait(&mut self) -> bool {
        let Some(agent) = &self.agent else { return false };
        self.sleeps = true;
        agent.session.sleep() && self.paused.is_empty()
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }

    fn agent_status(&self) -> Option<AgentStatus> {
        Some(AgentPort::agent_status(self))
    }
}

impl std::ops::Drop for AgentPort {
    fn drop(&mut self) {
        let agent = self.agent.take();
        agent.into_iter().for_each(|agent| self.listener.close(agent.stream, &self.epoll));
        let _ = std::fs::remove_file(&self.setup.socket);
    }
}
