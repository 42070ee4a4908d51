//! Agents that request more than their share of the switch.

use super::hostile::{impatient, is_whole_again};
use super::rogue::Rogue;
use super::support::{LIMIT, Switch, bytes, numbered, packet};
use axon_agents::Outbox;
use axon_cache::Handle;
use axon_linux::agent_port::client::Client;
use axon_linux::agent_port::handshake;
use axon_linux::agent_port::layout::{Descriptor, HEADROOM, Kind};
use axon_linux::port::Port;
use axon_wire::mac_control::{MacControl, Quanta};
use axon_wire::{FrameBuf, MacAddr, Span};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes that a port copies for its agent in one round; one answer may exceed it.
const COPIED_BYTES_MAX: u64 = 256 << 10;

/// Bytes copied so far.
fn copied(switch: &Switch) -> u64 {
    let counters = switch.port.agent_status().counters;
    counters.copied_to_agent_bytes + counters.copied_from_agent_bytes
}

/// Runs the port until it has no more work; returns the frames, and the number of rounds.
fn rounds(switch: &mut Switch, longest: u64) -> (Vec<FrameBuf>, u32) {
    let (mut frames, mut rounds) = (Vec::new(), 0);
    loop {
        let before = copied(switch);
        let more = switch.port.receive(&mut switch.pool, &mut frames).unwrap();
        let bytes = copied(switch) - before;
        assert!(bytes < COPIED_BYTES_MAX + longest, "{bytes} bytes in a round");
        rounds += 1;
        if !more {
            return (frames, rounds);
        }
    }
}

pub fn what_is_fetched_beyond_the_bytes_of_one_round_waits_its_turn_with_what_is_behind_it() {
    let mut switch = Switch::with(|setup| (setup.buffers, setup.send_buffers) = (64, 256));
    let mut rogue = Rogue::attach(&mut switch);
    switch.give(&numbered(1, 1500));
    let given = rogue.given(0);
    let before = copied(&switch);
    let fetch = Descriptor {
        chunk: given.chunk,
        bytes: 1500,
        ..Descriptor::new(Kind::Fetch, given.handle)
    };
    (0..250).for_each(|buffer| rogue.answer(Descriptor { buffer, ..fetch }));
    rogue.answer(Descriptor {
        kind: Kind::Forward,
        offset: HEADROOM as u32,
        head_bytes: given.head_bytes,
        ..fetch
    });
    let (frames, rounds) = rounds(&mut switch, 1500);
    assert_eq!((bytes(&frames), rounds), (vec![numbered(1, 1500)], 2));
    assert_eq!(copied(&switch) - before, 250 * 1500 + u64::from(given.head_bytes));
    assert_eq!(switch.port.agent_status().counters.fetched, 250);
}

pub fn long_frames_of_an_agents_own_come_in_several_rounds() {
    let mut switch = Switch::with(|setup| setup.frame_bytes_max = 65_535);
    let mut agent = switch.client();
    (0..41).for_each(|number| agent.send(&numbered(number, 60_000)).unwrap());
    agent.flush();
    let (frames, rounds) = rounds(&mut switch, 60_000);
    let sent: Vec<Vec<u8>> = (0..41).map(|number| numbered(number, 60_000)).collect();
    assert!(bytes(&frames) == sent, "in their order");
    assert_eq!(rounds, 41u32.div_ceil(5), "five are more than the bytes of a round");
}

/// Frames that an agent has sent and that have left since.
fn sent_and_gone(switch: &mut Switch) -> Vec<Vec<u8>> {
    let mut agent = switch.client();
    (0..41).for_each(|number| agent.send(&numbered(number, 60_000)).unwrap());
    agent.flush();
    (0..41).map(|number| numbered(number, 60_000)).collect()
}

pub fn what_an_agent_leaves_behind_comes_in_rounds_too_and_then_it_is_detached() {
    let mut switch = Switch::with(|setup| setup.frame_bytes_max = 65_535);
    let sent = sent_and_gone(&mut switch);
    let next = {
        let path = switch.setup.socket.clone();
        std::thread::spawn(move || Client::connect(&path, "next").map(drop))
    };
    let (frames, rounds) = rounds(&mut switch, 60_000);
    assert!(bytes(&frames) == sent, "in their order");
    assert!(rounds >= 41u32.div_ceil(5), "{rounds} rounds");
    // The next connection is not refused, whenever it was made.
    switch.until_counted(|counters| counters.attached == 2);
    switch.until(|_| next.is_finished());
    next.join().unwrap().expect("it is attached");
    assert_eq!(switch.port.agent_status().counters.refused, 0);
}

pub fn what_an_agent_leaves_behind_waits_while_its_port_is_paused() {
    let mut switch = Switch::with(|setup| setup.frame_bytes_max = 65_535);
    let pause = |quanta| MacControl::Pause(Quanta(quanta)).emit(MacAddr([2; 6]));
    let mut agent = switch.client();
    switch.give(&pause(0xffff));
    (0..41).for_each(|number| agent.send(&numbered(number, 60_000)).unwrap());
    agent.flush();
    drop(agent);
    for _ in 0..100 {
        assert!(switch.take().is_empty(), "it is paused");
    }
    assert_eq!((switch.port.carrier(), switch.port.room()), (Some(true), 0));
    switch.give(&pause(0));
    let frames = switch.until(|port| port.carrier() == Some(false));
    assert_eq!(frames.len(), 41);
    is_whole_again(&mut switch, "it was paused");
}

pub fn between_an_agent_and_the_next_one_the_node_sees_no_carrier() {
    let mut switch = Switch::with(|_| {});
    let agent = switch.client();
    let path = switch.setup.socket.clone();
    let next = UnixStream::connect(&path).unwrap();
    // It is accepted, and sends nothing yet.
    (0..10).for_each(|_| drop(switch.take()));
    (&next).write_all(&handshake::hello("next")).unwrap();
    drop(agent);
    let mut carriers = Vec::new();
    switch.until(|port| {
        carriers.push(port.carrier());
        port.agent_status().counters.attached == 2
    });
    carriers.dedup();
    assert_eq!(carriers, [true, false, true].map(Some));
    assert_eq!(switch.port.agent_status().counters.refused, 0);
}

pub fn an_agent_that_fetches_and_does_not_read_is_detached_when_its_ring_is_full() {
    let mut switch = Switch::with(|setup| setup.buffers = 16);
    let mut rogue = Rogue::attach(&mut switch);
    switch.give(&numbered(1, 300));
    let Descriptor { chunk, handle, .. } = rogue.given(0);
    let fetch = Descriptor { chunk, bytes: 300, ..Descriptor::new(Kind::Fetch, handle) };
    for _ in 0..rogue.layout.ring_slots - 1 {
        rogue.answer(fetch);
        switch.take();
    }
    assert_eq!(switch.port.carrier(), Some(true));
    rogue.answer(fetch);
    switch.take();
    assert_eq!(switch.port.agent_status().counters.broken, 1);
    is_whole_again(&mut switch, "its ring was full");
}

pub fn an_agent_that_always_has_answers_does_not_keep_its_packets_from_expiring() {
    let mut switch = Switch::with(impatient);
    let mut rogue = Rogue::attach(&mut switch);
    switch.give(&numbered(1, 300));
    rogue.read_all();
    let began = Instant::now();
    while switch.port.agent_status().cache.expired == 0 {
        assert!(began.elapsed() < LIMIT);
        (0..50).for_each(|_| rogue.answer(Descriptor::new(Kind::Drop, Handle::NONE)));
        assert!(switch.take().is_empty());
    }
    assert_eq!(switch.port.carrier(), Some(true));
}

pub fn what_was_answered_in_time_is_sent_however_late_the_switch_reads_it() {
    let hold_max = Span::from_millis(20);
    let mut switch = Switch::with(|setup| (setup.buffers, setup.hold_max) = (2000, Some(hold_max)));
    let mut agent = switch.client();
    (0..2000u32).for_each(|number| drop(switch.give(&numbered(number as u8, 100))));
    for _ in 0..2000 {
        let handle = packet(&mut agent).handle;
        agent.forward(handle);
    }
    agent.flush();
    let answered = Instant::now();
    while answered.elapsed() < Duration::from_nanos(hold_max.as_nanos() + 10_000_000) {
        std::thread::yield_now();
    }
    let frames = switch.until(|port| port.agent_status().counters.forwarded == 2000);
    let sent: Vec<Vec<u8>> = (0..2000u32).map(|number| numbered(number as u8, 100)).collect();
    assert!(bytes(&frames) == sent);
    assert_eq!(switch.port.agent_status().cache.expired, 0);
}

pub fn after_each_agent_that_breaks_the_protocol_the_next_one_waits_and_is_attached() {
    let mut switch = Switch::with(|setup| setup.backoff_max = Span::from_millis(20));
    for broken in 1..=10 {
        let mut rogue = Rogue::attach(&mut switch);
        rogue.words([0; 4]);
        switch.take();
        let counters = switch.port.agent_status().counters;
        assert_eq!((counters.attached, counters.broken), (broken, broken));
        assert!(counters.waits >= broken, "{counters:?}");
    }
    is_whole_again(&mut switch, "the socket stays");
    assert_eq!(switch.port.agent_status().counters.refused, 0);
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn an_agent_that_attaches_over_and_over_does_not_fill_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    // For all threads: tracing caches the interest in a line for all of them.
    tracing::subscriber::set_global_default(subscriber).expect("no other test has one");
    let mut switch = Switch::named("s9-p9", |_| {});
    for _ in 0..300 {
        let mut rogue = Rogue::attach(&mut switch);
        rogue.words([0; 4]);
        switch.take();
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("s9-p9")).collect();
    for expected in ["agent attached", "ALARM: agent detached"] {
        assert!(lines.iter().any(|line| line.contains(expected)), "{lines:?}");
    }
    assert_eq!(switch.port.agent_status().counters.broken, 300);
    assert!(lines.len() < 300, "{} lines", lines.len());
}
