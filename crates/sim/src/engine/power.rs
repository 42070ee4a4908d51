//! Power, suspension and crashes of the nodes of stations. For each function see the method of
//! [`Engine`](crate::Engine) that calls it.

use crate::engine::conservation;
use crate::engine::dataplane::SwitchPlane;
use crate::engine::event::Common;
use crate::engine::headless::Headless;
use crate::engine::station::{Station, StationNode, Stopped};
use crate::engine::stations::Stations;
use crate::engine::trace::What;
use crate::link::cabling::Cabling;
use axon_node::{Dataplane, Drop, Input};
use axon_switch::SwitchNode;
use axon_wire::{PortNo, Time};

pub(crate) fn on(number: usize, node: StationNode, stations: &mut Stations, cabling: &mut Cabling) {
    off(number, stations, cabling);
    let (station, common) = stations.call(number);
    station.adapter_mut().profile_mut().checks_fcs = node.is_host();
    begin(station, node, common);
    cabling.refresh_station(number, stations);
    let (station, common) = stations.call(number);
    station.nudge(common);
}

/// Begins an incarnation.
fn begin(station: &mut Station, node: StationNode, common: &mut Common) {
    station.adapter_mut().begin(!node.is_transit(), common);
    station.node = node;
}

pub(crate) fn off(number: usize, stations: &mut Stations, cabling: &mut Cabling) {
    let (station, common) = stations.call(number);
    if !station.node.is_on() {
        return;
    }
    conservation::close(station, common.now);
    station.node = StationNode::Off;
    let adapter = station.adapter_mut();
    adapter.forget();
    adapter.ledger_mut().end();
    adapter.record(PortNo::CONTROL, What::Power(None), common);
    cabling.refresh_station(number, stations);
}

pub(crate) fn suspend((station, common): (&mut Station, &mut Common)) {
    if matches!(station.node, StationNode::Off | StationNode::Stopped(_)) {
        return;
    }
    station.free_wires(common);
    let node = std::mem::replace(&mut station.node, StationNode::Off);
    station.node = StationNode::Stopped(Box::new(Stopped { node, inputs: Vec::new() }));
}

pub(crate) fn resume((station, common): (&mut Station, &mut Common)) {
    let StationNode::Stopped(stopped) = &mut station.node else { return };
    let inputs = std::mem::take(&mut stopped.inputs);
    station.node = std::mem::replace(&mut stopped.node, StationNode::Off);
    for input in inputs {
        // Frames sent since it resumed are lost if the carrier changed before.
        if let Input::Link { port, .. } = input {
            station.adapter_mut().cancel_tx_done(port);
            station.adapter_mut().port_mut(port).is_free_at(Time::ZERO);
        }
        station.deliver(input, common);
    }
    station.nudge(common);
}

pub(crate) fn crash((station, common): (&mut Station, &mut Common)) {
    match std::mem::replace(&mut station.node, StationNode::Off) {
        StationNode::Switch(node) => {
            let waiting = node.waiting_frames();
            let mut plane = node.into_plane();
            (0..waiting).for_each(|_| plane.count_drop(PortNo::CONTROL, Drop::PowerLost));
            station.adapter_mut().ledger_mut().close(waiting, None);
            station.node = StationNode::Headless(Box::new(Headless { plane }));
            station.adapter_mut().record(PortNo::CONTROL, What::Power(None), common);
        }
        other => station.node = other,
    }
}

pub(crate) fn restart(
    (station, common): (&mut Station, &mut Common),
    start: impl FnOnce(SwitchPlane) -> SwitchNode<SwitchPlane>,
) {
    let left = match std::mem::replace(&mut station.node, StationNode::Off) {
        StationNode::Headless(left) => left,
        other => return station.node = other,
    };
    begin(station, StationNode::Switch(Box::new(start(left.plane))), common);
    let ports = (0u16..).zip(station.adapter().ports());
    let up = ports.filter(|(_, port)| port.cable.as_ref().is_some_and(|cable| cable.carrier != 0));
    let up: Vec<PortNo> = up.map(|(number, _)| PortNo(number)).collect();
    for port in up {
        station.deliver(Input::Link { port, up: true }, common);
    }
    station.nudge(common);
}
