//! Agents that have a cache each, and a model of each cache.

use super::agent::{Kind, Known, Op, any, below};
use super::fates::Fates;
use super::model::{Model, Stored};
use super::payload::Payload;
use axon_cache::{
    Attached, CacheConfig, CacheCounters, FetchError, Handle, HandleError, HandleFault, OnSent,
    PayloadCache, ReplaceError, Side, State,
};
use axon_node::random::Random;
use axon_wire::{Span, Time};

/// An agent, its cache, and the model of the cache.
struct Seat {
    kind: Kind,
    cache: PayloadCache<Payload>,
    model: Model,
    known: Known,
}

/// State of one run.
pub struct World {
    seats: Vec<Seat>,
    fates: Fates,
    random: Random,
    now: Time,
}

impl World {
    /// Makes one agent of each kind, with caches of random sizes.
    pub fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let seats = Kind::ALL.iter().map(|&kind| {
            let sizes = [1, 2, 3, 8, 16, 24, 70];
            let config = CacheConfig {
                buffers: sizes[below(&mut random, sizes.len())],
                send_buffers: 1 + below(&mut random, 6),
                head_bytes: below(&mut random, 40),
                hold_max: [None, Some(Span::from_ticks(below(&mut random, 400) as u64))]
                    [below(&mut random, 4).min(1)],
                seed: random.next_u64(),
            };
            let cache = PayloadCache::new(config).unwrap();
            Seat { kind, cache, model: Model::new(config), known: Known::default() }
        });
        let seats = seats.collect();
        World { seats, fates: Fates::default(), random, now: Time::ZERO }
    }

    /// Performs one operation of one agent on its cache and on the model. Both must agree.
    pub fn step(&mut self) {
        self.now += Span::from_ticks(below(&mut self.random, 3) as u64);
        let at = below(&mut self.random, self.seats.len());
        let op = self.seats[at].kind.next(&mut self.random);
        let other = below(&mut self.random, self.seats.len());
        let other = match other == at {
            true => None,
            false => any(&self.seats[other].known.present, &mut self.random),
        };
        let seat = &self.seats[at];
        let handle = match op {
            Op::Filled | Op::Delivered | Op::EndSend => {
                any(&seat.known.transfers, &mut self.random)
            }
            _ => None,
        };
        let handle = handle.unwrap_or_else(|| seat.known.pick(seat.kind, other, &mut self.random));
        match op {
            Op::Receive | Op::Bring => self.take_in(at, op),
            Op::BeginReceive | Op::BeginOwn => self.begin(at, op),
            Op::Filled => self.fill(at, handle),
            Op::Delivered | Op::EndSend => self.end(at, op, handle),
            Op::Send => self.send(at, handle),
            Op::SendKept | Op::BeginSend => self.show(at, op, handle),
            Op::Release => self.release(at, handle),
            Op::Fetch => self.fetch(at, handle),
            Op::Replace => self.replace(at, handle),
            Op::Expire => self.expire(at),
            Op::Reset => self.reset(at),
        }
        self.compare(at, handle);
    }

    /// Empties all caches and looks for lost payloads. Returns all counters, and the number of
    /// times that a buffer was given away past others in use.
    pub fn finish(mut self) -> Vec<(CacheCounters, u64)> {
        (0..self.seats.len()).for_each(|at| self.reset(at));
        self.fates.finish();
        let counted = |seat: &Seat| (*seat.cache.counters(), seat.model.passed);
        self.seats.iter().map(counted).collect()
    }

    /// Compares the visible state of the cache with the model.
    fn compare(&mut self, at: usize, handle: u64) {
        let Seat { cache, model, .. } = &mut self.seats[at];
        assert_eq!(*cache.counters(), model.counters);
        assert_eq!((cache.room(), cache.send_room()), (model.room(), model.send_room()));
        let in_use = (cache.in_use(), cache.send_in_use());
        assert_eq!(in_use, (model.in_use(), model.send_in_use()));
        assert_eq!(cache.next_expiry(), model.next_expiry());
        let state = cache.state(Handle::from_raw(handle)).map_err(|error| error.fault);
        assert_eq!(state, model.state(handle));
        let counted = &model.counters;
        let out = counted.sent_for_good + counted.released + counted.replaced;
        let out = out + counted.expired + counted.reset + counted.evicted;
        assert_eq!(counted.received + counted.brought, out + model.taken() as u64);
    }

    /// Records that a buffer was given away, so that its previous payload leaves the cache.
    fn given(
        &mut self,
        at: usize,
        side: Side,
        attached: Attached<Payload>,
        evicted: Option<Stored>,
    ) -> u64 {
        let was = attached.evicted.as_ref().map(Payload::number);
        assert_eq!(was, evicted.map(|(number, _)| number));
        if let Some(number) = was {
            self.fates.evict(number, at);
        }
        let handle = attached.handle.raw();
        self.fates.give_out(handle);
        self.seats[at].model.name(side, handle);
        self.seats[at].known.get(handle);
        handle
    }

    fn enter(&mut self, at: usize) -> (usize, Payload, Stored) {
        let number = self.fates.enter(at);
        let payload = Payload::new(number);
        let stored = (number, payload.as_ref().len());
        (number, payload, stored)
    }

    /// Asserts that a payload that the cache has refused is the one offered to it.
    fn refused(&mut self, at: usize, number: usize, payload: &Payload) {
        assert_eq!(payload.number(), number);
        self.fates.come_out(number, at);
    }

    fn take_in(&mut self, at: usize, op: Op) {
        let now = self.now;
        let (number, payload, stored) = self.enter(at);
        let Seat { cache, model, .. } = &mut self.seats[at];
        let (side, got, expected) = match op {
            Op::Bring => (Side::Send, cache.bring(now, payload), model.bring(now, stored)),
            _ => (Side::Receive, cache.receive(now, payload), model.receive(now, stored)),
        };
        match (got, expected) {
            (Ok(attached), Some(evicted)) => {
                let handle = self.given(at, side, attached, evicted);
                self.fates.bind(number, handle);
            }
            (Err(refused), None) => self.refused(at, number, &refused.payload),
            (got, expected) => panic!("{got:?} where {expected:?} was expected"),
        }
    }

    fn begin(&mut self, at: usize, op: Op) {
        let (now, on_sent) = (self.now, self.on_sent());
        let Seat { cache, model, .. } = &mut self.seats[at];
        let (side, got, expected) = match op {
            Op::BeginOwn => {
                (Side::Send, cache.begin_own(now, on_sent), model.begin_own(now, on_sent))
            }
            _ => (Side::Receive, cache.begin_receive(now), model.begin_receive(now)),
        };
        match (got, expected) {
            (Ok(attached), Some(evicted)) => {
                let handle = self.given(at, side, attached, evicted);
                self.seats[at].known.transfers.push(handle);
            }
            (Err(full), None) => assert_eq!(full.side, side),
            (got, expected) => panic!("{got:?} where {expected:?} was expected"),
        }
    }

    fn fill(&mut self, at: usize, handle: u64) {
        let (number, payload, stored) = self.enter(at);
        let Seat { cache, model, .. } = &mut self.seats[at];
        let expected = model.filled(handle, stored);
        let sent = model.counts_as_sent(handle);
        match cache.filled(Handle::from_raw(handle), payload) {
            Ok(()) => {
                assert_eq!(expected, Ok(()));
                self.fates.bind(number, handle);
                // A payload that the agent brings is sent as soon as it has arrived.
                if let Some(for_good) = sent {
                    self.fates.send(number, at, handle, for_good);
                }
            }
            Err(refused) => {
                assert_eq!(Err(fault(refused.error, handle)), expected);
                self.refused(at, number, &refused.payload);
            }
        }
    }

    fn end(&mut self, at: usize, op: Op, handle: u64) {
        let Seat { cache, model, .. } = &mut self.seats[at];
        let presented = Handle::from_raw(handle);
        let (got, expected) = match op {
            Op::Delivered => (cache.delivered(presented), model.delivered(handle)),
            _ => (cache.end_send(presented), model.end_send(handle)),
        };
        match got {
            Ok(out) => {
                let out = out.as_ref().map(Payload::number);
                assert_eq!(Ok(out), expected.map(|out| out.map(|(number, _)| number)));
                if let Some(number) = out {
                    self.fates.end(number, at);
                }
            }
            Err(error) => assert_eq!(Err(fault(error, handle)), expected),
        }
        self.settle(at, handle);
    }

    /// Makes the runtime forget a handle that has no pending transfers.
    fn settle(&mut self, at: usize, handle: u64) {
        let Seat { model, known, .. } = &mut self.seats[at];
        if !matches!(model.state(handle), Ok(State::Fill | State::Drain)) {
            known.transfers.retain(|&pending| pending != handle);
        }
    }

    fn send(&mut self, at: usize, handle: u64) {
        let head_bytes = below(&mut self.random, 20);
        let Seat { cache, model, known, .. } = &mut self.seats[at];
        let expected = model.send(handle, head_bytes);
        match cache.send(Handle::from_raw(handle), head_bytes) {
            Ok(payload) => {
                let number = payload.number();
                assert_eq!(Ok(number), expected.map(|(number, _)| number));
                known.forget(handle);
                self.fates.send(number, at, handle, true);
                self.fates.end(number, at);
            }
            Err(error) => self.is_refused(at, handle, error, expected),
        }
    }

    fn show(&mut self, at: usize, op: Op, handle: u64) {
        let (head_bytes, on_sent) = (below(&mut self.random, 20), self.on_sent());
        let Seat { cache, model, known, .. } = &mut self.seats[at];
        let presented = Handle::from_raw(handle);
        let (got, expected, for_good) = match op {
            Op::SendKept => {
                let expected = model.send_kept(handle, head_bytes);
                (cache.send_kept(presented, head_bytes), expected, false)
            }
            _ => {
                let expected = model.begin_send(handle, head_bytes, on_sent);
                let got = cache.begin_send(presented, head_bytes, on_sent);
                (got, expected, on_sent == OnSent::Free)
            }
        };
        match got {
            Ok(payload) => {
                let number = payload.number();
                assert_eq!(Ok(number), expected.map(|(number, _)| number));
                if for_good {
                    known.forget(handle);
                }
                if op == Op::BeginSend {
                    known.transfers.push(handle);
                }
                self.fates.send(number, at, handle, for_good);
            }
            Err(error) => self.is_refused(at, handle, error, expected),
        }
    }

    fn release(&mut self, at: usize, handle: u64) {
        let Seat { cache, model, known, .. } = &mut self.seats[at];
        let expected = model.release(handle);
        match cache.release(Handle::from_raw(handle)) {
            Ok(payload) => {
                let number = payload.number();
                assert_eq!(Ok(number), expected.map(|(number, _)| number));
                known.forget(handle);
                self.fates.come_out(number, at);
            }
            Err(error) => self.is_refused(at, handle, error, expected),
        }
    }

    fn fetch(&mut self, at: usize, handle: u64) {
        let (start, end) = (below(&mut self.random, 66), below(&mut self.random, 66));
        let Seat { cache, model, .. } = &mut self.seats[at];
        let expected = model.fetch(handle, start, end);
        match cache.fetch(Handle::from_raw(handle), start..end) {
            Ok(part) => {
                let Ok(Ok((number, _))) = expected else { panic!("{expected:?} was expected") };
                assert_eq!(part, &Payload::new(number).as_ref()[start..end]);
            }
            Err(FetchError::Range { bytes, .. }) => assert_eq!(Ok(Err(bytes)), expected),
            Err(FetchError::Handle(error)) => {
                assert_eq!(Err(fault(error, handle)), expected);
            }
        }
    }

    fn replace(&mut self, at: usize, handle: u64) {
        let now = self.now;
        let (number, payload, stored) = self.enter(at);
        let Seat { cache, model, known, .. } = &mut self.seats[at];
        let expected = model.replace(now, handle, stored);
        match cache.replace(now, Handle::from_raw(handle), payload) {
            Ok((attached, old)) => {
                let Ok(Some((gone, evicted))) = expected else {
                    panic!("{expected:?} was expected");
                };
                assert_eq!(old.number(), gone.0);
                known.forget(handle);
                self.fates.come_out(gone.0, at);
                let handle = self.given(at, Side::Send, attached, evicted);
                self.fates.bind(number, handle);
            }
            Err(refused) => {
                self.refused(at, number, &refused.payload);
                match refused.error {
                    ReplaceError::Full(_) => assert_eq!(expected, Ok(None)),
                    ReplaceError::Handle(error) => {
                        assert_eq!(Err(fault(error, handle)), expected);
                    }
                }
            }
        }
    }

    fn expire(&mut self, at: usize) {
        let Seat { cache, model, .. } = &mut self.seats[at];
        let expected = model.expire(self.now);
        let got = cache.expire(self.now);
        let shown = got.as_ref().map(|(handle, payload)| (handle.raw(), payload.number()));
        let expected = expected.map(|(handle, out)| (handle, out.map_or(usize::MAX, |out| out.0)));
        assert_eq!(shown, expected);
        if let Some((_, number)) = shown {
            self.fates.come_out(number, at);
        }
    }

    fn reset(&mut self, at: usize) {
        let Seat { cache, model, .. } = &mut self.seats[at];
        let mut out = Vec::new();
        let lost = cache.reset(|payload| out.push(payload.number()));
        let (mut expected, expected_lost) = model.reset();
        assert_eq!(lost, expected_lost);
        out.sort_unstable();
        expected.sort_unstable();
        assert_eq!(out, expected);
        assert_eq!(cache.in_use() + cache.send_in_use(), 0, "all buffers are back");
        out.iter().for_each(|&number| self.fates.come_out(number, at));
    }

    /// Asserts that cache and model refuse a handle for the same reason. In most cases, the agent
    /// then gives the handle up.
    fn is_refused(
        &mut self,
        at: usize,
        handle: u64,
        error: HandleError,
        expected: Result<Stored, HandleFault>,
    ) {
        let fault = fault(error, handle);
        assert_eq!(Err(fault), expected);
        if fault != HandleFault::InTransfer && below(&mut self.random, 4) > 0 {
            self.seats[at].known.forget(handle);
        }
    }

    fn on_sent(&mut self) -> OnSent {
        if below(&mut self.random, 2) == 0 { OnSent::Free } else { OnSent::Keep }
    }
}

/// Returns the reason in an error, and checks that the error names the handle as it was presented.
fn fault(error: HandleError, handle: u64) -> HandleFault {
    assert_eq!(error.handle.raw(), handle);
    error.fault
}
