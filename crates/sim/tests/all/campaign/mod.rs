//! The campaign: random fabrics with lossy links, random failures and recoveries, then quiet. Some
//! have links that duplicate, delay and alter messages, tables that are soon full, short leases,
//! traffic classes, narrow or wide hops, suspended nodes, hostile hosts, hosts that send nothing by
//! themselves, tenants, some with several hosts behind one port, VLANs, groups, IPv6, bonds.
//!
//! After every step: no frame was delivered to a host that it is not for, or crossed from one
//! tenant or VLAN to another; no member of a group has received a datagram twice, and no other host
//! has received any; no datagram to or from a bond arrived twice; no two hosts of a VLAN have one
//! address; the state of nodes is bounded. In the end every two hosts that are connected to each
//! other and to the controller, and may reach each other, must ping, and no switch that the
//! controller can reach may hold a route that leads nowhere.
//!
//! The seeds are distributed over the data planes. `AXON_SEEDS=2000` runs that many over the
//! software plane, the reference and the pipeline, and a tenth of it over the one that refuses.
//! `AXON_SEED=17` runs exactly that one, over `AXON_DATAPLANE=reference` if this is set, and writes
//! its trace to a file. Threads run whole seeds; a seed runs on one thread.

mod behind;
mod bonds;
mod dual_stack;
mod groups;
mod hostile;
mod invariants;
mod pipeline;
mod plan;
mod tenants;
mod vlans;

use crate::common::{assert_on, describe, pairs, unreached};
use axon_fabric::model::End;
use axon_sim::links::{LinkChange, LinkId};
use axon_sim::{DataplaneKind, PingPlan, Setup, World};
use axon_wire::{Span, Time};
use bonds::Datagrams;
use groups::Streams;
use plan::{Act, Dice, FAILURES, Plan, plan};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// First seed of the fabrics without a controller.
const STATIC: u64 = 1 << 32;
/// Number of such seeds, over two data planes alternately.
const STATIC_SEEDS: u64 = 40;

/// Default seeds of each data plane.
const SEEDS: [(DataplaneKind, Range<u64>); 4] = [
    (DataplaneKind::Software, 0..240),
    (DataplaneKind::Reference, 240..460),
    (DataplaneKind::Refusing, 460..500),
    (DataplaneKind::Pipeline, 500..560),
];
/// Maximum time between two checks of the invariants.
const STEP: Span = Span::from_millis(50);
/// Time without failures before a check counts a fault.
const QUIET: Span = Span::from_secs(3);
/// Additional time for addresses and removals on links that lose frames.
const PATIENCE: Span = Span::from_secs(30);
/// Requests of one ping: on thirteen links at 5 % loss each, three in four go unanswered.
const TRIES: u16 = 80;

/// Traffic that is sent throughout and captured at its receivers.
struct Watched {
    groups: Option<Streams>,
    bonds: Option<Datagrams>,
}

/// A run: a seed over a data plane.
type Job = (DataplaneKind, u64);

/// Runs one seed. Returns the final world, or a description of the fault.
fn run((dataplane, seed): Job, trace: Option<Box<dyn Write>>) -> Result<World, String> {
    let Plan { mut builder, disorder, routes_per_port, attacks, silent_hosts, mut acts } =
        plan(dataplane, seed);
    tenants::draw(seed, &mut builder, &mut acts);
    dual_stack::draw(seed, &mut builder);
    if seed >= STATIC {
        builder.fabric.make_static();
        acts.retain(|(_, act)| !act.is_controllers());
    } else {
        vlans::draw(seed, &mut builder, &mut acts);
        bonds::draw(seed, &mut builder, &mut acts, routes_per_port.is_some());
    }
    let behind = if seed < STATIC { behind::draw(seed, &mut builder) } else { None };
    let setup = Setup { seed, dataplane, routes_per_port, silent_hosts, trace, ..Setup::default() };
    let mut world = World::begin(&builder.fabric, setup);
    behind::connect(&mut world, behind);
    world.set_host_retry(Span::from_millis(200));
    world.run_until(Time::from_nanos((FAILURES.0 - 200) * 1_000_000));
    if let Some(disorder) = disorder {
        let links = world.engine().links().len();
        (0..links).for_each(|link| {
            world.engine_mut().change_link(LinkId(link), LinkChange::Disorder(disorder))
        });
    }
    background(&mut world, seed);
    tenants::watch(&mut world);
    let doubled = disorder.is_some_and(|disorder| disorder.duplicate_ppm > 0);
    let span = Span::from_millis(FAILURES.1 - FAILURES.0);
    let groups = groups::start(&mut world, seed, doubled, span);
    let alone = groups.is_none() && world.fabric().policy.is_open();
    let bonds = if alone { bonds::start(&mut world, seed, doubled, span) } else { None };
    let mut streams = Watched { groups, bonds };
    let end = Time::from_nanos(FAILURES.1 * 1_000_000);
    let attacks = (0..).zip(&attacks);
    let attacks: Vec<LinkId> = attacks
        .map(|(number, attack)| {
            hostile::connect(&mut world, attack.at, seed << 8 | number, attack.pause, end)
        })
        .collect();
    for (at, act) in acts {
        watch(&mut world, &mut streams, at)?;
        match act {
            Act::Fault(fault) => world.inject(fault),
            Act::Move(host, to) => world.move_host(host, to),
            Act::Bond(host, member, loss) => bonds::lose(&mut world, host, member, loss),
        }
        invariants::check(&world)?;
    }
    watch(&mut world, &mut streams, end)?;
    attacks.into_iter().for_each(|link| world.engine_mut().disconnect(link));
    watch(&mut world, &mut streams, end + QUIET)?;
    assert_on(&world, dataplane);
    let verdict = check(&mut world, behind)
        .and_then(|()| streams.groups.as_mut().map_or(Ok(()), |groups| groups.end(&mut world)))
        .and_then(|()| world.engine().check_conservation());
    world.engine_mut().trace_mut().flush();
    verdict.and_then(|()| invariants::check(&world)).map(|()| world)
}

/// Runs the world, and checks the invariants throughout.
fn watch(world: &mut World, streams: &mut Watched, end: Time) -> Result<(), String> {
    while world.now() < end {
        world.run_until((world.now() + STEP).min(end));
        tenants::check(world).map_err(|wrong| format!("at {}: {wrong}", world.now()))?;
        streams.groups.as_mut().map_or(Ok(()), |groups| groups.check(world))?;
        streams.bonds.as_mut().map_or(Ok(()), |bonds| bonds.check(world))?;
        invariants::check(world).map_err(|wrong| format!("at {}: {wrong}", world.now()))?;
    }
    Ok(())
}

/// Lets some hosts ping some others throughout.
fn background(world: &mut World, seed: u64) {
    let mut dice = Dice::new(u128::from(seed) << 64);
    let hosts = world.fabric().hosts.len();
    for _ in 0..hosts {
        let (from, to) = (dice.below(hosts), dice.below(hosts));
        if let Some(target) = world.address(to).filter(|_| from != to) {
            world.ping(from, PingPlan::steady(target, Span::from_millis(20), 300));
        }
    }
}

/// True if two hosts must reach each other.
fn is_wanted(world: &World, behind: Option<[usize; 2]>, pair: (usize, usize)) -> bool {
    let is_apart = behind::is_apart(behind, pair);
    tenants::allowed(world, pair) && vlans::together(world, pair) && !is_apart
}

fn check(world: &mut World, behind: Option<[usize; 2]>) -> Result<(), String> {
    let mut hosts = world.truth().connected_hosts();
    hosts.retain(|&host| !bonds::leads_astray(world, host));
    let limit = world.now() + PATIENCE;
    let addressed = |world: &World| hosts.iter().all(|&host| world.address(host).is_some());
    world.run_until_true(limit, addressed);
    let is_without = |host: &usize| world.address(*host).is_none();
    let without: Vec<usize> = hosts.iter().copied().filter(is_without).collect();
    if !without.is_empty() {
        return Err(format!("hosts without address (by index): {without:?}"));
    }
    let wanted = |world: &World, pair| is_wanted(world, behind, pair);
    let wanted: Vec<_> = pairs(&hosts).into_iter().filter(|&pair| wanted(world, pair)).collect();
    let silent = unreached(world, &wanted, TRIES);
    tenants::check(world)?;
    dual_stack::check(world, &wanted, TRIES)?;
    tenants::check(world)?;
    let limit = world.now() + PATIENCE;
    // On links that lose frames, removals take some tries.
    world.run_until_true(limit, |world| world.truth().stale_routes().is_empty());
    let mut wrong: Vec<String> =
        world.truth().stale_routes().iter().map(ToString::to_string).collect();
    if !silent.is_empty() {
        let count = wanted.len();
        wrong.push(format!("{} of {count} pairs (by index) unanswered: {silent:?}", silent.len()));
        wrong.push(describe(world, silent[0].0, silent[0].1));
        wrong.push(bonds::describe(world));
    }
    wrong.extend(world.engine().check_conservation().err());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Runs one seed; a panic counts as a failure.
fn attempt(job: Job) -> Result<World, String> {
    catch_unwind(AssertUnwindSafe(|| run(job, None))).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|&words| words.to_owned()));
        Err(format!("panic: {}", words.unwrap_or_default()))
    })
}

/// Processes all jobs on as many threads as there are processors. Returns the results, in no
/// particular order.
fn share_out<J: Sync, T: Send>(jobs: &[J], work: impl Fn(&J) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.extend(work(job));
            }
            done
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("work catches")).collect()
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// Returns the requested data plane, or the software plane.
fn chosen() -> DataplaneKind {
    let all = SEEDS.map(|(dataplane, _)| dataplane);
    let Ok(name) = std::env::var("AXON_DATAPLANE") else { return DataplaneKind::Software };
    let found = all.into_iter().find(|dataplane| dataplane.name() == name);
    found.unwrap_or_else(|| panic!("AXON_DATAPLANE={name} is not one of {all:?}"))
}

/// Returns all runs, alternating between the data planes.
fn jobs() -> Vec<Job> {
    let ranges = match number("AXON_SEEDS") {
        None => SEEDS,
        Some(seeds) => SEEDS.map(|(dataplane, _)| match dataplane {
            DataplaneKind::Refusing => (dataplane, 0..seeds / 10),
            _ => (dataplane, 0..seeds),
        }),
    };
    let of = |(dataplane, seeds): (_, Range<u64>)| seeds.map(move |seed| (dataplane, seed));
    ranges.into_iter().flat_map(of).collect()
}

fn replay(seed: u64) {
    let dataplane = chosen();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("campaign-{dataplane}-{seed}.trace"));
    let file = std::fs::File::create(&path).expect("the target directory takes files");
    println!("seed {seed}: trace in {}", path.display());
    let plan = plan(dataplane, seed);
    let Plan { builder, disorder, routes_per_port, attacks, silent_hosts, .. } = &plan;
    let (dhcp, dcb) = (&builder.fabric.dhcp, builder.fabric.dcb.is_some());
    println!(
        "  hops {:?}, dcb {dcb}, leases {:?}, {disorder:?}, routes per port {routes_per_port:?}, \
         {attacks:?}, silent hosts {silent_hosts}",
        builder.fabric.hop_width, dhcp.lease
    );
    for (at, act) in &plan.acts {
        println!("  {at} {act:?}");
    }
    match run((dataplane, seed), Some(Box::new(BufWriter::new(file)))) {
        Ok(world) => {
            println!("seed {seed}: passed, trace hash {:016x}", world.engine().trace_hash())
        }
        Err(wrong) => panic!("seed {seed}: {wrong}"),
    }
}

#[test]
fn whatever_fails_every_connected_pair_pings_again_and_no_route_is_stale() {
    if let Some(seed) = number("AXON_SEED") {
        return replay(seed);
    }
    let jobs = jobs();
    let mut failures = share_out(&jobs, |&job| attempt(job).err().map(|wrong| (job, wrong)));
    failures.sort();
    for ((dataplane, seed), wrong) in &failures {
        println!("seed {seed} over {dataplane} failed:\n{wrong}");
        println!(
            "replay: AXON_DATAPLANE={dataplane} AXON_SEED={seed} cargo test -p axon-sim --test all \
             campaign -- --nocapture\n"
        );
    }
    let failed: Vec<Job> = failures.iter().map(|&(job, _)| job).collect();
    assert!(failed.is_empty(), "{} of {} runs failed: {failed:?}", failed.len(), jobs.len());
}

#[test]
fn without_a_controller_every_connected_pair_pings_again_too() {
    let planes = [DataplaneKind::Software, DataplaneKind::Refusing];
    let jobs: Vec<Job> =
        (0..STATIC_SEEDS).map(|seed| (planes[seed as usize % 2], STATIC + seed)).collect();
    let mut failures = share_out(&jobs, |&job| attempt(job).err().map(|wrong| (job, wrong)));
    failures.sort();
    for ((dataplane, seed), wrong) in &failures {
        println!("AXON_DATAPLANE={dataplane} AXON_SEED={seed} failed:\n{wrong}\n");
    }
    assert!(failures.is_empty(), "{} of {} runs failed", failures.len(), jobs.len());
}

#[test]
fn a_seed_replays_exactly() {
    let jobs = SEEDS.map(|(dataplane, _)| (dataplane, 5));
    for (dataplane, seed) in jobs.into_iter().chain([(DataplaneKind::Software, STATIC + 1)]) {
        let hash = |trace| run((dataplane, seed), trace).map(|world| world.engine().trace_hash());
        let first = hash(None);
        assert!(first.is_ok(), "{dataplane}: {first:?}");
        assert_eq!(first, hash(Some(Box::new(std::io::sink()))));
    }
}

#[test]
fn the_invariants_see_two_holders_of_an_address_and_a_wrong_delivery() {
    let mut builder = crate::common::line(2, 1, true);
    builder.fabric.hosts[1].ip = builder.fabric.hosts[0].ip;
    let mut world = World::begin(&builder.fabric, Setup::default());
    world.run_for(Span::from_secs(1));
    let wrong = invariants::check(&world).unwrap_err();
    assert!(wrong.ends_with("both have 10.0.0.10"), "{wrong}");

    let mut world = crate::common::boot(&crate::common::line(2, 1, true));
    invariants::check(&world).unwrap();
    // The hostile host is now the only one at the other end of h1's cable.
    let cable = world.layout().access_link(0);
    world.engine_mut().disconnect(cable);
    let at = End { switch: world.layout().host_station(0), port: axon_simhost::PORT };
    let until = world.now() + Span::from_secs(1);
    hostile::connect(&mut world, at, 1, Span::from_millis(1), until);
    world.run_for(Span::from_secs(1));
    let wrong = invariants::check(&world).unwrap_err();
    assert!(wrong.contains("h1 was given") && wrong.ends_with("for other hosts"), "{wrong}");
}
