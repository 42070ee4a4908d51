//! Configuration of a congestion responder.

use super::range::{self, number};
use crate::error::Problem;
use crate::identity;
use crate::model::{End, Fabric};
use crate::{file, names};
use axon_agents::ResponderConfig;
use axon_plane::notification::cpid;
use axon_plane::qcn::{CpConfig, CpError};
use axon_wire::cn::MSDU_BYTES_MAX;
use axon_wire::{PortNo, Priority, TrafficClass};

pub(super) fn responder(
    fabric: &Fabric,
    index: usize,
    (asked, at): (&file::Congestion, End),
) -> Result<ResponderConfig, Problem> {
    let key = |rest: &str| range::key(index, &format!("congestion.{rest}"));
    let egress = egress(fabric, key("egress"), &asked.egress, at)?;
    let most = MSDU_BYTES_MAX as u64;
    let header = number(key("header_bytes"), asked.header_bytes.into(), 0, most)? as u8;
    let priority = number(key("cnm_priority"), asked.cnm_priority.into(), 0, 7)? as u8;
    let point = CpConfig {
        set_point: asked.set_point.0,
        weight_log2: asked.weight_log2,
        header_octets_min: header,
        ..CpConfig::default()
    };
    point.check().map_err(|error| {
        let (rest, expected) = match error {
            CpError::Weight(_) => ("weight_log2", "-10 to 10"),
            _ => ("set_point", "100B or more"),
        };
        Problem::new(key(rest), error.to_string(), expected)
    })?;
    let mac = identity::switch_mac(at.switch);
    Ok(ResponderConfig {
        mac,
        egress,
        point,
        cnm_priority: Priority::from_low_bits(priority),
        cpid: cpid(mac, egress, TrafficClass::ALL[0]),
    })
}

/// Returns the port of the agent's switch that `text` names, directly or by its host.
fn egress(fabric: &Fabric, key: String, text: &str, at: End) -> Result<PortNo, Problem> {
    let switch = &fabric.switches[at.switch];
    let named = match (names::host_index(fabric, text), names::split_port(text)) {
        (Some(host), _) => Some((fabric.hosts[host].switch, fabric.hosts[host].port)),
        (None, Some((node, port))) => {
            names::switch_index(fabric, node).map(|switch| (switch, port))
        }
        (None, None) => None,
    };
    let own = &switch.name;
    let expected = format!("a port of {own} such as {own}-p0, or a host at {own}");
    match named {
        None => Err(Problem::new(key, format!("`{text}` is no port and no host"), expected)),
        Some((other, _)) if other != at.switch => {
            let other = &fabric.switches[other].name;
            let what = format!("`{text}` is at {other}, and the agent sees the queues of {own}");
            Err(Problem::new(key, what, expected))
        }
        Some((_, port)) if port == at.port || port.0 >= switch.ports => {
            let what = format!("{own} has no port {port} that is not the agent's own");
            Err(Problem::new(key, what, expected))
        }
        Some((_, port)) => Ok(port),
    }
}
