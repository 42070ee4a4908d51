//! Tests of kernel tables next to a software plane, with tables that fail.

use super::testing::*;
use super::*;
use crate::kernel::Traffic;
use axon_node::PortSnapshot;
use axon_node::random::Random;
use axon_plane::reference::Refusing;
use std::collections::BTreeSet;

#[test]
fn a_route_is_in_both_and_goes_from_both() {
    let mut bench = Bench::new(Fake::new());
    assert_eq!(bench.install(key(0, 9), &[1, 2]), Ok(()));
    assert_eq!((bench.in_kernel(key(0, 9)), bench.in_software(0)), (Some(&Route::from([1, 2])), 1));
    assert_eq!(bench.remove(key(0, 9)), Ok(()));
    assert_eq!((bench.in_kernel(key(0, 9)), bench.in_software(0)), (None, 0));
    assert_eq!(bench.install(key(7, 9), &[1]), Err(RouteError::NoSuchPort));
}

#[test]
fn what_is_too_long_for_the_kernel_is_forwarded_by_software_and_its_old_route_goes() {
    let mut bench = Bench::new(Fake::new());
    bench.install(key(0, 9), &[1]).unwrap();
    assert_eq!(bench.install(key(0, 9), &[1; 60]), Ok(()));
    assert_eq!((bench.in_kernel(key(0, 9)), bench.in_software(0)), (None, 1));
    assert_eq!(bench.plane.software_routes(), 0, "it is not tried again");
}

#[test]
fn what_finds_a_full_table_is_forwarded_by_software_and_takes_the_next_place() {
    let mut bench = Bench::new(Fake::new());
    for host in 1..=4 {
        assert_eq!(bench.install(key(0, host), &[1]), Ok(()), "{host}");
    }
    assert_eq!((bench.in_kernel(key(0, 4)), bench.plane.software_routes()), (None, 1));
    bench.remove(key(0, 2)).unwrap();
    assert_eq!((bench.in_kernel(key(0, 4)), bench.plane.software_routes()), (Some(&[1].into()), 0));
}

#[test]
fn where_a_source_has_a_route_of_its_own_the_kernel_has_none_to_that_destination() {
    let mut bench = Bench::new(Fake::new());
    let own = |host, hop: Option<u16>| {
        let (port, key) = (PortNo(0), RouteKey::from(mac(9)).from_source(Some(mac(host))));
        match hop {
            Some(hop) => RouteChange::Install { port, key, route: Route::from([hop]) },
            None => RouteChange::Remove { port, key },
        }
    };
    bench.install(key(0, 9), &[1]).unwrap();
    bench.install(key(0, 8), &[1]).unwrap();
    assert_eq!(bench.ask(own(1, Some(2))), Ok(()));
    assert_eq!(bench.ask(own(2, Some(2))), Ok(()));
    assert_eq!((bench.in_kernel(key(0, 9)), bench.in_software(0)), (None, 4));
    assert!(bench.in_kernel(key(0, 8)).is_some(), "nobody has one of its own to that");
    // As after a loss of the tables, later routes are also in the software plane.
    bench.install(key(0, 9), &[3]).unwrap();
    let wanted = Dataplane::snapshot(&bench.plane);
    bench.plane.resynchronise(bench.now, &wanted, &mut Vec::new()).unwrap();
    assert_eq!((bench.in_kernel(key(0, 9)), bench.in_software(0)), (None, 4));
    assert_eq!(bench.ask(own(1, None)), Ok(()));
    bench.pass(Span::ZERO);
    assert_eq!(bench.in_kernel(key(0, 9)), None, "one is left");
    assert_eq!(bench.ask(own(2, None)), Ok(()));
    bench.pass(Span::ZERO);
    assert_eq!(bench.in_kernel(key(0, 9)), Some(&Route::from([3])));
    bench.plane.tables.fails_of = 1;
    assert_eq!(bench.ask(own(1, Some(2))), Err(RouteError::Unavailable));
}

#[test]
fn a_removal_that_the_kernel_refuses_is_refused() {
    let mut bench = Bench::new(Fake::new());
    bench.install(key(0, 9), &[1]).unwrap();
    bench.plane.tables.fails_of = 1;
    assert_eq!(bench.remove(key(0, 9)), Err(RouteError::Unavailable));
    let both = bench.install(key(0, 9), &[2]);
    assert_eq!(both, Err(RouteError::Unavailable), "neither the new one nor the old one's end");
    bench.plane.tables.fails_of = 0;
    assert_eq!(bench.remove(key(0, 9)), Ok(()));
    assert_eq!((bench.in_kernel(key(0, 9)), bench.in_software(0)), (None, 0));
}

#[test]
fn a_kind_that_the_kernel_refuses_is_refused_and_a_carrier_is_made_up_for() {
    let mut bench = Bench::new(Fake::new());
    bench.link(0, true);
    bench.kind(0, PortKind::Axon).unwrap();
    assert_eq!(bench.plane.tables.ports[&PortNo(0)], (10, PortKind::Axon));
    bench.plane.tables.fails_of = 1;
    assert_eq!(bench.kind(0, PortKind::Host), Err(SettingError::Unavailable));
    assert_eq!(bench.plane.kind(PortNo(0)), Some(PortKind::Axon), "as it was in both");
    bench.link(0, false);
    assert_eq!(bench.plane.tables.ports[&PortNo(0)].0, 10);
    bench.plane.tables.fails_of = 0;
    bench.pass(PAUSE);
    assert_eq!(bench.plane.tables.ports[&PortNo(0)], (0, PortKind::Axon));
}

#[test]
fn either_plane_knows_that_a_route_is_used_and_both_count_frames() {
    let mut tables = Fake::new();
    tables.traffic = Traffic { in_frames: 5, in_bytes: 500, ..Traffic::default() };
    let mut bench = Bench::new(tables);
    bench.install(key(0, 9), &[1]).unwrap();
    let used =
        |plane: &mut KernelPlane<_, _>| Dataplane::take_used(plane, PortNo(0), mac(9).into());
    assert!(!used(&mut bench.plane));
    bench.plane.tables.used.insert(key(0, 9));
    assert!(used(&mut bench.plane) && !used(&mut bench.plane));
    bench.plane.tables.traffic =
        Traffic { in_frames: 7, in_bytes: 800, out_frames: 1, out_bytes: 60, ..Traffic::default() };
    let telemetry = Dataplane::telemetry(&bench.plane, bench.now);
    let port = telemetry.ports[1].counters;
    assert_eq!((port.rx_frames, port.rx_bytes, port.tx_frames, port.tx_bytes), (2, 300, 1, 60));
    assert_eq!(telemetry.total.rx_frames, 2 * u64::from(PORTS));
}

#[test]
fn what_the_kernel_loses_is_a_drop_of_the_port_that_it_came_in_by() {
    let mut bench = Bench::new(Fake::new());
    bench.link(2, true);
    let egress = bench.plane.devices.get(PortNo(2));
    bench.plane.tables.queue_drops = vec![(egress, (PortNo(0), 7)), (egress + 1, (PortNo(0), 9))];
    bench.plane.tables.traffic = Traffic { lost_packets: 3, ..Traffic::default() };
    // The port of a frame that found the queue to the node full is not known.
    bench.plane.tables.node_drops = 4;
    let telemetry = Dataplane::telemetry(&bench.plane, bench.now);
    let port = telemetry.ports[0].counters;
    assert_eq!((port.dropped(Drop::QueueFull), port.dropped(Drop::NotDecided)), (7, 3));
    assert_eq!(telemetry.total.dropped(Drop::QueueFull), 7);
    assert_eq!(telemetry.total.dropped(Drop::NotDecided), 4 + 3 * u64::from(PORTS));
}

#[test]
fn what_was_lost_before_this_process_counts_once() {
    let mut tables = Fake::new();
    let egress = devices().get(PortNo(2));
    tables.queue_drops = vec![(egress, (PortNo(0), 7))];
    tables.traffic = Traffic { lost_packets: 3, ..Traffic::default() };
    let mut bench = Bench::new(tables);
    bench.link(2, true);
    let lost = |bench: &Bench| {
        let counters = Dataplane::telemetry(&bench.plane, bench.now).ports[0].counters;
        (counters.dropped(Drop::QueueFull), counters.dropped(Drop::NotDecided))
    };
    assert_eq!(lost(&bench), (0, 0));
    bench.plane.tables.queue_drops = vec![(egress, (PortNo(0), 9))];
    bench.plane.tables.traffic.lost_packets = 4;
    assert_eq!(lost(&bench), (2, 1));
    // A return of carrier changes nothing. Queues that were set up anew count from zero.
    bench.link(2, false);
    bench.link(2, true);
    assert_eq!(lost(&bench), (2, 1));
    bench.plane.tables.queue_drops = vec![(egress, (PortNo(0), 1))];
    assert_eq!(lost(&bench), (1, 1));
}

#[test]
fn it_claims_no_more_than_program_and_software_can_do() {
    let has = Dataplane::capabilities(&Bench::new(Fake::new()).plane);
    assert_eq!((has.name, has.ports, has.routes_per_port_max), ("tc", PORTS, ROOM));
    assert_eq!((has.route_bytes_max, has.lossless_classes, has.queues_per_port), (100, 0, 1));
}

/// Returns the tables of a previous process: two host ports with two routes each, and an Axon port.
fn predecessor() -> Fake {
    let mut tables = Fake::new();
    for (port, kind) in [(0, PortKind::Host), (1, PortKind::Host), (2, PortKind::Axon)] {
        tables.ports.insert(PortNo(port), (10 + u32::from(port), kind));
    }
    for (port, host) in [(0, 8), (0, 9), (1, 8), (1, 9)] {
        tables.routes.insert(key(port, host), [2].into());
    }
    tables
}

#[test]
fn traffic_of_the_process_before_goes_on_until_the_switch_has_met_its_controller() {
    let mut bench = Bench::new(predecessor());
    (0..PORTS).for_each(|port| bench.link(port, true));
    bench.pass(Span::from_secs(60));
    assert_eq!(bench.plane.tables.ports, predecessor().ports, "the node knows of none yet");
    bench.kind(0, PortKind::Host).unwrap();
    bench.kind(2, PortKind::Axon).unwrap();
    bench.pass(Span::from_secs(600));
    assert_eq!(bench.plane.inherited_routes(), 4, "without a controller they stay");
    let reached = |bench: &mut Bench, is: bool| {
        Dataplane::controller_reached(&mut bench.plane, bench.now, is);
    };
    reached(&mut bench, true);
    bench.install(key(0, 9), &[1, 2]).unwrap();
    bench.remove(key(1, 8)).unwrap();
    assert_eq!(bench.plane.inherited_routes(), 2, "the node has decided about the others");
    bench.pass(Span::from_secs(9));
    assert_eq!(bench.plane.inherited_routes(), 2);
    bench.pass(Inherited::MAX);
    assert_eq!(bench.plane.inherited_routes(), 0);
    assert_eq!(bench.plane.tables.routes, BTreeMap::from([(key(0, 9), [1, 2].into())]));
    let unknown = bench.plane.tables.ports[&PortNo(1)];
    assert_eq!(unknown, (11, PortKind::Unknown), "nor does a port of which nothing was learned");
}

#[test]
fn the_time_of_inherited_routes_does_not_pass_without_a_controller() {
    let mut bench = Bench::new(predecessor());
    Dataplane::controller_reached(&mut bench.plane, bench.now, true);
    bench.pass(Span::from_secs(9));
    Dataplane::controller_reached(&mut bench.plane, bench.now, false);
    bench.pass(Span::from_secs(600));
    assert_eq!(bench.plane.inherited_routes(), 4);
    Dataplane::controller_reached(&mut bench.plane, bench.now, true);
    bench.pass(Inherited::MAX);
    assert_eq!((bench.plane.inherited_routes(), bench.plane.tables.routes.len()), (0, 0));
}

#[test]
fn the_first_snapshot_has_what_the_process_before_has_left_and_an_install_keeps_it() {
    let mut bench = Bench::new(predecessor());
    let snapshot = |bench: &Bench| Dataplane::snapshot(&bench.plane);
    let first = snapshot(&bench);
    let kinds: Vec<PortKind> = first.ports.iter().map(|port| port.kind).collect();
    assert_eq!(kinds, [PortKind::Host, PortKind::Host, PortKind::Axon]);
    let to = |last| axon_node::RouteKey::to(mac(last));
    let routes = [(to(8), Route::from([2])), (to(9), Route::from([2]))];
    assert_eq!(
        (&first.ports[0].routes[..], &first.ports[1].routes[..]),
        (&routes[..], &routes[..])
    );
    (0..PORTS).for_each(|port| bench.link(port, true));
    // The node adopts the routes of port 0, and never learns of port 1.
    bench.kind(0, PortKind::Host).unwrap();
    for host in [8, 9] {
        bench.install(key(0, host), &[2]).unwrap();
        assert_eq!(bench.in_kernel(key(0, host)), Some(&Route::from([2])));
    }
    assert_eq!((bench.plane.inherited_routes(), bench.in_software(0)), (2, 2));
    assert_eq!(snapshot(&bench).ports[0].routes.len(), 2, "each once");
    Dataplane::controller_reached(&mut bench.plane, bench.now, true);
    bench.pass(Inherited::MAX);
    let left: Vec<Key> = bench.plane.tables.routes.keys().copied().collect();
    assert_eq!(left, [key(0, 8), key(0, 9)]);
}

#[test]
fn routes_of_a_port_go_with_its_carrier_its_kind_or_its_device() {
    let left = |then: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(predecessor());
        bench.link(1, true);
        then(&mut bench);
        bench.plane.tables.routes.keys().map(|key| key.0.0).collect::<Vec<_>>()
    };
    assert_eq!(left(&|_| {}), [0, 0, 1, 1]);
    assert_eq!(left(&|bench| bench.kind(1, PortKind::Host).unwrap()), [0, 0, 1, 1]);
    assert_eq!(left(&|bench| bench.kind(1, PortKind::Axon).unwrap()), [0, 0]);
    assert_eq!(left(&|bench| bench.link(1, false)), [0, 0]);
    let other = |bench: &mut Bench| {
        bench.plane.devices.set(PortNo(0), 77);
        bench.link(0, true);
    };
    assert_eq!(left(&other), [1, 1]);
}

#[test]
fn a_resynchronisation_makes_the_kernel_equal_and_leaves_nothing_inherited() {
    let mut bench = Bench::new(predecessor());
    let mut wanted = Snapshot { ports: vec![PortSnapshot::default(); PORTS.into()] };
    wanted.ports[1].routes.push((mac(8).into(), [1, 1].into()));
    bench.plane.tables.fails_of = 2;
    let set = bench.plane.resynchronise(bench.now, &wanted, &mut Vec::<Action>::new());
    assert_eq!(set, Ok(()));
    bench.plane.tables.fails_of = 0;
    bench.pass(PAUSE);
    assert_eq!(bench.plane.tables.routes, BTreeMap::from([(key(1, 8), [1, 1].into())]));
}

/// Control plane that retries refused changes.
struct Asker {
    plane: KernelPlane<Refusing<Software>, Fake>,
    now: Time,
    tickets: u64,
    /// Requested changes by ticket, and the last ticket of each flow.
    asked: BTreeMap<RouteTicket, Key>,
    last: BTreeMap<Key, RouteTicket>,
    wanted: BTreeMap<Key, Route>,
    /// Flows whose routes are to be removed.
    stale: BTreeSet<Key>,
    kinds: BTreeMap<PortNo, PortKind>,
    lost: bool,
}

impl Asker {
    fn ask(&mut self, key: Key, route: Option<Route>) {
        let (port, destination) = key;
        self.tickets += 1;
        let ticket = RouteTicket(self.tickets);
        self.asked.insert(ticket, key);
        self.last.insert(key, ticket);
        self.stale.remove(&key);
        let change = match route {
            Some(route) => {
                self.wanted.insert(key, route.clone());
                RouteChange::Install { port, key: destination.into(), route }
            }
            None => {
                self.wanted.remove(&key);
                RouteChange::Remove { port, key: destination.into() }
            }
        };
        if let Some(result) = self.plane.change_route(self.now, ticket, change) {
            self.answered(RouteAnswer { ticket, result });
        }
    }

    fn input(&mut self, input: Input) {
        let mut out = Vec::new();
        self.plane.handle(self.now, input, &mut out);
        self.read(out);
    }

    fn read(&mut self, out: Vec<Action>) {
        for action in out {
            match action {
                Action::RouteChanged(answer) => self.answered(answer),
                Action::Lost => self.lost = true,
                _ => {}
            }
        }
    }

    fn answered(&mut self, RouteAnswer { ticket, result }: RouteAnswer) {
        let Some(key) = self.asked.remove(&ticket) else { return };
        if result.is_err() && self.last[&key] == ticket {
            self.wanted.remove(&key);
            self.stale.insert(key);
        }
    }

    fn set_kinds(&mut self) {
        for (&port, &kind) in &self.kinds {
            if self.plane.kind(port) != Some(kind) {
                let setting = PortSetting::Kind(kind);
                let _ = self.plane.set_port(self.now, port, setting, &mut Vec::new());
            }
        }
    }

    /// Advances the time by a second and retries lost and refused changes.
    fn repeat(&mut self) {
        self.now += Span::from_millis(1_001);
        self.input(Input::Timeout);
        if std::mem::take(&mut self.lost) {
            self.asked.clear();
            self.stale.clear();
            let mut wanted = Snapshot { ports: vec![PortSnapshot::default(); PORTS.into()] };
            for (&port, &kind) in &self.kinds {
                wanted.ports[port.index()].kind = kind;
            }
            for (key, route) in &self.wanted {
                wanted.ports[key.0.index()].routes.push((key.1.into(), route.clone()));
            }
            let mut out = Vec::new();
            let _ = self.plane.resynchronise(self.now, &wanted, &mut out);
            self.read(out);
            let has = self.plane.snapshot();
            self.wanted.retain(|key, _| {
                has.ports[key.0.index()].routes.iter().any(|(to, _)| to.destination == key.1)
            });
        }
        self.set_kinds();
        for key in self.stale.clone() {
            self.ask(key, None);
        }
    }

    fn is_settled(&self) -> bool {
        let kinds = self.kinds.iter().all(|(&port, &kind)| self.plane.kind(port) == Some(kind));
        self.asked.is_empty() && self.stale.is_empty() && !self.lost && kinds
    }
}

/// Runs one seed: random requests, with calls that fail and with planes that refuse, answer late,
/// or lose their tables.
fn play(seed: u64) {
    let mut random = Random::new(seed);
    let mut tables = if below(&mut random, 2) == 0 { Fake::new() } else { predecessor() };
    tables.fails_of = below(&mut random, 5);
    tables.random = Random::new(seed ^ 0xff);
    let software = Refusing::new(software());
    let mut asker = Asker {
        plane: KernelPlane::new(software, tables, devices()).unwrap(),
        now: Time::ZERO,
        tickets: 0,
        asked: BTreeMap::new(),
        last: BTreeMap::new(),
        wanted: BTreeMap::new(),
        stale: BTreeSet::new(),
        kinds: BTreeMap::new(),
        lost: false,
    };
    let mut links = [false; PORTS as usize];
    for _ in 0..60 {
        let port = below(&mut random, u64::from(PORTS)) as u16;
        let flow = key(port, below(&mut random, 5) as u8);
        match below(&mut random, 10) {
            0..4 => {
                let hops = if below(&mut random, 8) == 0 { 60 } else { 1 + below(&mut random, 3) };
                let hop = PortNo(below(&mut random, 9) as u16);
                asker.ask(flow, Some((0..hops).map(|_| hop).collect()));
            }
            4..6 => asker.ask(flow, None),
            6 => {
                let up = &mut links[usize::from(port)];
                *up = !*up;
                asker.input(Input::Link { port: PortNo(port), up: *up });
            }
            7 => {
                let kinds = [PortKind::Unknown, PortKind::Axon, PortKind::Host];
                asker.kinds.insert(PortNo(port), kinds[below(&mut random, 3) as usize]);
                asker.set_kinds();
            }
            8 => asker.plane.controller_reached(asker.now, below(&mut random, 3) > 0),
            _ => asker.repeat(),
        }
    }
    asker.plane.tables.fails_of = 0;
    asker.plane.controller_reached(asker.now, true);
    // Run until every change is answered, pending updates are made, and inherited routes have
    // expired.
    let mut rounds = 0;
    while !asker.is_settled() || rounds < 12 {
        asker.repeat();
        rounds += 1;
        assert!(rounds < 200, "seed {seed}: it does not settle");
    }
    compare(&asker, seed);
}

/// Checks that every kernel route is also in the software plane, and that the kernel lacks only the
/// waiting routes.
fn compare(asker: &Asker, seed: u64) {
    let plane = &asker.plane;
    let has = plane.snapshot();
    let ports = (0..).map(PortNo).zip(&has.ports);
    let software: BTreeMap<Key, &Route> = ports
        .flat_map(|(port, is)| {
            is.routes.iter().map(move |(to, route)| ((port, to.destination), route))
        })
        .collect();
    for (key, route) in &plane.tables.routes {
        assert_eq!(software.get(key), Some(&route), "seed {seed}: {key:?}");
    }
    for (key, route) in software {
        let is_short = route.hops.len() < 60;
        let missing = is_short && !plane.tables.routes.contains_key(&key);
        assert!(!missing || plane.waiting.contains_key(&key), "seed {seed}: {key:?} is forgotten");
    }
    for port in (0..PORTS).map(PortNo) {
        let ifindex = if plane.is_up(port) { plane.devices.get(port) } else { 0 };
        let wanted = (ifindex, plane.kind(port).unwrap());
        assert_eq!(plane.tables.port(port).unwrap(), wanted, "seed {seed}: {port}");
    }
}

#[test]
fn whatever_is_asked_and_whichever_call_fails_the_kernel_has_no_route_that_software_has_not() {
    (0..2_000).for_each(play);
}
