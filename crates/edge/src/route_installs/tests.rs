//! Tests of routes in the data plane.

use super::super::context::Timer;
use super::super::test_device::Around;
use super::super::testing::*;
use super::*;
use crate::tables::PAUSE;
use alloc::collections::VecDeque;
use axon_node::telemetry::EdgeDebts;
use axon_node::{PortSnapshot, RouteChange, RouteError, RouteKey, RouteTicket};
use axon_wire::{Route, Span, Time};
use proptest::prelude::*;

#[test]
fn a_route_that_the_device_refuses_goes_by_software_and_is_tried_again() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.tables.refuses = 2;
    bench.set_route(0, 9, 1, 3);
    assert_eq!((bench.placed(0, 9), bench.places(0)), (None, 0));
    let frame = udp_frame(mac(9), mac(1), 1);
    bench.frame(0, &frame);
    assert_eq!(bench.sent, [(PortNo(0), Route::from([3]), frame)]);
    bench.pass(PAUSE);
    assert_eq!(bench.placed(0, 9), None, "refused again");
    bench.pass(PAUSE);
    assert_eq!(bench.placed(0, 9), Some(Route::from([3])));
}

#[test]
fn a_new_route_that_is_refused_takes_the_old_one_out() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 9, 1, 3);
    assert_eq!(bench.placed(0, 9), Some(Route::from([3])));
    bench.tables.refuses = 1;
    bench.set_route(0, 9, 2, 4);
    assert_eq!(bench.placed(0, 9), None, "the old route leads the old way");
    bench.pass(PAUSE);
    assert_eq!(bench.placed(0, 9), Some(Route::from([4])));
}

#[test]
fn a_late_answer_for_a_route_that_was_replaced_changes_nothing() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.tables.late = Some(Vec::new());
    bench.set_route(0, 9, 1, 3);
    bench.set_route(0, 9, 2, 4);
    // The first route's removal is refused.
    bench.tables.refuses = 1;
    bench.answer_late();
    assert_eq!(bench.placed(0, 9), Some(Route::from([4])));
    assert_eq!(bench.tables.late, Some(Vec::new()), "nothing is taken out");
    bench.tables.late = None;
    bench.pass(PAUSE * 2);
    assert_eq!((bench.placed(0, 9), bench.places(0)), (Some(Route::from([4])), 1));
}

#[test]
fn after_a_loss_what_stands_again_is_placed_and_what_does_not_is_software() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    for (to, hop) in [(8, 3), (9, 4)] {
        bench.set_route(0, to, 1, hop);
    }
    bench.lose_routes(&[mac(9)]);
    assert_eq!((bench.placed(0, 8), bench.placed(0, 9)), (Some(Route::from([3])), None));
    bench.pass(PAUSE);
    assert_eq!(bench.placed(0, 9), Some(Route::from([4])));
}

#[test]
fn a_removal_that_the_device_refuses_is_asked_for_until_the_route_is_gone() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 9, 1, 3);
    bench.tables.keeps = 2;
    bench.remove_route(0, 9, 2);
    for _ in 0..2 {
        assert_eq!(bench.placed(0, 9), Some(Route::from([3])), "it was refused");
        assert_eq!(bench.edge.debts().stale, 1);
        bench.pass(PAUSE);
    }
    assert_eq!((bench.placed(0, 9), bench.edge.debts()), (None, EdgeDebts::default()));
    assert_eq!(bench.edge.counters().changes_refused, 2);
}

#[test]
fn an_answer_that_does_not_come_in_time_counts_as_a_refusal_and_is_ignored_later() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.tables.late = Some(Vec::new());
    bench.set_route(0, 9, 1, 3);
    bench.pass(Span::from_millis(4_900));
    assert_eq!((bench.edge.debts().unanswered, bench.edge.counters().changes_unanswered), (1, 0));
    bench.pass(Span::from_millis(200));
    assert_eq!(bench.edge.counters().changes_unanswered, 1);
    let frame = udp_frame(mac(9), mac(1), 1);
    bench.frame(0, &frame);
    assert_eq!(bench.sent, [(PortNo(0), Route::from([3]), frame)], "software forwards");
    // It installs the route, removes it, and gets another request.
    bench.answer_late();
    assert_eq!(bench.placed(0, 9), None);
    bench.tables.late = None;
    bench.pass(PAUSE * 10);
    assert_eq!((bench.placed(0, 9), bench.places(0)), (Some(Route::from([3])), 1));
    assert_eq!(bench.edge.debts(), EdgeDebts::default());
}

#[test]
fn a_device_that_never_answers_owes_no_more_than_a_bound_and_is_resynchronised() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 7, 1, 2);
    bench.tables.late = Some(Vec::new());
    let (mut most, mut notes, mut asked) = (0, 0, 0);
    for round in 0..200 {
        for to in 10..26 {
            let number = 10 + round * 2;
            let mut effects = bench.set_route(0, to, number, 3);
            effects.extend(bench.remove_route(0, to, number + 1));
            let owed = |effect: &&Effect| matches!(effect, Effect::Note(Note::AnswersOwed { .. }));
            notes += effects.iter().filter(owed).count();
            let EdgeDebts { unanswered, stale, .. } = bench.edge.debts();
            most = most.max(unanswered + stale);
        }
        let late = bench.pass(Span::from_millis(10));
        asked += late.iter().filter(|effect| **effect == Effect::Resynchronise).count();
    }
    assert!((60..=64).contains(&most), "{most} owed");
    assert!(notes == 1 && bench.edge.debts().lost, "{notes} notes: nothing more is asked for");
    assert_eq!(asked, 1, "one second later, and then not before another has passed");
    assert_eq!(bench.edge.counters().answers_lost, 1);
    bench.set_route(0, 9, 1_000, 4);
    let frame = udp_frame(mac(9), mac(1), 1);
    bench.frame(0, &frame);
    assert_eq!(bench.sent, [(PortNo(0), Route::from([4]), frame)], "software forwards");
    // It recovers, and has a route that was removed meanwhile.
    bench.tables.late = None;
    bench.remove_route(0, 7, 2_000);
    bench.lose_routes(&[]);
    bench.pass(PAUSE);
    assert_eq!((bench.placed(0, 7), bench.placed(0, 9)), (None, Some(Route::from([4]))));
    assert_eq!((bench.edge.debts(), bench.places(0)), (EdgeDebts::default(), 1));
}

#[test]
fn a_route_that_a_resynchronised_device_has_and_should_not_have_is_removed() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    let mut has = Snapshot { ports: alloc::vec![PortSnapshot::default(); 4] };
    has.ports[0].routes.push((mac(9).into(), Route::from([3])));
    bench.tables.routes.insert((PortNo(0), mac(9).into()), Route::from([3]));
    bench.call(|edge, now, tables, out| edge.resynchronised(now, &has, tables, out));
    assert_eq!(bench.placed(0, 9), None);
}

/// Event between flows and a device that answers late, refuses and loses its tables.
#[derive(Clone, Debug)]
enum Event {
    Set(u16, u8, u16),
    Remove(u16, u8),
    /// The oldest request is carried out, or refused.
    Answer(bool),
    /// The tables are lost; a resynchronisation omits the routes to this host.
    Lose(u8),
    /// The pause of a port ends.
    Pause,
}

fn event() -> impl Strategy<Value = Event> {
    let (port, host) = (0..2u16, 0..4u8);
    prop_oneof![
        4 => (port.clone(), host.clone(), 1..9u16)
            .prop_map(|(port, host, hop)| Event::Set(port, host, hop)),
        2 => (port, host.clone()).prop_map(|(port, host)| Event::Remove(port, host)),
        5 => any::<bool>().prop_map(Event::Answer),
        1 => host.prop_map(Event::Lose),
        2 => Just(Event::Pause),
    ]
}

struct Late {
    installer: Installer,
    device: TestDevice,
    asked: VecDeque<(RouteTicket, RouteChange)>,
    routes: BTreeMap<Key, Route>,
    around: Around,
    stamps: u64,
}

/// Every other route is for frames of one host.
fn key(host: u8) -> RouteKey {
    RouteKey::to(mac(host / 2)).from_source(Some(mac(77)).filter(|_| host % 2 == 1))
}

impl Late {
    fn new(room: usize) -> Late {
        let device = TestDevice::new(room);
        let around = Around::new(&device.capabilities());
        Late {
            installer: Installer::new(&around.tables),
            device,
            asked: VecDeque::new(),
            routes: BTreeMap::new(),
            around,
            stamps: 0,
        }
    }

    fn with(&mut self, call: impl FnOnce(&mut Installer, &mut Cx)) {
        call(&mut self.installer, &mut self.around.cx(&self.device));
        self.asked.extend(self.around.out.drain(..).filter_map(|effect| match effect {
            Effect::Route { ticket, change } => Some((ticket, change)),
            _ => None,
        }));
    }

    /// Ends the first pause, if there is one.
    fn end_pause(&mut self) -> Option<PortNo> {
        let cx = self.around.cx(&self.device);
        match cx.agenda.pop_due(Time::ZERO + PAUSE)? {
            Timer::Place(port) => Some(port),
            timer => panic!("{timer:?}"),
        }
    }

    fn happen(&mut self, event: &Event) {
        self.stamps += 1;
        let (decided, room) = (stamp(self.stamps), self.device.capabilities().routes_per_port_max);
        match *event {
            Event::Set(port, host, hop) => self.with(|installer, cx| {
                let key = (PortNo(port), key(host));
                installer.set(cx, (key, decided), &Route::from([hop]), None);
            }),
            Event::Remove(port, host) => self.with(|installer, cx| {
                installer.remove(cx, (PortNo(port), key(host)));
                installer.promote(cx, PortNo(port));
            }),
            Event::Answer(carried_out) => {
                let Some((ticket, change)) = self.asked.pop_front() else { return };
                let result = match change {
                    _ if !carried_out => Err(RouteError::Unavailable),
                    RouteChange::Install { port, key, route } => {
                        let taken = self.routes.range(of_port(port)).count();
                        let is_there = self.routes.contains_key(&(port, key));
                        match is_there || taken < room {
                            true => {
                                self.routes.insert((port, key), route);
                                Ok(())
                            }
                            false => Err(RouteError::Full),
                        }
                    }
                    RouteChange::Masquerade { .. } => unreachable!("it has no route memory"),
                    RouteChange::Remove { port, key } => {
                        self.routes.remove(&(port, key));
                        Ok(())
                    }
                };
                let answer = RouteAnswer { ticket, result };
                self.with(|installer, cx| {
                    installer.answered(cx, answer);
                });
            }
            Event::Lose(left_out) => {
                self.asked.clear();
                let wanted = self.installer.wanted(&self.around.tables);
                let wanted = wanted.filter(|(_, to, _)| *to != mac(left_out));
                self.routes = wanted.map(|(at, _, route)| (at, route.clone())).collect();
                let mut has = Snapshot { ports: alloc::vec![PortSnapshot::default(); 4] };
                for ((port, to), route) in &self.routes {
                    has.ports[port.index()].routes.push((*to, route.clone()));
                }
                let was_lost = self.around.tables.is_lost();
                self.around.tables.settle();
                self.with(|installer, cx| installer.resynchronised(cx, (&has, was_lost)));
            }
            Event::Pause => {
                if let Some(port) = self.end_pause() {
                    self.with(|installer, cx| installer.try_again(cx, port));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_device_that_answers_late_refuses_and_forgets_has_in_the_end_what_is_wanted(
        room in 1..4usize,
        events in prop::collection::vec(event(), 0..80),
    ) {
        let mut late = Late::new(room);
        events.iter().for_each(|event| late.happen(event));
        loop {
            while !late.asked.is_empty() {
                late.happen(&Event::Answer(true));
            }
            let Some(port) = late.end_pause() else { break };
            late.with(|installer, cx| installer.try_again(cx, port));
        }
        let Late { installer, routes, around, .. } = &late;
        prop_assert_eq!(around.tables.debts(), EdgeDebts::default());
        let placed = installer.flows.placed();
        let placed = placed.map(|(key, flow)| (key, flow.route.clone()));
        prop_assert_eq!(routes, &placed.collect::<BTreeMap<_, _>>());
        for port in installer.flows.ports_in_software() {
            prop_assert_eq!(around.tables.taken(port), room, "{:?} has room", port);
        }
    }
}
