//! Agents that corrupt the shared memory, forge, die or stall: they lose their own packets and
//! nothing else.

use super::rogue::Rogue;
use super::support::{LIMIT, Switch, bytes, numbered, packet};
use axon_agents::Outbox;
use axon_cache::Handle;
use axon_linux::agent_port::layout::{
    DESCRIPTOR_BYTES, Descriptor, FROM_AGENT_TAIL, HEADROOM, Kind, TO_AGENT_HEAD,
};
use axon_linux::agent_port::{AgentPortSetup, PayloadMode};
use axon_linux::port::Port;
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::PrioritySet;
use axon_wire::{MacAddr, Span};
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Asserts that all buffers are back after an agent was detached, and that the next agent works.
pub fn is_whole_again(switch: &mut Switch, what: &str) {
    assert_eq!(switch.port.carrier(), Some(false), "{what}");
    let mut agent = switch.client();
    assert_eq!(switch.port.room(), switch.setup.buffers, "{what}");
    for number in 0..20 {
        switch.give(&numbered(number, 700));
        let handle = packet(&mut agent).handle;
        agent.forward(handle);
        agent.flush();
        assert_eq!(bytes(&switch.take()), [numbered(number, 700)], "{what}");
    }
    drop(agent);
    switch.until(|port| port.carrier() == Some(false));
}

pub fn what_no_agent_writes_detaches_it_and_the_next_one_works() {
    let handle = Handle::from_raw(7);
    let new = |kind| Descriptor::new(kind, handle);
    let mut switch = Switch::with(|setup| setup.buffers = 16);
    let layout = *switch.port.layout();
    let (chunks, buffers) = (layout.chunks as u32, layout.buffers as u32);
    let (chunk, buffer) = (layout.chunk_bytes as u32, layout.buffer_bytes as u32);
    let bad = [
        new(Kind::Packet),
        new(Kind::Payload),
        new(Kind::Returned),
        Descriptor { chunk: chunks, ..new(Kind::Forward) },
        Descriptor { chunk: u32::MAX, ..new(Kind::Drop) },
        Descriptor { offset: chunk + 1, ..new(Kind::Forward) },
        Descriptor { offset: 1, head_bytes: chunk, ..new(Kind::Forward) },
        Descriptor { offset: u32::MAX, head_bytes: u32::MAX, ..new(Kind::Replace) },
        Descriptor { buffer: buffers, ..new(Kind::Send) },
        Descriptor { buffer: u32::MAX, ..new(Kind::Fetch) },
        Descriptor { bytes: buffer + 1, ..new(Kind::Send) },
        Descriptor { bytes: u32::MAX, ..new(Kind::Replace) },
        Descriptor { bytes: buffer + 1, ..new(Kind::Fetch) },
    ];
    for (broken, bad) in (1..).zip(bad) {
        let mut rogue = Rogue::attach(&mut switch);
        (0..10).for_each(|number| drop(switch.give(&numbered(number, 500))));
        rogue.answer(bad);
        assert!(switch.take().is_empty());
        let counters = switch.port.agent_status().counters;
        assert_eq!((counters.broken, counters.lost), (broken, 10 * broken), "{bad:?}");
        is_whole_again(&mut switch, &format!("{bad:?}"));
    }
}

pub fn an_unknown_kind_and_cursors_that_cannot_be_detach() {
    let mut switch = Switch::with(|setup| setup.buffers = 16);
    for kind in [0, 4, 15, 21, u32::MAX] {
        let mut rogue = Rogue::attach(&mut switch);
        rogue.words([u64::from(kind), 0, 0, 0]);
        switch.take();
        is_whole_again(&mut switch, "kind");
    }
    let slots = switch.port.layout().ring_slots as u32;
    for cursor in [slots + 1, u32::MAX, 0x8000_0000] {
        let rogue = Rogue::attach(&mut switch);
        rogue.memory.word(FROM_AGENT_TAIL).store(cursor, Ordering::Release);
        switch.take();
        is_whole_again(&mut switch, "its own cursor");
    }
    let mut rogue = Rogue::attach(&mut switch);
    rogue.stream.write_all(b"x").unwrap();
    switch.until(|port| port.carrier() == Some(false));
    is_whole_again(&mut switch, "the socket");
    // The switch reads this cursor when its ring may be full, and when packets expire.
    for cursor in [u32::MAX, 0x8000_0000, slots] {
        let mut switch = Switch::with(impatient);
        let rogue = Rogue::attach(&mut switch);
        rogue.memory.word(TO_AGENT_HEAD).store(cursor, Ordering::Release);
        switch.give(&numbered(1, 64));
        switch.until(|port| port.carrier() == Some(false));
        assert_eq!(switch.port.agent_status().counters.broken, 1);
        is_whole_again(&mut switch, "the cursor of what it has read");
    }
}

pub fn forged_handles_and_second_answers_send_nothing_and_cost_others_nothing() {
    for payload in [PayloadMode::Cached, PayloadMode::Copied] {
        let mut switch = Switch::with(|setup| (setup.buffers, setup.payload) = (16, payload));
        let mut rogue = Rogue::attach(&mut switch);
        (0..4).for_each(|number| drop(switch.give(&numbered(number, 500))));
        let given: Vec<Descriptor> = (0..4).map(|slot| rogue.given(slot)).collect();
        rogue.read_all();
        let forward = |of: &Descriptor| Descriptor {
            offset: HEADROOM as u32,
            chunk: of.chunk,
            head_bytes: of.head_bytes,
            ..Descriptor::new(Kind::Forward, of.handle)
        };
        let raw = given[0].handle.raw();
        let forged = [raw ^ 1 << 16, raw + (1 << 16), raw - (1 << 16), raw ^ 1, 0, u64::MAX];
        for (count, raw) in (1..).zip(forged) {
            rogue.answer(Descriptor { handle: Handle::from_raw(raw), ..forward(&given[0]) });
            assert!(switch.take().is_empty(), "{raw:#x}");
            assert_eq!(switch.port.agent_status().counters.answers_refused, count);
        }
        // The answer to another of its packets, with the wrong chunk.
        rogue.answer(Descriptor { chunk: given[1].chunk, ..forward(&given[0]) });
        assert!(switch.take().is_empty());
        // Twice in a row, and again later.
        rogue.answer(forward(&given[2]));
        rogue.answer(forward(&given[2]));
        assert_eq!(bytes(&switch.take()), [numbered(2, 500)]);
        (10..14).for_each(|number| drop(switch.give(&numbered(number, 500))));
        rogue.answer(forward(&given[2]));
        rogue.answer(Descriptor { kind: Kind::Drop, ..forward(&given[2]) });
        assert!(switch.take().is_empty());
        assert_eq!(switch.port.carrier(), Some(true), "it is only refused");
        for slot in [0, 1, 3, 4, 5, 6, 7] {
            let given = rogue.given(slot);
            rogue.answer(forward(&given));
        }
        let sent = bytes(&switch.take());
        assert_eq!(sent, [0, 1, 3, 10, 11, 12, 13].map(|number| numbered(number, 500)));
        assert_eq!(switch.port.agent_status().counters.answers_refused, 10);
    }
}

/// A head is extended before a payload that fills the longest frame, and a payload is brought after
/// a head.
pub fn a_frame_longer_than_the_longest_is_refused_and_its_buffers_come_back() {
    for payload in [PayloadMode::Cached, PayloadMode::Copied] {
        let mut switch = Switch::with(|setup| (setup.buffers, setup.payload) = (4, payload));
        let mut rogue = Rogue::attach(&mut switch);
        let longest = rogue.layout.buffer_bytes;
        // The buffer of the replacement is returned between the two packets.
        for (kind, slots) in [(Kind::Forward, [0, 1]), (Kind::Replace, [2, 4])] {
            switch.give(&numbered(1, longest));
            let given = rogue.given(slots[0]);
            let answer = Descriptor {
                chunk: given.chunk,
                head_bytes: given.head_bytes + 1,
                bytes: longest as u32,
                ..Descriptor::new(kind, given.handle)
            };
            rogue.answer(answer);
            assert!(switch.take().is_empty(), "{payload:?} {kind:?}");
            // One byte less is sent.
            switch.give(&numbered(1, longest));
            let given = rogue.given(slots[1]);
            let head_bytes = if kind == Kind::Forward { given.head_bytes } else { 0 };
            let (chunk, handle) = (given.chunk, given.handle);
            rogue.answer(Descriptor { chunk, head_bytes, handle, ..answer });
            let lengths: Vec<usize> = bytes(&switch.take()).iter().map(Vec::len).collect();
            assert_eq!(lengths, [longest], "{payload:?} {kind:?}");
        }
        let status = switch.port.agent_status();
        assert_eq!((status.counters.answers_refused, status.counters.forwarded), (2, 2));
        assert_eq!((status.cache.hits, status.cache.released), (1, 2), "refused, so no hit");
        assert_eq!((switch.port.room(), switch.port.carrier()), (4, Some(true)));
    }
}

pub fn a_frame_that_is_too_long_for_an_agent_is_not_given_to_it() {
    for payload in [PayloadMode::Cached, PayloadMode::Copied] {
        let mut switch = Switch::with(|setup| (setup.buffers, setup.payload) = (4, payload));
        let _rogue = Rogue::attach(&mut switch);
        let longest = AgentPortSetup::at("".as_ref()).frame_bytes_max;
        assert_eq!(longest % 64, 46, "buffers are longer");
        assert_eq!(switch.give(&numbered(1, longest + 1)).len(), 1, "it comes back");
        assert_eq!((switch.port.counters().tx_refused, switch.port.room()), (1, 4));
        assert_eq!(switch.port.agent_status().counters.packets, 0);
    }
}

pub fn what_is_fetched_beyond_the_end_of_a_frame_is_what_there_is() {
    let mut switch = Switch::with(|setup| setup.buffers = 4);
    let mut rogue = Rogue::attach(&mut switch);
    switch.give(&numbered(1, 300));
    switch.give(&numbered(2, 300));
    let Descriptor { chunk, handle, .. } = rogue.given(0);
    let fetch = Descriptor { chunk, ..Descriptor::new(Kind::Fetch, handle) };
    let parts = [(0, 1000, 300), (100, 1000, 200), (300, 1, 0), (u32::MAX, 1500, 0)];
    for (slot, (offset, bytes, expected)) in (2..).zip(parts) {
        rogue.answer(Descriptor { offset, bytes, ..fetch });
        switch.take();
        let part = rogue.given(slot);
        assert_eq!((part.kind, part.handle, part.bytes), (Kind::Payload, handle, expected));
    }
    assert_eq!(switch.port.agent_status().counters.fetched, 4);
    // With the chunk of another packet there is no data.
    let other = rogue.given(1).chunk;
    rogue.answer(Descriptor { chunk: other, bytes: 300, ..fetch });
    switch.take();
    assert_eq!(rogue.given(6).bytes, 0);
    let counters = switch.port.agent_status().counters;
    assert_eq!((counters.fetched, counters.answers_refused), (4, 1));
}

/// Random words in both rings and cursors, under load: no panic, and the switch sends only packets
/// it received, with heads that the agent wrote.
pub fn random_memory_ends_in_a_detached_agent_or_in_packets_of_its_own() {
    let seed = std::env::var("AXON_SEED").map_or(41, |seed| seed.parse().unwrap());
    let mut random = oorandom::Rand64::new(seed);
    let mut word = move || random.rand_u64();
    let (mut detached, mut sent) = (0, 0);
    let mut switch = Switch::with(|setup| (setup.buffers, setup.head_bytes) = (8, 16));
    for round in 0..300 {
        let mut rogue = Rogue::attach(&mut switch);
        for step in 0..200 {
            if word() % 2 == 0 {
                switch.give(&numbered(step as u8, 200));
            }
            let slot = word() as usize % rogue.layout.ring_slots;
            let at = rogue.layout.to_agent() + slot * DESCRIPTOR_BYTES;
            let given = [0, 1, 2, 3].map(|i| rogue.memory.long(at + 8 * i).load(Ordering::Relaxed));
            let kinds = [16, 17, 18, 19, 20, 16, 16, 1];
            let kind = kinds[word() as usize % if word() % 64 == 0 { 8 } else { 7 }];
            let mut words = given;
            words[0] = given[0] >> 32 << 32 | kind;
            words[2] &= 0x0000_00ff_0000_007f;
            words[3] = word() & 0x0000_00ff_0000_0007;
            if word() % 256 == 0 {
                words[word() as usize % 4] = word();
            }
            rogue.words(words);
            if word() % 1024 == 0 {
                rogue.memory.word(FROM_AGENT_TAIL).store(word() as u32, Ordering::Release);
            }
            if word() % 3 == 0 {
                rogue.read_all();
            }
            for frame in switch.take() {
                assert!(frame.bytes().len() <= rogue.layout.buffer_bytes, "seed {seed}");
                sent += 1;
            }
            if switch.port.carrier() == Some(false) {
                detached += 1;
                break;
            }
        }
        drop(rogue);
        switch.until(|port| port.carrier() == Some(false));
        if round % 10 == 0 {
            is_whole_again(&mut switch, &format!("round {round} of seed {seed}"));
        }
    }
    assert!(detached > 10 && sent > 1000, "{detached} detached, {sent} sent");
}

pub fn an_agent_that_dies_loses_what_it_held_and_what_it_had_answered_is_sent() {
    let mut switch = Switch::with(|setup| setup.buffers = 64);
    let mut agent = switch.client();
    (0..64).for_each(|number| drop(switch.give(&numbered(number, 300))));
    assert_eq!(switch.port.room(), 0);
    for _ in 0..10 {
        let handle = packet(&mut agent).handle;
        agent.forward(handle);
    }
    agent.flush();
    drop(agent);
    let frames = switch.until(|port| port.carrier() == Some(false));
    let answered: Vec<Vec<u8>> = (0..10).map(|number| numbered(number, 300)).collect();
    assert_eq!(bytes(&frames), answered);
    assert_eq!(switch.port.agent_status().counters.lost, 54);
    is_whole_again(&mut switch, "it died");
}

pub fn impatient(setup: &mut AgentPortSetup) {
    (setup.buffers, setup.hold_max) = (4, Some(Span::from_millis(30)));
}

pub fn an_agent_that_does_not_read_is_detached_and_its_buffers_come_back() {
    let mut switch = Switch::with(impatient);
    let _agent = switch.client();
    (0..4).for_each(|number| drop(switch.give(&numbered(number, 300))));
    assert_eq!(switch.port.room(), 0);
    switch.until(|port| port.carrier() == Some(false));
    let status = switch.port.agent_status();
    assert_eq!((status.counters.broken, status.agent), (1, None));
    assert_eq!(status.cache.expired + status.counters.lost, 4);
    is_whole_again(&mut switch, "it stalled");
}

pub fn a_packet_that_is_held_for_too_long_expires_and_its_late_answer_is_refused() {
    let mut switch = Switch::with(impatient);
    let mut agent = switch.client();
    switch.give(&numbered(1, 300));
    let late = packet(&mut agent).handle;
    agent.flush();
    let began = Instant::now();
    switch.until(|port| port.agent_status().cache.expired == 1);
    assert!(began.elapsed() < LIMIT);
    for number in 2..12 {
        switch.give(&numbered(number, 300));
        let handle = packet(&mut agent).handle;
        // The head of the late packet is not the head of another one.
        if let Some(head) = agent.head(late) {
            head.fill(0xdd);
        }
        agent.forward(handle);
        agent.flush();
        assert_eq!(bytes(&switch.take()), [numbered(number, 300)]);
    }
    agent.forward(late);
    agent.flush();
    assert!(switch.take().is_empty());
    assert!(switch.port.agent_status().counters.answers_refused > 0);
    assert_eq!(switch.port.carrier(), Some(true), "it reads, so it is only slow");
}

pub fn an_agent_that_reads_some_packets_and_then_no_more_is_detached() {
    let mut switch = Switch::with(impatient);
    let rogue = Rogue::attach(&mut switch);
    (0..2).for_each(|number| drop(switch.give(&numbered(number, 300))));
    rogue.memory.word(TO_AGENT_HEAD).store(1, Ordering::Release);
    switch.until(|port| port.agent_status().cache.expired + port.agent_status().counters.lost == 2);
    switch.until(|port| port.carrier() == Some(false));
    assert_eq!(switch.port.agent_status().counters.broken, 1);
    is_whole_again(&mut switch, "it has read one of two");
}

pub fn while_a_port_is_paused_no_packet_expires() {
    let mut switch = Switch::with(impatient);
    let _agent = switch.client();
    switch.give(&numbered(1, 300));
    let pfc = |time| {
        let pfc = Pfc::of(PrioritySet::from_bits(8), Quanta(time));
        MacControl::Pfc(pfc).emit(MacAddr([2; 6]))
    };
    switch.give(&pfc(0xffff));
    let began = Instant::now();
    // Longer than the hold limit.
    switch.until(|_| began.elapsed().as_millis() > 60);
    assert_eq!((switch.port.agent_status().cache.expired, switch.port.carrier()), (0, Some(true)));
    switch.give(&pfc(0));
    switch.until(|port| port.carrier() == Some(false));
    assert_eq!(switch.port.agent_status().cache.expired, 1);
}

pub fn an_agent_that_reads_and_never_answers_is_detached_when_it_has_all_there_is() {
    let mut switch = Switch::with(impatient);
    let rogue = Rogue::attach(&mut switch);
    let began = Instant::now();
    while switch.port.carrier() == Some(true) {
        assert!(began.elapsed() < LIMIT);
        if switch.port.room() > 0 {
            switch.give(&numbered(1, 300));
        }
        rogue.read_all();
        switch.take();
        std::thread::yield_now();
    }
    // Two for each buffer: packets held in it, and expired packets.
    assert_eq!(switch.port.agent_status().cache.expired, 8);
    assert_eq!(switch.port.agent_status().counters.broken, 1);
    is_whole_again(&mut switch, "it kept all");
}
