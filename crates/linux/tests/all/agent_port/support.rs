//! A port, its agent, and time to attach it.

use axon_linux::agent_port::client::{Client, Given};
use axon_linux::agent_port::{AgentCounters, AgentPort, AgentPortSetup};
use axon_linux::port::{Pool, Port};
use axon_wire::{FrameBuf, Span};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Limit of a wait for an event that should occur at once.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Returns a path for a socket that no other test uses.
pub fn socket() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("axon-agent-{}-{number}.sock", std::process::id()))
}

/// A port of the switch.
pub struct Switch {
    pub port: AgentPort,
    pub pool: Pool,
    pub setup: AgentPortSetup,
}

impl Switch {
    /// A port with these settings, at a socket of its own, where the next agent is attached at
    /// once.
    pub fn with(change: impl FnOnce(&mut AgentPortSetup)) -> Switch {
        Switch::named("s1-p1", change)
    }

    /// A port like [`Switch::with`], with another name in the log.
    pub fn named(name: &str, change: impl FnOnce(&mut AgentPortSetup)) -> Switch {
        let mut setup = AgentPortSetup::at(&socket());
        setup.backoff_max = Span::ZERO;
        change(&mut setup);
        let port = AgentPort::open(name, &setup).expect("a port");
        Switch { port, pool: Pool::default(), setup }
    }

    /// Runs the port until `done`; returns the frames that left.
    pub fn until(&mut self, mut done: impl FnMut(&mut AgentPort) -> bool) -> Vec<FrameBuf> {
        let (began, mut frames) = (Instant::now(), Vec::new());
        while !done(&mut self.port) {
            assert!(began.elapsed() < LIMIT, "{:?}", self.port.agent_status());
            self.port.receive(&mut self.pool, &mut frames).expect("it never fails");
            std::thread::yield_now();
        }
        frames
    }

    /// Runs the port until its counters satisfy `done`; discards the frames.
    pub fn until_counted(&mut self, done: impl Fn(&AgentCounters) -> bool) -> AgentCounters {
        self.until(|port| done(&port.agent_status().counters));
        self.port.agent_status().counters
    }

    /// Attaches the agent that `connect` connects; `connect` blocks on the port.
    pub fn attach<T: Send>(&mut self, connect: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let connecting = scope.spawn(connect);
            self.until(|_| connecting.is_finished());
            connecting.join().expect("no panic")
        })
    }

    /// Attaches an agent.
    pub fn client(&mut self) -> Client {
        let path = self.setup.socket.clone();
        self.attach(move || Client::connect(&path, "test").expect("attached"))
    }

    /// Sends one frame to the agent, and returns frames that the port did not keep.
    pub fn give(&mut self, bytes: &[u8]) -> Vec<FrameBuf> {
        let mut frames = vec![FrameBuf::new(bytes)];
        self.port.transmit(&mut frames).expect("it never fails");
        frames
    }

    /// Returns the frames received from the agent so far.
    pub fn take(&mut self) -> Vec<FrameBuf> {
        let mut frames = Vec::new();
        self.port.receive(&mut self.pool, &mut frames).expect("it never fails");
        frames
    }
}

/// A frame whose bytes encode its number and their positions.
pub fn numbered(number: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| if at == 0 { number } else { at as u8 }).collect()
}

/// Returns the next packet that an agent receives.
pub fn packet(client: &mut Client) -> axon_agents::Packet {
    match client.next_given().expect("a working switch") {
        Some(Given::Packet(packet)) => packet,
        other => panic!("{other:?}, expected a packet"),
    }
}

/// Returns the bytes of frames.
pub fn bytes(frames: &[FrameBuf]) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| frame.bytes().to_vec()).collect()
}
