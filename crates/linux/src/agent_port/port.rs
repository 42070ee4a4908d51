//! The switch's side of an agent port: a [`Port`] whose far end is an agent.
//!
//! The port listens at a Unix socket. One agent is attached at a time, and the port has carrier for
//! as long. Everything that the run loop may wait for (the socket, the agent's hang-up, its bell, a
//! timer) is behind one epoll descriptor.
//!
//! Flow control frames are for the port itself: while a priority is paused, the port takes nothing
//! from the agent's ring, which then fills up.

use super::broken::Broken;
use super::counters::{AgentCounters, AgentStatus};
use super::handshake::{self, HELLO_BYTES};
use super::layout::Layout;
use super::session::{Payloads, Session};
use super::setup::AgentPortSetup;
use crate::clock::Clock;
use crate::pauses;
use crate::port::{Pool, Port, PortCounters};
use crate::seed::seed;
use crate::socket;
use anyhow::Context;
use axon_agents::node::WhenFull;
use axon_cache::PayloadCache;
use axon_wire::mac_control;
use axon_wire::priority::PrioritySet;
use axon_wire::{Frame, FrameBuf, Time};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// Answers of the agent that are carried out in one go.
const BURST: usize = 256;

/// The shortest wait for an expiry, in nanoseconds.
const TIMER_NANOS_MIN: u64 = 1_000_000;

/// What an event of the epoll descriptor is of.
mod token {
    pub(super) const LISTENER: u64 = 0;
    pub(super) const HELLO: u64 = 1;
    pub(super) const AGENT: u64 = 2;
    pub(super) const BELL: u64 = 3;
    pub(super) const TIMER: u64 = 4;
}

/// An agent that is attached.
struct Attached {
    session: Session,
    stream: UnixStream,
    name: String,
    pid: i32,
}

/// A port of a switch to which an agent can be attached.
pub struct AgentPort {
    name: String,
    setup: AgentPortSetup,
    layout: Layout,
    clock: Clock,
    epoll: Epoll,
    listener: UnixListener,
    timer: TimerFd,
    timer_is_set: bool,
    /// Connected, and has not said hello.
    hello: Option<UnixStream>,
    agent: Option<Attached>,
    payloads: Payloads,
    /// It has asked to be woken.
    sleeps: bool,
    paused: PrioritySet,
    counters: PortCounters,
    /// Kept for its memory.
    rest: Vec<FrameBuf>,
}

impl AgentPort {
    /// Listens for the agent of port `name`, which is what its log lines say.
    ///
    /// # Errors
    /// A setting out of its range, or a socket that cannot be listened at.
    pub fn open(name: &str, setup: &AgentPortSetup) -> anyhow::Result<AgentPort> {
        setup.check().with_context(|| format!("agent port {name}"))?;
        let cache = setup.cache(seed()?);
        let cache = PayloadCache::new(cache).with_context(|| format!("agent port {name}"))?;
        let layout = setup.layout();
        let listener = socket::listen(&setup.socket)?;
        std::fs::set_permissions(&setup.socket, std::fs::Permissions::from_mode(0o600))?;
        if let Some(uid) = setup.uid {
            std::os::unix::fs::chown(&setup.socket, Some(uid), None)?;
        }
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, token::LISTENER))?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, token::TIMER))?;
        Ok(AgentPort {
            name: name.to_owned(),
            setup: setup.clone(),
            layout,
            clock: Clock::start(),
            epoll,
            listener,
            timer,
            timer_is_set: false,
            hello: None,
            agent: None,
            payloads: Payloads { cache, counters: AgentCounters::default() },
            sleeps: false,
            paused: PrioritySet::EMPTY,
            counters: PortCounters::default(),
            rest: Vec::new(),
        })
    }

    /// The sizes of the memory that an agent gets.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Looks at everything that is not a ring: a few events at most.
    fn events(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 8];
        let count = match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let has = |wanted| events[..count].iter().any(|event| event.data() == wanted);
        if has(token::TIMER) {
            self.expire(pool, out);
        }
        // One that goes may have answered before.
        if has(token::AGENT) {
            self.hang_up(pool, out);
        }
        if has(token::HELLO) {
            self.greet();
        }
        if has(token::LISTENER) {
            self.accept();
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, token::HELLO);
            let watched =
                stream.set_nonblocking(true).is_ok() && self.epoll.add(&stream, event).is_ok();
            // A newer one takes the place of one that says nothing.
            self.hello = watched.then_some(stream);
        }
    }

    /// Attaches the agent that says hello, or refuses it.
    fn greet(&mut self) {
        let Some(mut stream) = self.hello.take() else { return };
        let mut bytes = [0; HELLO_BYTES];
        let count = match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.hello = Some(stream);
                return;
            }
            Err(_) => return,
        };
        let greeted = handshake::parse_hello(&bytes[..count]).and_then(|name| {
            let pid = self.allowed(&stream)?;
            match &self.agent {
                Some(Attached { name, pid, .. }) => {
                    Err(format!("agent {name:?} (process {pid}) is attached to this port already"))
                }
                None => Ok((name, pid)),
            }
        });
        match greeted {
            Ok((name, pid)) => self.attach(stream, name, pid),
            Err(why) => {
                self.payloads.counters.refused += 1;
                tracing::warn!(port = self.name, "agent refused: {why}");
                handshake::refuse(&stream, &why);
            }
        }
    }

    /// The process of an agent whose user may be attached.
    fn allowed(&self, stream: &UnixStream) -> Result<i32, String> {
        let peer = getsockopt(stream, sockopt::PeerCredentials)
            .map_err(|error| format!("its user is not known: {error}"))?;
        let own = nix::unistd::geteuid().as_raw();
        let allowed = [Some(0), Some(own), self.setup.uid].contains(&Some(peer.uid()));
        if allowed {
            return Ok(peer.pid());
        }
        let (uid, expected) = (peer.uid(), self.setup.uid.unwrap_or(own));
        Err(format!("user {uid} may not attach agents here; expected user {expected} or root"))
    }

    fn attach(&mut self, stream: UnixStream, name: String, pid: i32) {
        let port = &self.name;
        match self.share(&stream) {
            Ok(session) => {
                tracing::info!(port, agent = name, pid, "agent attached");
                self.payloads.counters.attached += 1;
                self.agent = Some(Attached { session, stream, name, pid });
                self.paused = PrioritySet::EMPTY;
            }
            Err(error) => {
                tracing::warn!(port, agent = name, pid, "agent cannot be attached: {error}");
            }
        }
    }

    /// Makes the memory that is shared with an agent, and passes it on.
    fn share(&self, stream: &UnixStream) -> io::Result<Session> {
        let (memory, session) = Session::create(self.layout)?;
        let bells = [session.agent_ear(), session.switch_bell.fd()];
        self.epoll.delete(stream)?;
        let gone = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
        self.epoll.add(stream, EpollEvent::new(gone, token::AGENT))?;
        // By edges, so that nobody has to read it.
        let edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        self.epoll.add(bells[1], EpollEvent::new(edges, token::BELL))?;
        let memory_bytes = self.layout.memory_bytes();
        handshake::attach(stream, memory_bytes, [memory.as_fd(), bells[0], bells[1]])?;
        Ok(session)
    }

    /// The agent's socket has something: it has gone, after it may have answered.
    fn hang_up(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) {
        let Some(agent) = &mut self.agent else { return };
        let why = match agent.stream.read(&mut [0]) {
            Ok(0) => Broken::Gone,
            Ok(_) => Broken::Sends,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => Broken::Gone,
        };
        if why == Broken::Gone {
            // As many as it can have written at all.
            let (now, slots) = (self.clock.now(), self.layout.ring_slots);
            let taken = agent.session.answers(now, slots, &mut self.payloads, (pool, out));
            if let Err(broken) = taken {
                return self.detach(broken, pool);
            }
        }
        self.detach(why, pool);
    }

    /// Ends the attachment: the agent's packets are lost and their buffers come back.
    fn detach(&mut self, why: Broken, pool: &mut Pool) {
        let Some(agent) = self.agent.take() else { return };
        let stays = self.layout.stays;
        let lost = self.payloads.cache.reset(|frame| {
            if stays {
                pool.recycle(frame)
            }
        }) as u64;
        self.payloads.counters.lost += lost;
        let _ = self.epoll.delete(&agent.stream);
        let _ = self.epoll.delete(agent.session.switch_bell.fd());
        let (port, agent, pid) = (&self.name, agent.name, agent.pid);
        if why == Broken::Gone {
            tracing::info!(port, agent, pid, lost, "agent detached: it {why}");
        } else {
            self.payloads.counters.broken += 1;
            tracing::warn!(port, agent, pid, lost, "ALARM: agent detached: it {why}");
        }
    }

    /// Takes back what the agent has held for too long.
    fn expire(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) {
        let _ = self.timer.wait();
        self.timer_is_set = false;
        let (now, slots) = (self.clock.now(), self.layout.ring_slots);
        // While the port is paused its agent waits for the switch.
        if let Some(agent) = &mut self.agent
            && self.paused.is_empty()
        {
            let answers = agent.session.answers(now, slots, &mut self.payloads, (pool, out));
            let expired = answers.and_then(|_| agent.session.expire(now, &mut self.payloads, pool));
            if let Err(broken) = expired {
                self.detach(broken, pool);
            }
        }
        self.set_timer();
    }

    /// Wakes this port when the oldest packet has been held for too long.
    fn set_timer(&mut self) {
        if self.timer_is_set {
            return;
        }
        let Some(expiry) = self.payloads.cache.next_expiry() else { return };
        let wait = expiry.since(self.clock.now()).as_nanos().max(TIMER_NANOS_MIN);
        let wait = Duration::from_nanos(wait);
        let wait = Expiration::OneShot(TimeSpec::from_duration(wait));
        self.timer_is_set = self.timer.set(wait, TimerSetTimeFlags::empty()).is_ok();
    }

    /// Gives the agent one frame; hands back what it does not keep.
    fn give(&mut self, now: Time, frame: FrameBuf) -> Result<Option<FrameBuf>, Broken> {
        if mac_control::is_mac_control(frame.bytes()) {
            self.paused = pauses::after(self.paused, frame.bytes()).unwrap_or(self.paused);
            return Ok(Some(frame));
        }
        let Some(agent) = &mut self.agent else {
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

    /// What the port reports beside its [counters](Port::counters).
    pub fn agent_status(&self) -> AgentStatus {
        AgentStatus {
            agent: self.agent.as_ref().map(|agent| (agent.name.clone(), agent.pid)),
            counters: self.payloads.counters,
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
        let before = out.len();
        let (mut count, mut broken) = (0, None);
        if let Some(agent) = &mut self.agent
            && self.paused.is_empty()
        {
            let now = self.clock.now();
            match agent.session.answers(now, BURST, &mut self.payloads, (pool, out)) {
                Ok(answers) => count = answers,
                Err(error) => broken = Some(error),
            }
        }
        if let Some(broken) = broken {
            self.detach(broken, pool);
        }
        // A ring that has something needs no system call to be read.
        if count == 0 || self.sleeps {
            if let Some(agent) = self.agent.as_ref().filter(|_| self.sleeps) {
                agent.session.awake();
            }
            self.sleeps = false;
            self.events(pool, out)?;
        }
        let frames = &out[before..];
        self.counters.rx_frames += frames.len() as u64;
        self.counters.rx_bytes +=
            frames.iter().map(|frame| frame.bytes().len() as u64).sum::<u64>();
        Ok(count == BURST)
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
            // Its frames go where those of the caller go.
            let mut pool = Pool::default();
            self.detach(broken, &mut pool);
        }
        if let Some(agent) = &self.agent {
            agent.session.publish();
        }
        self.set_timer();
        Ok(())
    }

    fn show_queues(&mut self, queued: &mut dyn Iterator<Item = Option<u64>>) {
        if let Some(agent) = &self.agent {
            agent.session.show_queues(queued);
        }
    }

    fn room(&self) -> usize {
        match (&self.agent, self.setup.when_full) {
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
        let _ = std::fs::remove_file(&self.setup.socket);
    }
}
