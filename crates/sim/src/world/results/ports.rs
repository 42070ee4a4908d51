//! Counters of single ports and links.

use crate::link::links::{LinkId, Loss, WireEnd};
use crate::world::World;
use axon_fabric::assemble::port_name;
use axon_node::Drop;
use axon_wire::PortNo;

/// Counters of a port of a switch or of the controller, in this incarnation of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCount {
    /// Port name, such as `s1-p0`.
    pub name: String,
    /// Port at the other end of its link; empty without one.
    pub peer: String,
    /// Number of received frames.
    pub rx_frames: u64,
    /// Received bytes, without FCS.
    pub rx_bytes: u64,
    /// Number of sent frames.
    pub tx_frames: u64,
    /// Sent bytes, without FCS.
    pub tx_bytes: u64,
    /// Number of frames received here that ended in the node, except [`Drop::is_ordinary`] ones.
    pub dropped: u64,
}

/// Frames that ended at one place for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndCount {
    /// Node in which the frames ended, their ingress port, or, for frames lost by links, the port
    /// that sent them.
    pub place: String,
    /// Name of a node's reason (`axon_node::Drop`) or of a link's (`links::Loss`).
    pub reason: &'static str,
    /// True if frames end like this in normal operation.
    pub is_ordinary: bool,
    /// Number of frames that ended there for this reason.
    pub frames: u64,
}

/// Returns the name of a port of a station.
pub(super) fn name_of(world: &World, end: WireEnd) -> String {
    let station = world.engine().station(end.station);
    port_name(station.map_or("", |station| station.name()), end.port)
}

/// Returns the counters of every port of switches and controller, in order.
pub fn port_counts(world: &World) -> Vec<PortCount> {
    let engine = world.engine();
    let mut all = Vec::new();
    for (number, station) in engine.stations().enumerate() {
        let Some(counters) = station.node.counters() else { continue };
        for index in 0..station.adapter().ports().len() {
            let end = WireEnd { station: number, port: PortNo(index as u16) };
            let count = counters.port(end.port);
            let peer = engine
                .link_at(end)
                .map(|(LinkId(link), side)| name_of(world, engine.links()[link].ends[1 - side]));
            let lost = Drop::ALL.iter().filter(|reason| !reason.is_ordinary());
            all.push(PortCount {
                name: name_of(world, end),
                peer: peer.unwrap_or_default(),
                rx_frames: count.rx_frames,
                rx_bytes: count.rx_bytes,
                tx_frames: count.tx_frames,
                tx_bytes: count.tx_bytes,
                dropped: lost.map(|&reason| count.dropped(reason)).sum(),
            });
        }
    }
    all
}

/// Returns where frames ended, by reason: at ports of switches and the controller, in hosts, and on
/// links. Of a restarted node only the last incarnation is counted by port; the rest is counted for
/// the node.
pub fn end_counts(world: &World) -> Vec<EndCount> {
    let engine = world.engine();
    let mut all = Vec::new();
    let mut add = |place: &dyn Fn() -> String, (reason, is_ordinary), frames: u64| {
        if frames > 0 {
            all.push(EndCount { place: place(), reason, is_ordinary, frames });
        }
    };
    let of = |reason: &Drop| (reason.name(), reason.is_ordinary());
    for (number, station) in engine.stations().enumerate() {
        let mut left = station.accounts().dropped;
        if let Some(counters) = station.node.counters() {
            for index in 0..station.adapter().ports().len() {
                let end = WireEnd { station: number, port: PortNo(index as u16) };
                for (reason, left) in Drop::ALL.iter().zip(&mut left) {
                    let here = counters.port(end.port).dropped(*reason);
                    add(&|| name_of(world, end), of(reason), here);
                    *left = left.saturating_sub(here);
                }
            }
        }
        for (reason, left) in Drop::ALL.iter().zip(left) {
            add(&|| station.name().to_owned(), of(reason), left);
        }
    }
    for (index, link) in engine.links().iter().enumerate() {
        for (side, &end) in link.ends.iter().enumerate() {
            let lost = engine.fates(LinkId(index), side).lost;
            for (loss, count) in Loss::ALL.iter().zip(lost) {
                add(&|| name_of(world, end), (loss.name(), false), count);
            }
        }
    }
    all
}
