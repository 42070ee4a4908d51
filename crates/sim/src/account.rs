//! Conservation: every frame has exactly one fate.
//!
//! On links: each frame that was sent has come out, is lost for a counted reason, or is in
//! flight (on the wire, or in the pipelines of the switches at its ends), and as many are in
//! flight as arrivals are to come. At hosts: each frame that was
//! made is on the wire, ended for want of carrier, or waits. At switches and controllers:
//! the plane has counted exactly the frames that the world handed to it and took from it;
//! what came in (from wires and from the control plane) has been sent, waits in a queue, was
//! dropped for a counted reason, or was handed to the control plane, which the node's own
//! tests follow further.

use crate::engine::Engine;
use crate::links::LinkId;
use crate::station::{Body, Station};
use axon_plane::{Drop, Plane, Punt};
use axon_wire::{FrameBuf, PortNo};

impl Engine {
    /// Checks that every frame has exactly one fate.
    ///
    /// # Errors
    /// One line for each account that does not balance.
    pub fn check_conservation(&self) -> Result<(), String> {
        let mut faults = Vec::new();
        let (mut in_flight, mut sent, mut delivered) = (0, 0, 0);
        for index in 0..self.links().len() {
            for side in 0..2 {
                let fates = self.fates(LinkId(index), side);
                in_flight += fates.in_flight;
                sent += fates.sent;
                delivered += fates.delivered;
                if !fates.balance() {
                    faults.push(format!("link {index} side {side}: {fates:?}"));
                }
            }
        }
        let arrivals = self.arrivals_to_come();
        if in_flight != arrivals {
            faults.push(format!("{in_flight} frames in flight, {arrivals} arrivals to come"));
        }
        let all = self.accounts();
        let nowhere = all.nowhere;
        if all.sent != sent + nowhere || all.received != delivered {
            faults.push(format!(
                "stations sent {} and received {}, links took {sent} (and {nowhere} had no \
                 link) and gave {delivered}",
                all.sent, all.received
            ));
        }
        for station in self.stations() {
            if let Err(fault) = check_station(station) {
                faults.push(format!("{}: {fault}", station.name));
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }
}

fn check_station(station: &Station) -> Result<(), String> {
    match &station.body {
        Body::Host(host) => check_host(station, host.accounts(), host.received()),
        Body::ArpHost(host) => check_host(station, host.accounts(), host.received()),
        Body::Switch(node) => check_plane(station, node.plane()),
        Body::Controller(node) => check_plane(station, node.plane()),
        Body::Baseline(node) => node.check(station),
        Body::Off | Body::Other(_) => Ok(()),
    }
}

fn check_host(
    station: &Station,
    (made, unsent, waiting): (u64, u64, u64),
    received: u64,
) -> Result<(), String> {
    let accounts = &station.accounts;
    // Its network card drops a frame with a bad FCS before the host sees it.
    let taken = accounts.received - accounts.dropped[Drop::BadFcs as usize];
    if made == accounts.sent + unsent + waiting && received == taken {
        return Ok(());
    }
    Err(format!("made {made}, unsent {unsent}, waiting {waiting}, took {received}: {accounts:?}"))
}

fn check_plane(station: &Station, plane: &Plane<FrameBuf>) -> Result<(), String> {
    let accounts = &station.accounts;
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
    let queued: u64 = (0..plane.config().ports).map(|port| plane.queued_frames(PortNo(port))).sum();
    let punted: u64 = Punt::ALL.iter().map(|&punt| total.punted(punt)).sum();
    let dropped: u64 = accounts.dropped.iter().sum();
    let least = total.tx_frames + queued + punted;
    if total.rx_frames < least || total.rx_frames > least + dropped {
        return Err(format!(
            "{} in; {} out, {queued} queued, {punted} punted, {dropped} dropped",
            total.rx_frames, total.tx_frames
        ));
    }
    Ok(())
}
