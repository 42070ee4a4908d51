//! Operations of a correct agent on packets.

use super::support::{Switch, bytes, numbered, packet};
use axon_agents::{Full, Outbox};
use axon_cache::Handle;
use axon_linux::agent_port::client::{Client, Given};
use axon_linux::agent_port::{PayloadMode, WhenFull};
use axon_linux::port::Port;
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::PrioritySet;
use axon_wire::{FrameBuf, MacAddr};

const BOTH: [PayloadMode; 2] = [PayloadMode::Cached, PayloadMode::Copied];

pub fn a_payload_that_stays_does_not_move_and_only_heads_are_copied() {
    let mut switch = Switch::with(|_| {});
    let mut agent = switch.client();
    let mut frames = vec![FrameBuf::new(&numbered(1, 1500))];
    let place = frames[0].bytes().as_ptr();
    switch.port.transmit(&mut frames).unwrap();
    assert!(frames.is_empty(), "the port keeps it");
    let packet = packet(&mut agent);
    assert_eq!((packet.head_bytes, packet.frame_bytes), (128, 1500));
    assert!(agent.payload(packet.handle).unwrap().is_empty());
    let head = agent.head(packet.handle).unwrap();
    assert_eq!(head, &numbered(1, 1500)[..128]);
    head[5] = 0xee;
    agent.forward(packet.handle);
    assert!(switch.take().is_empty(), "before the agent shows it");
    agent.flush();
    let out = switch.take();
    let mut wanted = numbered(1, 1500);
    wanted[5] = 0xee;
    assert_eq!(bytes(&out), [wanted]);
    assert_eq!(out[0].bytes().as_ptr(), place);
    let status = switch.port.agent_status();
    assert_eq!(status.counters.copied_to_agent_bytes, 128);
    assert_eq!(status.counters.copied_from_agent_bytes, 128);
    assert_eq!(status.cache.copied_to_agent_bytes, 128);
    assert_eq!(status.cache.copied_from_agent_bytes, 128);
    assert_eq!(status.cache.saved_bytes, 1500 - 128);
}

pub fn without_payload_caching_the_whole_frame_crosses_twice() {
    let mut switch = Switch::with(|setup| setup.payload = PayloadMode::Copied);
    let mut agent = switch.client();
    assert_eq!(switch.give(&numbered(1, 1500)).len(), 1, "its memory is free again");
    let packet = packet(&mut agent);
    assert_eq!((packet.head_bytes, packet.frame_bytes), (128, 1500));
    assert_eq!(agent.payload(packet.handle).unwrap(), &numbered(1, 1500)[128..]);
    agent.head(packet.handle).unwrap()[0] = 9;
    agent.payload(packet.handle).unwrap()[0] = 7;
    agent.forward(packet.handle);
    agent.flush();
    let mut wanted = numbered(9, 1500);
    wanted[128] = 7;
    assert_eq!(bytes(&switch.take()), [wanted]);
    let counters = switch.port.agent_status().counters;
    assert_eq!(counters.copied_to_agent_bytes + counters.copied_from_agent_bytes, 3000);
}

pub fn heads_become_longer_and_shorter_in_front_of_a_payload_that_stays() {
    for payload in BOTH {
        let mut switch = Switch::with(|setup| setup.payload = payload);
        let mut agent = switch.client();
        for (bytes_of_head, front) in [(128 + 14, 14), (128 + 96, 96), (100, 0), (0, 0)] {
            switch.give(&numbered(1, 1000));
            let handle = packet(&mut agent).handle;
            assert!(agent.resize_head(handle, bytes_of_head));
            assert_eq!(agent.head(handle).unwrap().len(), bytes_of_head);
            agent.head(handle).unwrap()[..front].fill(0xaa);
            agent.forward(handle);
            agent.flush();
            let mut wanted = vec![0xaa; front];
            wanted.extend_from_slice(&numbered(1, 1000)[(128 + front) - bytes_of_head..]);
            assert_eq!(bytes(&switch.take()), [wanted], "{payload:?} {bytes_of_head}");
        }
        switch.give(&numbered(1, 1000));
        let handle = packet(&mut agent).handle;
        assert!(!agent.resize_head(handle, 128 + 97), "there are 96 bytes before it");
        assert_eq!(agent.head(handle).unwrap().len(), 128);
    }
}

pub fn a_payload_is_fetched_in_part_and_only_as_far_as_it_goes() {
    for payload in BOTH {
        let mut switch = Switch::with(|setup| setup.payload = payload);
        let mut agent = switch.client();
        switch.give(&numbered(1, 1000));
        let handle = packet(&mut agent).handle;
        let parts = [(0, 4), (200, 300), (900, 500), (1000, 1), (5000, 1), (0, usize::MAX)];
        for (offset, length) in parts {
            agent.fetch(handle, offset, length);
            agent.flush();
            switch.take();
            let Some(Given::Payload(part)) = agent.next_given().unwrap() else { panic!() };
            let frame = numbered(1, 1000);
            let wanted = &frame[offset.min(1000)..offset.saturating_add(length).min(1000)];
            assert_eq!((part.handle, part.offset), (handle, offset.min(1000)));
            assert_eq!(agent.fetched(part), wanted, "{payload:?} {offset}+{length}");
        }
        agent.forward(handle);
        agent.flush();
        assert_eq!(bytes(&switch.take()), [numbered(1, 1000)], "it is held all the time");
    }
}

pub fn more_is_fetched_than_the_agent_has_buffers() {
    let mut switch = Switch::with(|setup| setup.send_buffers = 2);
    let mut agent = switch.client();
    switch.give(&numbered(1, 1000));
    let handle = packet(&mut agent).handle;
    (0..10).for_each(|part| agent.fetch(handle, 100 * part, 100));
    for part in 0..10 {
        agent.flush();
        switch.take();
        let Some(Given::Payload(given)) = agent.next_given().unwrap() else { panic!("{part}") };
        assert_eq!(given.offset, 100 * part);
        assert_eq!(agent.fetched(given), &numbered(1, 1000)[100 * part..][..100]);
    }
}

pub fn a_payload_is_replaced_and_frames_of_the_agents_own_are_sent() {
    for payload in BOTH {
        let mut switch = Switch::with(|setup| (setup.payload, setup.buffers) = (payload, 8));
        let mut agent = switch.client();
        for round in 0..100 {
            switch.give(&numbered(round, 1000));
            let handle = packet(&mut agent).handle;
            agent.replace(handle, &[round; 50]).unwrap();
            agent.send(&[0xbb; 60]).unwrap();
            agent.flush();
            let mut wanted = numbered(round, 128);
            wanted.extend_from_slice(&[round; 50]);
            assert_eq!(bytes(&switch.take()), [wanted, vec![0xbb; 60]]);
            // The buffers are returned.
            assert_eq!(agent.next_given().unwrap(), None);
        }
        assert_eq!(agent.send(&[0; 4000]), Err(Full), "too long");
        let sent = (0..1000).take_while(|_| agent.send(&[1; 60]).is_ok()).count();
        assert_eq!(sent, agent.layout().buffers, "until all its buffers are on their way");
        let counters = switch.port.agent_status().counters;
        assert_eq!((counters.replaced, counters.sent, counters.forwarded), (100, 100, 100));
    }
}

pub fn a_port_without_room_is_busy_or_drops_and_counts() {
    for when_full in [WhenFull::Wait, WhenFull::Drop] {
        let mut switch = Switch::with(|setup| (setup.when_full, setup.buffers) = (when_full, 3));
        let mut agent = switch.client();
        let waits = when_full == WhenFull::Wait;
        for number in 0..3 {
            let room = if waits { 3 - usize::from(number) } else { usize::MAX };
            assert_eq!(switch.port.room(), room);
            assert!(switch.give(&numbered(number, 100)).is_empty());
        }
        assert_eq!(switch.port.room(), if waits { 0 } else { usize::MAX });
        assert_eq!(switch.give(&numbered(9, 100)).len(), 1, "never an overwrite");
        assert_eq!(switch.port.agent_status().counters.full_drops, 1);
        let handles: Vec<_> = (0..3).map(|_| packet(&mut agent).handle).collect();
        assert_eq!(agent.next_given().unwrap(), None);
        handles.into_iter().for_each(|handle| agent.forward(handle));
        agent.flush();
        let all: Vec<Vec<u8>> = (0..3).map(|number| numbered(number, 100)).collect();
        assert_eq!(bytes(&switch.take()), all);
        assert_eq!(switch.port.room(), if waits { 3 } else { usize::MAX });
    }
}

pub fn packets_are_answered_in_any_order_and_dropped_ones_are_gone() {
    let mut switch = Switch::with(|setup| setup.buffers = 64);
    let mut agent = switch.client();
    let mut random = oorandom::Rand32::new(7);
    let mut held = Vec::new();
    let mut wanted = Vec::new();
    for number in 0..20_000u32 {
        if switch.port.room() > 0 {
            switch.give(&numbered(number as u8, 64 + number as usize % 1400));
            held.push((packet(&mut agent).handle, number));
        }
        if random.rand_range(0..64) < held.len() as u32 {
            let (handle, number) =
                held.swap_remove(random.rand_range(0..held.len() as u32) as usize);
            if random.rand_u32().is_multiple_of(4) {
                agent.drop(handle);
            } else {
                agent.forward(handle);
                wanted.push(numbered(number as u8, 64 + number as usize % 1400));
            }
            agent.flush();
        }
        if random.rand_u32().is_multiple_of(8) {
            assert_eq!(bytes(&switch.take()), wanted);
            wanted.clear();
        }
    }
    let counters = switch.port.agent_status().counters;
    assert!(counters.dropped > 100, "{counters:?}");
}

pub fn a_paused_port_takes_nothing_from_its_agent_and_gives_it_no_flow_control_frames() {
    let mut switch = Switch::with(|_| {});
    let mut agent = switch.client();
    switch.give(&numbered(1, 100));
    let mut pfc = |time| {
        let pfc = MacControl::Pfc(Pfc::of(PrioritySet::from_bits(8), Quanta(time)));
        switch.give(&pfc.emit(MacAddr([2; 6])));
        switch.port.has_frame()
    };
    pfc(0xffff);
    let handle = packet(&mut agent).handle;
    assert_eq!(agent.next_given().unwrap(), None);
    agent.forward(handle);
    agent.flush();
    assert_eq!(pfc(0xffff), Some(false));
    assert!(switch.take().is_empty());
    let pfc = MacControl::Pfc(Pfc::of(PrioritySet::from_bits(8), Quanta::ZERO));
    switch.give(&pfc.emit(MacAddr([2; 6])));
    assert_eq!(switch.port.has_frame(), Some(true));
    assert_eq!(bytes(&switch.take()), [numbered(1, 100)]);
}

pub fn a_second_agent_one_of_another_version_and_what_is_no_agent_are_refused_with_the_reason() {
    let mut switch = Switch::with(|_| {});
    let path = switch.setup.socket.clone();
    let agent = switch.client();
    let second = switch.attach(|| Client::connect(&path, "second").map(drop).unwrap_err());
    let own = std::process::id();
    let why = format!("agent \"test\" (process {own}) is attached to this port already");
    assert_eq!(second.to_string(), why);
    drop(agent);
    switch.until(|port| port.carrier() == Some(false));
    for (at, why) in [(8, "is made for version"), (0, "this is not the hello of an agent")] {
        let refused = switch.attach(|| {
            let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
            let mut hello = axon_linux::agent_port::handshake::hello("old");
            hello[at] ^= 0x0f;
            std::io::Write::write_all(&mut stream, &hello).unwrap();
            axon_linux::agent_port::handshake::parse_answer(&stream).map(drop).unwrap_err()
        });
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert_eq!(switch.port.agent_status().counters.refused, 3);
    assert_eq!(switch.port.carrier(), Some(false));
    switch.client();
}

pub fn what_was_fetched_of_a_packet_does_not_come_once_the_packet_was_decided_on() {
    for payload in BOTH {
        let mut switch = Switch::with(|setup| (setup.send_buffers, setup.payload) = (1, payload));
        let mut agent = switch.client();
        switch.give(&numbered(1, 1000));
        let handle = packet(&mut agent).handle;
        // No buffer is left for the second part.
        agent.fetch(handle, 0, 100);
        agent.fetch(handle, 100, 100);
        agent.forward(handle);
        agent.flush();
        assert_eq!(bytes(&switch.take()), [numbered(1, 1000)]);
        assert_eq!(agent.next_given().unwrap(), None, "{payload:?}");
        agent.flush();
        switch.take();
        assert_eq!(agent.next_given().unwrap(), None, "{payload:?}");
        agent.send(&numbered(2, 60)).expect("its buffer is free");
        agent.flush();
        assert_eq!(bytes(&switch.take()), [numbered(2, 60)]);
        assert_eq!(switch.port.agent_status().counters.answers_refused, 0);
    }
}

pub fn answers_to_what_is_not_held_take_no_room_from_other_answers() {
    let mut switch = Switch::with(|setup| (setup.buffers, setup.send_buffers) = (16, 16));
    let mut agent = switch.client();
    for round in 1..=3 {
        (0..16).for_each(|number| drop(switch.give(&numbered(number, 300))));
        let unheld = Handle::from_raw(7);
        for _ in 0..1000 {
            agent.forward(unheld);
            agent.fetch(unheld, 0, 10);
            agent.replace(unheld, b"x").unwrap();
        }
        for _ in 0..16 {
            let handle = packet(&mut agent).handle;
            agent.forward(handle);
            agent.drop(handle);
        }
        (0..16).for_each(|number| agent.send(&numbered(number, 60)).unwrap());
        agent.flush();
        let frames = switch.until(|port| port.agent_status().counters.sent == 16 * round);
        assert_eq!(frames.len(), 32);
        assert_eq!(agent.next_given().expect("nobody has broken anything"), None);
        assert!(switch.port.agent_status().counters.answers_refused >= round);
    }
}
