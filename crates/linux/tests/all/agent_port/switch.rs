//! A switch of three agent ports on its run loop: events at one port do not affect the others.

use super::support::{LIMIT, packet, socket};
use axon_agents::{Agent, Event, Outbox};
use axon_linux::agent_port::client::{Client, Given};
use axon_linux::agent_port::{AgentPortSetup, runner};
use axon_linux::clock::Clock;
use axon_linux::device_port::{Medium, PortSetup};
use axon_linux::inspect::Inspect;
use axon_linux::run::{RunOptions, Runtime};
use axon_node::telemetry::NodeTelemetry;
use axon_node::{Action, Awaited, Input, Node, PortKind, Shortcuts};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::header::{self, PacketType};
use axon_wire::{HopWidth, MacAddr, PortNo, Span, Time};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// A plane between three ports.
struct Three(Plane);

impl Node for Three {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.0.handle(now, input, out);
    }
    fn deadline(&self) -> Option<Time> {
        self.0.deadline()
    }
}

impl Shortcuts for Three {
    fn awaited(&mut self) -> Awaited {
        self.0.awaited()
    }
}

impl Inspect for Three {
    fn port_kind(&self, port: PortNo) -> PortKind {
        self.0.kind(port).unwrap_or_default()
    }
    fn telemetry(&self, _: Time) -> NodeTelemetry {
        unreachable!("it has no status")
    }
}

const FRAME_BYTES: usize = 600;
/// Frames in flight at once, by either path.
const WINDOW: usize = 32;

/// Runs the switch: port 0 leads to the source, port 1 to the agent under test, port 2 to the sink.
fn run(sockets: &[PathBuf; 3], hold_max: Span, end: &AtomicBool) {
    let mut plane = Plane::new(PlaneConfig::with_ports(3, MacAddr([2, 0, 0, 0, 0, 1])));
    (0..3).for_each(|port| plane.set_kind(PortNo(port), PortKind::Axon));
    let setup = |(number, socket): (usize, &PathBuf)| PortSetup {
        device: format!("s1-p{number}"),
        medium: Medium::Agent(AgentPortSetup {
            buffers: 64,
            hold_max: (number == 1).then_some(hold_max),
            ..AgentPortSetup::at(socket)
        }),
        rate: None,
        lossless: false,
        host_mtu: None,
    };
    let ports = sockets.iter().enumerate().map(setup).collect();
    let options = RunOptions { name: "s1".into(), ports, ..RunOptions::default() };
    let clock = Clock::start();
    let mut runtime = Runtime::open(Three(plane), clock, options).unwrap();
    while !end.load(Ordering::Relaxed) {
        runtime.round(clock.now() + Span::from_millis(20)).unwrap();
    }
}

fn frame(hops: &[u16], number: u32) -> Vec<u8> {
    let mut frame = vec![0x5a; FRAME_BYTES];
    let hops: Vec<PortNo> = hops.iter().map(|hop| PortNo(*hop)).collect();
    header::emit(&mut frame, HopWidth::Eight, PacketType::Ethernet, &hops, &[]).unwrap();
    frame[40..44].copy_from_slice(&number.to_be_bytes());
    frame
}

fn connect(path: &Path) -> Client {
    let began = Instant::now();
    loop {
        match Client::connect(path, "test") {
            Ok(client) => return client,
            Err(error) => assert!(began.elapsed() < LIMIT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Source and sink.
struct Ends {
    source: Client,
    sink: Client,
    sent: u32,
}

impl Ends {
    /// Sends `count` frames by `hops`, and waits until the last has arrived.
    fn carry(&mut self, hops: &[u16], count: u32) {
        let (first, mut next) = (self.sent, self.sent);
        let began = Instant::now();
        while next < first + count {
            assert!(began.elapsed() < LIMIT, "{next} of {count} from {first}");
            while (self.sent - next) < WINDOW as u32
                && self.sent < first + count
                && self.source.send(&frame(hops, self.sent)).is_ok()
            {
                self.sent += 1;
            }
            self.source.flush();
            assert_eq!(self.source.next_given().unwrap(), None);
            while let Some(Given::Packet(packet)) = self.sink.next_given().unwrap() {
                let number = self.sink.head(packet.handle).unwrap()[40..44].to_vec();
                self.sink.drop(packet.handle);
                // Frames through the agent may be late ones of an earlier batch.
                next += u32::from(number == next.to_be_bytes());
            }
            self.sink.flush();
            std::thread::yield_now();
        }
    }

    /// Sends frames that need not arrive.
    fn send(&mut self, hops: &[u16], count: u32) {
        for _ in 0..count {
            let began = Instant::now();
            while self.source.send(&frame(hops, u32::MAX)).is_err() {
                assert!(began.elapsed() < LIMIT);
                self.source.flush();
                assert_eq!(self.source.next_given().unwrap(), None);
                std::thread::yield_now();
            }
        }
        self.source.flush();
    }
}

/// Ends threads, also when a test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a test beside a switch.
fn with_switch(hold_max: Span, test: impl FnOnce(&mut Ends, &Path)) {
    let (end, sockets) = (AtomicBool::new(false), [socket(), socket(), socket()]);
    std::thread::scope(|scope: &Scope<'_, '_>| {
        scope.spawn(|| run(&sockets, hold_max, &end));
        let _end = End(&end);
        let (source, sink) = (connect(&sockets[0]), connect(&sockets[2]));
        test(&mut Ends { source, sink, sent: 0 }, &sockets[1]);
    });
}

/// Forwards all packets.
struct Forwarder;

impl Agent for Forwarder {
    fn handle(&mut self, _: Time, event: Event<'_>, out: &mut dyn Outbox) {
        if let Event::Packet(packet) = event {
            out.forward(packet.handle);
        }
    }
}

fn forward<'a>(
    scope: &'a Scope<'a, '_>,
    path: &Path,
    end: &'a AtomicBool,
) -> ScopedJoinHandle<'a, ()> {
    let mut client = connect(path);
    scope.spawn(move || {
        let options = runner::RunOptions::default();
        runner::run(&mut client, &mut Forwarder, options, end).unwrap();
    })
}

pub fn packets_pass_through_an_agent_that_sleeps_between_them() {
    with_switch(Span::from_secs(10), |ends, path| {
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let agent = forward(scope, path, &end);
            let ends_it = End(&end);
            ends.carry(&[1, 2], 2000);
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(20));
                ends.carry(&[1, 2], 1);
            }
            drop(ends_it);
            agent.join().unwrap();
        });
    });
}

pub fn the_port_of_an_agent_that_takes_no_packets_is_busy_and_all_come_when_it_does() {
    with_switch(Span::from_secs(60), |ends, path| {
        let mut agent = connect(path);
        // More than its 64 buffers, fewer than the plane queues.
        ends.send(&[1, 2], 150);
        ends.carry(&[2], 500);
        let mut count = 0;
        let began = Instant::now();
        while count < 150 {
            assert!(began.elapsed() < LIMIT, "{count}");
            while let Some(Given::Packet(packet)) = agent.next_given().unwrap() {
                agent.drop(packet.handle);
                count += 1;
            }
            agent.flush();
            std::thread::yield_now();
        }
        ends.carry(&[2], 10);
    });
}

pub fn agents_that_die_or_stall_under_load_lose_their_own_packets_and_others_lose_none() {
    with_switch(Span::from_millis(50), |ends, path| {
        for round in 0..10 {
            let mut agent = connect(path);
            ends.send(&[1, 2], 40);
            ends.carry(&[2], 300);
            let first = packet(&mut agent);
            if round % 2 == 0 {
                agent.forward(first.handle);
                agent.flush();
            } else {
                // It stops reading: once the switch has detached it, another agent is attached.
                drop(connect(path));
            }
            drop(agent);
            ends.carry(&[2], 300);
        }
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let agent = forward(scope, path, &end);
            let ends_it = End(&end);
            ends.carry(&[1, 2], 200);
            drop(ends_it);
            agent.join().unwrap();
        });
    });
}
