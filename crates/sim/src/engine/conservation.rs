//! Conservation: every frame, and every byte of it, has exactly one fate.
//!
//! On links, for each direction: each frame sent (counted at the sender) has arrived (counted at
//! the receiver), was lost for a counted reason, or is a future arrival in the event queue. Where
//! both ends count in planes, the counters of the two ports must agree, and if the link lost
//! nothing, their bytes too. At hosts: each frame made is on the wire, was dropped for want of
//! carrier, or is queued. At switches and controllers: the plane has counted exactly the frames
//! that it exchanged with the world; each frame received (from wires and the control plane) was
//! sent, is queued or waits for its tail, or was dropped for a counted reason; [`Drop::Consumed`]
//! is the normal end of a frame read by the control plane. A host's frame taken over by the control
//! plane was forwarded, was dropped, or is held there. Every incarnation balances at its end; the
//! frames that it held count as [`Drop::PowerLost`].

use crate::engine::event::Kind;
use crate::engine::station::{Station, StationNode};
use crate::engine::stations::Stations;
use crate::link::cabling::Cabling;
use crate::link::links::{Fates, Link, LinkId, WireEnd};
use crate::world::baselines::Baseline;
use axon_node::counters::PortCounters;
use axon_node::{Action, Dataplane, Drop, Input};
use axon_wire::{PortNo, Time};

/// Checks that every frame has exactly one fate.
///
/// # Errors
/// One line for each account that does not balance.
pub(crate) fn check(stations: &Stations, cabling: &Cabling) -> Result<(), String> {
    let mut faults = Vec::new();
    let (mut sent, mut delivered) = (0, 0);
    let arrivals = arrivals_to_come(stations, cabling.links().len());
    for (index, coming) in arrivals.iter().enumerate() {
        for (side, &(frames, bytes)) in coming.iter().enumerate() {
            let fates = cabling.fates(LinkId(index), side, stations);
            sent += fates.sent;
            delivered += fates.delivered;
            if !fates.balance(frames) {
                faults.push(format!(
                    "link {index} side {side}: {frames} arrivals to come, {fates:?}"
                ));
            }
            let ends = check_ends(&cabling.links()[index], side, &fates, bytes, stations);
            faults.extend(ends.err().map(|fault| format!("link {index} side {side}: {fault}")));
        }
    }
    let all = stations.accounts();
    let nowhere = all.nowhere;
    if all.sent != sent + nowhere || all.received != delivered {
        faults.push(format!(
            "stations sent {} and received {}, links took {sent} (and {nowhere} had no link) and \
             gave {delivered}",
            all.sent, all.received
        ));
    }
    for station in stations.iter() {
        let past = station.adapter().ledger().fault.clone();
        let past = past.map(|fault| format!("in a past incarnation: {fault}"));
        for fault in past.into_iter().chain(check_station(station).err()) {
            faults.push(format!("{}: {fault}", station.name()));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Returns the number and bytes of frames that will arrive under the current carrier, by link and
/// by the side that sent them.
fn arrivals_to_come(stations: &Stations, links: usize) -> Vec<[(u64, u64); 2]> {
    let mut sums = vec![[(0, 0); 2]; links];
    for shard in stations.shards() {
        for event in shard.common.queue.iter() {
            let Kind::Arrive { port, carrier, frame, .. } = &event.kind else { continue };
            let port_state =
                &shard.stations[event.station as usize].adapter().ports()[port.index()];
            let cable = port_state.cable.as_ref();
            if let Some(cable) = cable.filter(|cable| cable.carrier == *carrier) {
                let (frames, bytes) = &mut sums[cable.rare.link.0][1 - cable.rare.side];
                *frames += 1;
                *bytes += frame.length() as u64;
            }
        }
    }
    sums
}

/// Compares the link's counters in the direction from `side` with those of the planes at its ends,
/// where these have served only this link in one incarnation. `coming` bytes are in flight.
fn check_ends(
    link: &Link,
    side: usize,
    fates: &Fates,
    coming: u64,
    stations: &Stations,
) -> Result<(), String> {
    let has_carried = |past: &Fates| past.sent + past.delivered > 0;
    let past = link.past.as_deref();
    if !link.connected || past.is_some_and(|past| past.iter().any(has_carried)) {
        return Ok(());
    }
    let out = port_counters(link.ends[side], stations);
    if let Some(out) = out.filter(|out| out.tx_frames != fates.sent) {
        return Err(format!("sent {} by the count of the port, {fates:?}", out.tx_frames));
    }
    let come = port_counters(link.ends[1 - side], stations);
    if let Some(come) = come.filter(|come| come.rx_frames != fates.delivered) {
        return Err(format!("came {} by the count of the port, {fates:?}", come.rx_frames));
    }
    let differ: u64 = fates.lost.iter().sum::<u64>() + fates.duplicated;
    if let (Some(out), Some(come), 0) = (out, come, differ)
        && out.tx_bytes != come.rx_bytes + coming
    {
        let (tx, rx) = (out.tx_bytes, come.rx_bytes);
        return Err(format!("{tx} bytes sent, {rx} came, {coming} in flight"));
    }
    Ok(())
}

/// Returns a plane's counters of a port, if the plane is in its first incarnation and the port has
/// had no other link.
fn port_counters(end: WireEnd, stations: &Stations) -> Option<PortCounters> {
    // A suspended node has not counted the frames queued for it.
    let whole = |station: &&Station| {
        let stopped = matches!(station.node, StationNode::Stopped(_));
        station.adapter().ledger().incarnations == 1 && !stopped
    };
    let station = stations.get(end.station).filter(whole)?;
    let port_state = station.adapter().ports().get(end.port.index())?;
    let counters = (!port_state.reconnected).then(|| station.node.counters())??;
    (end.port.index() < usize::from(counters.ports())).then(|| counters.port(end.port))
}

/// Checks the counters of an incarnation that ends now and counts its frames as lost. So are the
/// datagrams that it would drop if all its ports lost carrier.
pub(crate) fn close(station: &mut Station, now: Time) {
    let (held, fault) = (held(&station.node), check_station(station).err());
    station.adapter_mut().ledger_mut().close(held, fault);
    if !station.node.is_transit() {
        return;
    }
    let mut out = Vec::new();
    for port in 0..station.adapter().ports().len() {
        let input = Input::Link { port: PortNo(port as u16), up: false };
        station.node.as_node().handle(now, input, &mut out);
    }
    let hop_width = station.adapter().profile().hop_width;
    let ledger = station.adapter_mut().ledger_mut();
    for action in out {
        if let Action::Dropped { frame, .. } = action {
            ledger.lost.count(frame.bytes(), hop_width, Drop::PowerLost.name());
        }
    }
}

/// Returns the number of frames that a node holds: queued, waiting for their tails, or in the
/// control plane.
fn held(node: &StationNode) -> u64 {
    match node {
        StationNode::Off | StationNode::Other(_) => 0,
        StationNode::Stopped(stopped) => held(&stopped.node) + stopped.frames(),
        StationNode::Host(host) => host.accounts().2,
        StationNode::ArpHost(host) => host.accounts().2,
        StationNode::Agent(node) => node.accounts().2,
        StationNode::Switch(node) => {
            queued(node.plane()) + node.plane().held_frames() + node.waiting_frames()
        }
        StationNode::Controller(node) => queued(node.plane()) + node.plane().held_frames(),
        StationNode::Headless(left) => queued(&left.plane) + left.plane.held_frames(),
        StationNode::Baseline(node) => Baseline::held(node),
    }
}

fn queued(plane: &impl Dataplane) -> u64 {
    (0..plane.count()).map(|port| plane.queue(PortNo(port)).frames).sum()
}

fn check_station(station: &Station) -> Result<(), String> {
    match &station.node {
        StationNode::Host(host) => check_host(station, host.accounts(), host.received()),
        StationNode::ArpHost(host) => check_host(station, host.accounts(), host.received()),
        StationNode::Agent(node) => check_agent(station, node.accounts()),
        StationNode::Switch(node) => check_plane(station, node.plane(), node.waiting_frames()),
        StationNode::Controller(node) => check_plane(station, node.plane(), 0),
        StationNode::Headless(left) => check_plane(station, &left.plane, 0),
        StationNode::Baseline(node) => node.check(&station.adapter().ledger().accounts),
        // A stopped node has not counted its pending input; it balances after it resumes.
        StationNode::Off | StationNode::Stopped(_) | StationNode::Other(_) => Ok(()),
    }
}

fn check_host(
    station: &Station,
    (made, unsent, waiting): (u64, u64, u64),
    received: u64,
) -> Result<(), String> {
    let accounts = &station.adapter().ledger().accounts;
    // The NIC drops a frame with a bad FCS before the host receives it.
    let taken = accounts.received - accounts.dropped[Drop::BadFcs as usize];
    if made == accounts.sent + unsent + waiting && received == taken {
        return Ok(());
    }
    Err(format!("made {made}, unsent {unsent}, waiting {waiting}, took {received}: {accounts:?}"))
}

/// Checks an agent: each frame is held, forwarded or dropped; the agent also makes its own frames.
fn check_agent(station: &Station, (received, own, here): (u64, u64, u64)) -> Result<(), String> {
    let accounts = &station.adapter().ledger().accounts;
    let dropped: u64 = accounts.dropped.iter().sum();
    if received == accounts.received && received + own == accounts.sent + dropped + here {
        return Ok(());
    }
    Err(format!("took {received}, made {own}, has {here}, dropped {dropped}: {accounts:?}"))
}

fn check_plane(station: &Station, plane: &impl Dataplane, waiting: u64) -> Result<(), String> {
    let accounts = &station.adapter().ledger().accounts;
    let total = plane.counters().total();
    let own = plane.counters().port(PortNo::CONTROL).rx_frames;
    if total.rx_frames != accounts.received + own || total.tx_frames != accounts.sent {
        return Err(format!(
            "the plane counts {} in (of them {own} of its own) and {} out: {accounts:?}",
            total.rx_frames, total.tx_frames
        ));
    }
    for (reason, counted) in Drop::ALL.iter().zip(accounts.dropped) {
        if total.dropped(*reason) != counted {
            let name = reason.name();
            return Err(format!("{name}: {} counted, {counted} seen", total.dropped(*reason)));
        }
    }
    let (queued, held) = (queued(plane), plane.held_frames());
    let dropped: u64 = accounts.dropped.iter().sum();
    let come = total.rx_frames + total.copies;
    if come != total.tx_frames + queued + held + waiting + dropped {
        return Err(format!(
            "{come} in and copied; {} out, {queued} queued, {held} held, {waiting} wait for \
             routes, {dropped} dropped",
            total.tx_frames
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Faults planted in the world and in its nodes are detected.

    use super::*;
    use crate::World;
    use crate::engine::event::Event;
    use axon_plane::{Plane, PlaneConfig};
    use axon_simhost::apps::{Plan, UdpPlan};
    use axon_wire::{FrameBuf, MacAddr, Span, Time};

    /// Returns a ring whose hosts send more than its links can carry.
    fn busy() -> World {
        let mut world = World::new(&axon_fabric::samples::ring(4, 2), 7);
        assert!(world.run_until_true(Time::from_nanos(5_000_000_000), World::all_have_addresses));
        for host in 0..8 {
            let target = world.address((host + 3) % 8).expect("an address");
            world.with_host(host, |node, now| {
                node.start(Plan::UdpSink { port: 9 }, now);
                let (payload, interval) = (1000, Span::from_nanos(8_500));
                node.start(
                    Plan::Udp(UdpPlan { target, port: 9, payload, interval, count: 3000 }),
                    now,
                );
            });
        }
        world.run_for(Span::from_millis(3));
        world.engine().check_conservation().expect("nothing is planted yet");
        world
    }

    fn is_switch(station: &Station) -> bool {
        matches!(station.node, StationNode::Switch(_))
    }

    /// Runs the world until the next event is the arrival of a frame at a switch. Removes and
    /// returns that event.
    fn take_arrival(world: &mut World) -> Event {
        let shard = &mut world.engine_mut().shards_mut()[0];
        loop {
            let (key, event) = shard.common.queue.pop().expect("traffic");
            let arrives = matches!(event.kind, Kind::Arrive { .. });
            if arrives && is_switch(&shard.stations[event.station as usize]) {
                shard.common.now = key.time;
                return event;
            }
            shard.common.queue.push(key, event);
            shard.step(Time::MAX);
        }
    }

    /// Returns the conservation fault of a world, which is leaked: dropping it would panic.
    fn fault(world: World) -> String {
        let fault = world.engine().check_conservation().expect_err("there is a fault");
        std::mem::forget(world);
        fault
    }

    #[test]
    fn a_link_that_loses_a_frame_without_a_word_is_found() {
        let mut world = busy();
        drop(take_arrival(&mut world));
        let fault = fault(world);
        assert!(fault.contains("arrivals to come"), "{fault}");
    }

    #[test]
    fn a_link_that_loses_a_byte_without_a_word_is_found() {
        let mut world = busy();
        // Find the next frame that a switch receives from another.
        let mut found = String::new();
        for _ in 0..100 {
            let mut event = take_arrival(&mut world);
            let Kind::Arrive { port, carrier, complete_at, frame, .. } = &mut event.kind else {
                unreachable!("an arrival was asked for");
            };
            let (port, carrier, complete_at) = (*port, *carrier, *complete_at);
            let bytes = frame.bytes();
            let frame = FrameBuf::new(&bytes[..bytes.len() - 1]);
            let kind = Kind::Arrive { port, intact: true, carrier, complete_at, frame };
            world.engine_mut().shards_mut()[0].handle(Event { kind, ..event });
            found = world.engine().check_conservation().err().unwrap_or_default();
            if !found.is_empty() {
                break;
            }
        }
        std::mem::forget(world);
        assert!(found.contains("bytes sent"), "{found}");
    }

    #[test]
    fn a_node_that_swallows_one_frame_is_found() {
        let mut world = busy();
        let event = take_arrival(&mut world);
        let Kind::Arrive { port, intact, complete_at, frame, .. } = event.kind else {
            unreachable!("an arrival was asked for");
        };
        let shard = &mut world.engine_mut().shards_mut()[0];
        // Count the arrival as the world does, but do not deliver it.
        let station = &mut shard.stations[event.station as usize];
        station.adapter_mut().ledger_mut().accounts.received += 1;
        let cable = station.adapter_mut().port_mut(port).cable.as_mut().expect("it came by a link");
        cable.delivered += 1;
        drop((intact, complete_at, frame));
        let fault = fault(world);
        assert!(fault.contains("the plane counts"), "{fault}");
    }

    #[test]
    fn a_control_plane_that_swallows_one_frame_is_found() {
        let mut station = Station::new("s1".into(), 0);
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let mut plane: Plane = Plane::new(PlaneConfig::with_ports(2, mac));
        let now = Time::from_nanos(10);
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
        let mut out = Vec::new();
        plane.receive(now, PortNo(1), FrameBuf::new(&frame), now, true, &mut out);
        station.adapter_mut().ledger_mut().accounts.received += 1;
        assert!(matches!(out[..], [axon_node::Action::Punt { .. }]), "{out:?}");
        check_plane(&station, &plane, 0).expect_err("nobody answers for the punted frame");
        plane.count_drop(PortNo(1), Drop::Consumed);
        station.adapter_mut().ledger_mut().accounts.dropped[Drop::Consumed as usize] += 1;
        assert_eq!(check_plane(&station, &plane, 0), Ok(()));
    }

    #[test]
    fn what_a_switch_holds_when_its_power_goes_is_counted() {
        let mut world = busy();
        let engine = world.engine_mut();
        let full =
            engine.stations().position(|station| is_switch(station) && held(&station.node) > 0);
        let full = full.expect("a queue");
        let held = held(&engine.station(full).expect("a station").node);
        engine.power_off(full);
        let lost = engine.accounts().dropped[Drop::PowerLost as usize];
        assert_eq!((lost, engine.check_conservation()), (held, Ok(())));
        // A fault of an incarnation is also reported after its end.
        let other = engine.stations().position(is_switch).expect("another switch");
        engine.station_mut(other).adapter_mut().ledger_mut().accounts.received += 1;
        engine.power_off(other);
        assert!(fault(world).contains("in a past incarnation"));
    }
}
