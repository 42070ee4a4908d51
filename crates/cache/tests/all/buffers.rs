//! Tests of a payload cache, case by case (paper 003, section 3).

use axon_cache::{
    CacheConfig, CacheCounters, ConfigError, FetchError, Full, Handle, HandleFault, OnSent,
    PayloadCache, ReplaceError, Side, State,
};
use axon_wire::{FrameBuf, Span, Time};

type Cache = PayloadCache<FrameBuf>;

const NOW: Time = Time::ZERO;
const HEAD: usize = 100;

/// Returns a configuration with this number of buffers, two of which are in the send segment.
fn config(buffers: usize) -> CacheConfig {
    CacheConfig { buffers, send_buffers: 2, head_bytes: HEAD, hold_max: None, seed: 11 }
}

fn cache(buffers: usize) -> Cache {
    PayloadCache::new(config(buffers)).unwrap()
}

fn frame(name: u8) -> FrameBuf {
    FrameBuf::new(&[name; 1000])
}

fn receive(cache: &mut Cache, name: u8) -> Handle {
    cache.receive(NOW, frame(name)).unwrap().handle
}

fn name(frame: &FrameBuf) -> u8 {
    frame.bytes()[0]
}

fn fault(cache: &mut Cache, handle: Handle) -> HandleFault {
    cache.send(handle, 0).unwrap_err().fault
}

#[test]
fn nothing_unread_is_evicted_and_buffers_are_given_in_a_ring() {
    let mut cache = cache(3);
    let handles = [1, 2, 3].map(|name| receive(&mut cache, name));
    assert_eq!((cache.room(), cache.in_use()), (0, 3));
    let refused = cache.receive(NOW, frame(4)).unwrap_err();
    assert_eq!(refused.error, Full { side: Side::Receive, buffers: 3 });
    assert_eq!(name(&refused.payload), 4, "the frame comes back");

    let buffer = |handle: Handle| handle.raw() & 0xffff;
    assert_eq!(handles.map(buffer), [0, 1, 2]);
    assert_eq!(name(&cache.release(handles[2]).unwrap()), 3);
    assert_eq!(name(&cache.release(handles[0]).unwrap()), 1);
    assert_eq!(cache.room(), 2, "the one between them is held");
    let next = [5, 6].map(|name| receive(&mut cache, name));
    assert_eq!(next.map(buffer), [0, 2], "round the ring, not the one that was freed first");
    assert!(cache.receive(NOW, frame(7)).is_err());
    assert_eq!(name(&cache.send(handles[1], 0).unwrap()), 2);
    let CacheCounters { received, hits, released, full, in_use_max, .. } = *cache.counters();
    assert_eq!((received, hits, released, full, in_use_max), (5, 1, 2, 2, 3));
}

#[test]
fn a_payload_that_is_held_for_long_holds_up_no_other_one() {
    let mut cache = cache(4);
    let held = receive(&mut cache, 1);
    let own = cache.bring(NOW, frame(2)).unwrap().handle;
    for round in 0..100 {
        let handle = receive(&mut cache, round);
        assert_eq!(name(&cache.send(handle, 0).unwrap()), round);
        let handle = cache.bring(NOW, frame(round)).unwrap().handle;
        assert_eq!(name(&cache.send(handle, 0).unwrap()), round);
    }
    assert_eq!((cache.room(), cache.send_room()), (3, 1));
    assert_eq!((cache.counters().full, cache.counters().send_full), (0, 0));
    assert_eq!(name(&cache.send(held, 0).unwrap()), 1);
    assert_eq!(name(&cache.send(own, 0).unwrap()), 2);
}

#[test]
fn a_kept_payload_is_sent_again_until_its_buffer_is_given_away_and_then_is_a_miss() {
    let mut cache = cache(2);
    let kept = receive(&mut cache, 1);
    for _ in 0..3 {
        assert_eq!(name(cache.send_kept(kept, 40).unwrap()), 1);
        assert_eq!(cache.state(kept).unwrap(), State::Valid);
    }
    assert_eq!(cache.room(), 2, "it was sent, so it may make room");
    receive(&mut cache, 2);
    let attached = cache.receive(NOW, frame(3)).unwrap();
    assert_eq!(attached.evicted.as_ref().map(name), Some(1));
    assert_eq!(fault(&mut cache, kept), HandleFault::Reallocated);

    // The agent has to bring the payload. This is the cost of a miss.
    let own = cache.bring(NOW, frame(1)).unwrap().handle;
    assert_eq!(name(&cache.send(own, 0).unwrap()), 1);
    let counters = *cache.counters();
    assert_eq!((counters.hits, counters.misses, counters.own, counters.evicted), (3, 1, 1, 1));
    assert_eq!(counters.saved_bytes, 3 * (1000 - HEAD as u64));
    assert_eq!(counters.copied_to_agent_bytes, 3 * HEAD as u64);
    assert_eq!(counters.copied_from_agent_bytes, 3 * 40 + 1000);
}

#[test]
fn what_an_agent_brings_displaces_nothing_that_came_in() {
    let mut cache = cache(2);
    let handles = [1, 2].map(|name| receive(&mut cache, name));
    assert_eq!(name(cache.send_kept(handles[0], 0).unwrap()), 1);
    for round in 0..10 {
        let own = cache.bring(NOW, frame(round)).unwrap().handle;
        assert_eq!(name(cache.send_kept(own, 0).unwrap()), round);
    }
    assert_eq!(cache.state(handles[0]).unwrap(), State::Valid);
    assert_eq!(name(&cache.send(handles[1], 0).unwrap()), 2);
    assert_eq!(name(&cache.send(handles[0], 0).unwrap()), 1);
    assert_eq!(cache.counters().evicted, 8, "two stay in the send segment");
    (0..2).for_each(|name| drop(cache.bring(NOW, frame(name)).unwrap()));
    let refused = cache.bring(NOW, frame(9)).unwrap_err();
    assert_eq!(refused.error, Full { side: Side::Send, buffers: 2 });
    assert_eq!((cache.counters().send_full, cache.counters().full), (1, 0));
}

#[test]
fn a_handle_is_good_once_for_one_agent_and_for_one_payload() {
    let (mut cache, other) = (cache(2), CacheConfig { seed: 12, ..config(2) });
    let mut other: Cache = PayloadCache::new(other).unwrap();
    let (mine, foreign) = (receive(&mut cache, 1), receive(&mut other, 2));
    assert_eq!(fault(&mut cache, foreign), HandleFault::Forged);
    assert_eq!(fault(&mut cache, Handle::NONE), HandleFault::Forged);
    let generation = 1 << 16;
    for step in [generation, 0u64.wrapping_sub(generation)] {
        let forged = Handle::from_raw(mine.raw().wrapping_add(step));
        assert_eq!(fault(&mut cache, forged), HandleFault::Forged);
    }
    assert!(cache.send(mine, 0).is_ok());
    assert_eq!(fault(&mut cache, mine), HandleFault::Gone);
    assert_eq!(cache.release(mine).unwrap_err().fault, HandleFault::Gone);
    assert_ne!(receive(&mut cache, 3), receive(&mut cache, 4));
    assert_eq!(cache.release(mine).unwrap_err().fault, HandleFault::Reallocated);
    let CacheCounters { forged, stale, misses, hits, .. } = *cache.counters();
    assert_eq!((forged, stale, misses, hits), (4, 3, 0, 1));
    assert_eq!(name(&other.send(foreign, 0).unwrap()), 2, "the other agent lost nothing");
}

#[test]
fn a_payload_that_is_held_for_too_long_comes_back_the_oldest_first() {
    let held = Span::from_micros(10);
    let at = Time::from_nanos;
    let config = CacheConfig { hold_max: Some(held), ..config(3) };
    let mut cache: Cache = PayloadCache::new(config).unwrap();
    assert_eq!(cache.next_expiry(), None);
    let first = cache.receive(at(0), frame(1)).unwrap().handle;
    let second = cache.receive(at(500), frame(2)).unwrap().handle;
    let third = cache.bring(at(300), frame(3)).unwrap().handle;
    assert_eq!(cache.next_expiry(), Some(at(10_000)));
    assert_eq!(cache.expire(at(9_999)), None);
    let expired = cache.expire(at(10_500)).map(|(handle, frame)| (handle, name(&frame)));
    assert_eq!(expired, Some((first, 1)));
    assert_eq!(fault(&mut cache, first), HandleFault::Gone);
    assert_eq!(cache.next_expiry(), Some(at(10_300)));
    assert_eq!(cache.expire(at(10_500)).map(|(handle, _)| handle), Some(second));
    assert_eq!(cache.expire(at(10_500)).map(|(handle, _)| handle), Some(third));
    assert_eq!((cache.expire(Time::MAX), cache.next_expiry()), (None, None));
    assert_eq!((cache.counters().expired, cache.room()), (3, 3));
}

#[test]
fn payloads_expire_by_how_long_they_are_held_wherever_their_buffers_are() {
    let hold_max = Some(Span::from_nanos(1000));
    let mut cache: Cache = PayloadCache::new(CacheConfig { hold_max, ..config(4) }).unwrap();
    let at = Time::from_nanos;
    let mut handles = [0, 1, 2, 3].map(|nanos| cache.receive(at(nanos), frame(1)).unwrap().handle);
    cache.send(handles[1], 0).unwrap();
    // This buffer comes after the first one, so the third one is next on the ring.
    let last = cache.receive(at(4), frame(2)).unwrap().handle;
    assert_eq!(last.raw() & 0xffff, 1);
    handles[1] = last;
    let expired = std::iter::from_fn(|| cache.expire(at(2000)).map(|(handle, _)| handle));
    assert_eq!(expired.collect::<Vec<_>>(), [0, 2, 3, 1].map(|at: usize| handles[at]));
}

#[test]
fn a_payload_with_a_pending_transfer_expires_when_that_has_ended_and_is_not_passed() {
    let hold_max = Some(Span::from_nanos(10));
    let mut cache: Cache = PayloadCache::new(CacheConfig { hold_max, ..config(4) }).unwrap();
    let coming = cache.begin_receive(NOW).unwrap().handle;
    let held = receive(&mut cache, 2);
    let late = Time::from_nanos(10);
    assert_eq!((cache.next_expiry(), cache.expire(late)), (None, None));
    cache.filled(coming, frame(1)).unwrap();
    cache.delivered(coming).unwrap();
    assert_eq!(cache.expire(late).map(|(handle, _)| handle), Some(coming));
    assert_eq!(cache.expire(late).map(|(handle, _)| handle), Some(held));
}

#[test]
fn a_payload_is_replaced_or_nothing_has_changed() {
    let mut cache = cache(2);
    let old = receive(&mut cache, 1);
    let (attached, was) = cache.replace(NOW, old, frame(7)).unwrap();
    assert_eq!(name(&was), 1);
    assert_eq!(fault(&mut cache, old), HandleFault::Gone, "the first one is invalid");
    let again = cache.replace(NOW, attached.handle, frame(8)).unwrap().0.handle;
    assert_eq!(name(&cache.send(again, 0).unwrap()), 8);
    assert_eq!((cache.counters().replaced, cache.counters().own), (2, 1));

    let old = receive(&mut cache, 2);
    (0..2).for_each(|name| drop(cache.bring(NOW, frame(name)).unwrap()));
    let refused = cache.replace(NOW, old, frame(9)).unwrap_err();
    assert_eq!(refused.error, ReplaceError::Full(Full { side: Side::Send, buffers: 2 }));
    assert_eq!(name(&refused.payload), 9);
    assert_eq!(name(&cache.send(old, 0).unwrap()), 2, "the old one is as it was");
}

#[test]
fn the_agent_reads_a_part_and_pays_for_that_alone() {
    let mut cache = cache(2);
    let whole: Vec<u8> = (0..=255).collect();
    let handle = cache.receive(NOW, FrameBuf::new(&whole)).unwrap().handle;
    assert_eq!(cache.fetch(handle, 200..210).unwrap(), &whole[200..210]);
    let before = *cache.counters();
    assert_eq!(before.copied_to_agent_bytes, HEAD as u64 + 10);
    #[allow(clippy::reversed_empty_ranges)]
    for (start, end) in [(0, 257), (10, 9), (usize::MAX, usize::MAX)] {
        let error = cache.fetch(handle, start..end).unwrap_err();
        assert_eq!(error, FetchError::Range { handle, start, end, bytes: 256 });
    }
    assert_eq!(*cache.counters(), before);
    let small = cache.receive(NOW, FrameBuf::new(&[1; 60])).unwrap().handle;
    assert_eq!(cache.counters().copied_to_agent_bytes, HEAD as u64 + 10 + 60);
    assert!(cache.send(small, usize::MAX).is_ok());
    assert!(cache.send(handle, usize::MAX).is_ok(), "the counter is at its end");
    assert_eq!(cache.counters().saved_bytes, 156, "all of the small one had crossed");
}

#[test]
fn a_frame_is_filled_delivered_and_sent_in_the_steps_of_table_3() {
    let mut cache = cache(2);
    let handle = cache.begin_receive(NOW).unwrap().handle;
    assert_eq!(cache.state(handle).unwrap(), State::Fill);
    assert_eq!(fault(&mut cache, handle), HandleFault::InTransfer);
    assert_eq!(cache.delivered(handle).unwrap_err().fault, HandleFault::NoTransfer);
    cache.filled(handle, frame(1)).unwrap();
    assert_eq!(cache.filled(handle, frame(2)).unwrap_err().error.fault, HandleFault::NoTransfer);
    assert_eq!(cache.state(handle).unwrap(), State::Drain);
    assert_eq!(fault(&mut cache, handle), HandleFault::InTransfer, "it is being read");
    assert_eq!(cache.end_send(handle).unwrap_err().fault, HandleFault::NoTransfer);

    // A payload may be sent while it drains to the agent.
    assert_eq!(name(cache.begin_send(handle, 0, OnSent::Keep).unwrap()), 1);
    assert_eq!(cache.delivered(handle).unwrap(), None);
    assert_eq!(cache.state(handle).unwrap(), State::Drain);
    assert_eq!(cache.end_send(handle).unwrap(), None);
    assert_eq!(cache.state(handle).unwrap(), State::Valid);
    assert_eq!(name(cache.begin_send(handle, 0, OnSent::Free).unwrap()), 1);
    assert_eq!(fault(&mut cache, handle), HandleFault::Gone, "it is on its way for good");
    assert_eq!(cache.end_send(handle).unwrap().as_ref().map(name), Some(1));
    assert_eq!(cache.state(handle).unwrap(), State::Free);
}

#[test]
fn a_kept_payload_that_is_being_sent_is_not_evicted() {
    let mut cache = cache(2);
    let kept = receive(&mut cache, 1);
    assert!(cache.send_kept(kept, 0).is_ok());
    receive(&mut cache, 2);
    assert_eq!(cache.room(), 1);
    assert!(cache.begin_send(kept, 0, OnSent::Keep).is_ok());
    assert_eq!(cache.room(), 0);
    assert!(cache.receive(NOW, frame(3)).is_err());
    assert_eq!(cache.end_send(kept).unwrap(), None);
    assert_eq!(cache.receive(NOW, frame(3)).unwrap().evicted.as_ref().map(name), Some(1));
}

#[test]
fn what_the_agent_brings_goes_out_when_it_is_here() {
    let mut cache = cache(2);
    let own = cache.begin_own(NOW, OnSent::Free).unwrap().handle;
    assert_eq!(cache.state(own).unwrap(), State::Fill);
    assert_eq!(cache.end_send(own).unwrap_err().fault, HandleFault::NoTransfer);
    cache.filled(own, frame(1)).unwrap();
    assert_eq!(cache.end_send(own).unwrap().as_ref().map(name), Some(1));
    let CacheCounters { own, hits, copied_from_agent_bytes, .. } = *cache.counters();
    assert_eq!((own, hits, copied_from_agent_bytes), (1, 0, 1000));
}

#[test]
fn no_more_transfers_begin_than_can_be_counted() {
    let mut cache = cache(2);
    let handle = receive(&mut cache, 1);
    for _ in 0..255 {
        assert!(cache.begin_send(handle, 0, OnSent::Keep).is_ok());
    }
    let error = cache.begin_send(handle, 0, OnSent::Keep).unwrap_err();
    assert_eq!(error.fault, HandleFault::InTransfer);
    (0..255).for_each(|_| assert_eq!(cache.end_send(handle).unwrap(), None));
    assert_eq!(cache.end_send(handle).unwrap_err().fault, HandleFault::NoTransfer);
    assert_eq!((cache.counters().hits, cache.in_use()), (255, 0));
}

#[test]
fn when_an_agent_dies_all_buffers_come_back_and_late_transfers_are_refused() {
    let mut cache = cache(4);
    let held = receive(&mut cache, 1);
    let kept = receive(&mut cache, 2);
    assert!(cache.send_kept(kept, 0).is_ok());
    let filling = cache.begin_receive(NOW).unwrap().handle;
    cache.bring(NOW, frame(3)).unwrap();
    let mut out = Vec::new();
    assert_eq!(cache.reset(|frame| out.push(name(&frame))), 3, "the kept one was sent");
    assert_eq!(out, [1, 2, 3]);
    assert_eq!((cache.room(), cache.send_room(), cache.in_use()), (4, 2, 0));
    assert_eq!(cache.counters().reset, 4);
    assert_eq!(fault(&mut cache, held), HandleFault::Gone);
    let refused = cache.filled(filling, frame(4)).unwrap_err();
    assert_eq!((refused.error.fault, name(&refused.payload)), (HandleFault::NoTransfer, 4));
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let refused = |config| PayloadCache::<FrameBuf>::new(config).unwrap_err();
    assert_eq!(refused(config(0)), ConfigError::NoBuffers(Side::Receive));
    let no_send = CacheConfig { send_buffers: 0, ..config(1) };
    let text = "0 send buffers: at least 1 expected";
    assert_eq!(refused(no_send).to_string(), text);
    let text = "65534 + 2 payload buffers: at most 65535 together expected";
    assert_eq!(refused(config(65_534)).to_string(), text);
    assert!(PayloadCache::<FrameBuf>::new(config(65_533)).is_ok());
    let many = CacheConfig { send_buffers: usize::MAX, ..config(usize::MAX) };
    assert!(matches!(refused(many), ConfigError::TooManyBuffers { .. }));
}

#[test]
fn settings_and_counters_are_read_and_written_by_name() {
    let config: CacheConfig = serde_json::from_str(r#"{"buffers": 9}"#).unwrap();
    assert_eq!(config, CacheConfig { buffers: 9, ..CacheConfig::default() });
    let error = serde_json::from_str::<CacheConfig>(r#"{"bufers": 9}"#).unwrap_err();
    assert!(error.to_string().contains("unknown field `bufers`"), "{error}");
    let mut cache = cache(1);
    receive(&mut cache, 1);
    let text = serde_json::to_string(cache.counters()).unwrap();
    assert!(text.starts_with(r#"{"received":1,"brought":0,"hits":0"#), "{text}");
    assert_eq!(serde_json::from_str::<CacheCounters>(&text).unwrap(), *cache.counters());
    let error = cache.send(Handle::from_raw(0x0001_0000), 0).unwrap_err();
    assert_eq!(error.to_string(), "payload handle 0@0x1: never given out by this cache");
}
