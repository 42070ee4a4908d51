//! Telemetry for LLDP and DCBX on one port.

use crate::ieee::Remote;
use crate::lldp::Neighbour;
use crate::port::DcbPort;
use alloc::string::{String, ToString};
use axon_node::telemetry::{
    DcbxTelemetry, Defence, LldpNeighbour, RemoteDcbx, RemoteEts, RemotePfc,
};
use axon_wire::lldp::{Id, kind};
use axon_wire::{MacAddr, PortNo};

/// Subtypes of IDs that contain a MAC address (IEEE 802.1AB tables 8-2 and 8-3).
const CHASSIS_MAC: u8 = 4;
const PORT_MAC: u8 = 3;

impl DcbPort {
    /// Returns the advertised, received and operational values. `number` is the port number.
    pub fn telemetry(&self, number: PortNo) -> DcbxTelemetry {
        let operational = self.operational();
        let counters = self.agent().counters();
        let defences = self.defences().into_iter().flat_map(|defences| {
            let inside = defences.advertises().values.iter();
            inside.map(|priority| Defence { priority, mode: defences.mode(priority).name().into() })
        });
        DcbxTelemetry {
            port: number,
            name: id(&self.agent().identity().port, PORT_MAC),
            neighbours: self.agent().neighbours().iter().map(neighbour).collect(),
            dialect: self.speaking(),
            pfc: operational.pfc,
            pfc_from: operational.pfc_from,
            ets: operational.ets,
            ets_from: operational.ets_from,
            received: self.remote().map(received),
            defence: defences.collect(),
            trouble: self.notes().iter().map(ToString::to_string).collect(),
            tx_lldpdus: counters.sent,
            rx_lldpdus: counters.received,
            rx_malformed: counters.malformed,
            rx_foreign: counters.foreign,
            aged_out: counters.aged_out,
        }
    }
}

fn received(remote: &Remote) -> RemoteDcbx {
    RemoteDcbx {
        pfc: remote.pfc.map(|pfc| RemotePfc { willing: pfc.willing, enabled: pfc.enabled }),
        ets: remote.configuration.map(|ets| RemoteEts { willing: ets.willing, table: ets.ets }),
        recommended_ets: remote.recommendation,
    }
}

fn neighbour(neighbour: &Neighbour) -> LldpNeighbour {
    let name = neighbour.optional.iter().find(|tlv| tlv.kind == kind::SYSTEM_NAME);
    LldpNeighbour {
        chassis: id(&neighbour.chassis, CHASSIS_MAC),
        port: id(&neighbour.port, PORT_MAC),
        system: name.map(|tlv| printable(&tlv.value)),
    }
}

fn id(id: &Id, mac_subtype: u8) -> String {
    match <[u8; 6]>::try_from(&id.name[..]) {
        Ok(bytes) if id.subtype == mac_subtype => MacAddr(bytes).to_string(),
        _ => printable(&id.name),
    }
}

/// Returns a neighbour's text without characters that might confuse a terminal.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_neighbour_calls_itself_does_no_harm() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        assert_eq!(id(&Id::chassis_of_mac(mac), CHASSIS_MAC), "02:00:00:00:00:01");
        assert_eq!(id(&Id::port_of_name("\x1b[2Js1-p0\n"), PORT_MAC), "[2Js1-p0");
    }
}
