//! Slow agents get back-pressure and lose nothing. Agents that poll for packets for long see
//! that their switch has ended.

use super::support::{LIMIT, Switch, bytes, numbered, packet};
use axon_agents::{Agent, Event, Outbox};
use axon_linux::agent_port::AgentPortSetup;
use axon_linux::agent_port::client::Client;
use axon_linux::agent_port::runner::{self, RunOptions};
use axon_linux::port::Port;
use axon_wire::{Span, Time};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Maximum time that a packet may be held: several packets of a slow agent, and fewer than it has.
const HOLD_MAX: Span = Span::from_millis(600);
/// Time that a slow agent takes for a packet.
const SERVICE: Duration = Duration::from_millis(60);

fn slow(setup: &mut AgentPortSetup) {
    (setup.buffers, setup.hold_max) = (24, Some(HOLD_MAX));
}

/// Asserts that all packets came back in order, and that the agent is still attached.
fn lost_nothing(switch: &Switch, frames: &[Vec<u8>], count: u8) {
    let status = switch.port.agent_status();
    let sent: Vec<Vec<u8>> = (0..count).map(|number| numbered(number, 300)).collect();
    assert!(frames == sent, "{} of {count}: {status:?}", frames.len());
    let counters = (status.counters.broken, status.counters.lost, status.cache.expired);
    assert_eq!((counters, switch.port.carrier()), ((0, 0, 0), Some(true)));
}

pub fn an_agent_that_reads_one_packet_after_the_other_is_no_stalled_one_however_many_wait() {
    let mut switch = Switch::with(slow);
    let mut agent = switch.client();
    let (mut given, mut frames) = (0, Vec::new());
    while frames.len() < 48 {
        while given < 48 && switch.port.room() > 0 {
            switch.give(&numbered(given, 300));
            given += 1;
        }
        let handle = packet(&mut agent).handle;
        let began = Instant::now();
        frames.extend(bytes(&switch.until(|_| began.elapsed() > SERVICE)));
        agent.forward(handle);
        agent.flush();
        frames.extend(bytes(&switch.take()));
    }
    lost_nothing(&switch, &frames, 48);
}

/// An agent that delays each packet.
struct Slow;

impl Agent for Slow {
    fn handle(&mut self, _: Time, event: Event<'_>, out: &mut dyn Outbox) {
        if let Event::Packet(packet) = event {
            std::thread::sleep(SERVICE);
            out.forward(packet.handle);
        }
    }
}

pub fn the_runner_shows_what_a_slow_agent_has_read_and_answered_in_time() {
    let mut switch = Switch::with(slow);
    let mut agent = switch.client();
    let end = AtomicBool::new(false);
    let mut frames = Vec::new();
    (0..24).for_each(|number| drop(switch.give(&numbered(number, 300))));
    std::thread::scope(|scope| {
        let run = |agent: &mut Client| runner::run(agent, &mut Slow, RunOptions::default(), &end);
        let running = scope.spawn(move || run(&mut agent).map(|()| agent));
        let began = Instant::now();
        while frames.len() < 24 && !running.is_finished() && began.elapsed() < LIMIT {
            frames.extend(bytes(&switch.take()));
            std::thread::yield_now();
        }
        end.store(true, Ordering::Relaxed);
        lost_nothing(&switch, &frames, 24);
        running.join().unwrap().unwrap();
    });
}

/// An agent with a deadline that is always in the past.
struct AlwaysDue;

impl Agent for AlwaysDue {
    fn handle(&mut self, _: Time, _: Event<'_>, _: &mut dyn Outbox) {}
    fn deadline(&self) -> Option<Time> {
        Some(Time::ZERO)
    }
}

pub fn an_agent_that_never_sleeps_sees_that_its_switch_has_gone() {
    let mut switch = Switch::with(|_| {});
    let mut agent = switch.client();
    drop(switch);
    let (end, (over, is_over)) = (AtomicBool::new(false), channel::<()>());
    let options = RunOptions { spin: Span::from_secs(3600) };
    let ended = std::thread::scope(|scope| {
        // Without this it would run forever.
        let end = &end;
        scope.spawn(move || {
            let _ = is_over.recv_timeout(LIMIT);
            end.store(true, Ordering::Relaxed);
        });
        let ended = runner::run(&mut agent, &mut AlwaysDue, options, end);
        let _ = over.send(());
        ended
    });
    assert_eq!(ended.map_err(|error| error.kind()), Err(ErrorKind::ConnectionAborted));
}
