//! Selections: the frames that go to an agent.

use super::kind::AgentKind;
use super::range::{key, number};
use crate::error::Problem;
use crate::file;
use crate::model::{Fabric, ProgramSource};
use axon_agents::packet::{ETHERTYPE_IPV4, TCP, UDP};
use axon_programs::ProgramKind;
use axon_programs::agents::Selection;
use std::collections::BTreeMap;

pub(super) fn selections(
    fabric: &Fabric,
    index: usize,
    agent: &file::AgentKeys,
    kind: &AgentKind,
) -> Result<Vec<Selection>, Problem> {
    let selects = !agent.select.is_empty();
    let key = key(index, "select");
    let source = fabric.program.as_ref().map(|program| &program.source);
    let is_bridge = matches!(source, Some(ProgramSource::Ships(ProgramKind::Bridge)));
    match kind {
        AgentKind::Forwarder(_) if selects => {
            let what = "a forwarder gets what is sent to its address";
            return Err(Problem::new(key, what, "no select"));
        }
        _ if selects && !is_bridge => {
            let what = "these switches have no entries that select frames for agents";
            return Err(Problem::new(key, what, "program: bridge"));
        }
        AgentKind::Congestion(_) if !selects => {
            let what = "nothing selects the frames that their source marks for it";
            let expected = "program: bridge, and what those frames have in common";
            return Err(Problem::new(key, what, expected));
        }
        AgentKind::Cache(_) if !selects => {
            let what = "nothing selects frames for it, and it has no address";
            return Err(Problem::new(key, what, "program: bridge, and the frames that it may see"));
        }
        _ => {}
    }
    let all = agent.select.iter().enumerate();
    all.map(|(at, select)| selection(&format!("{key}[{at}]"), select)).collect()
}

fn selection(key: &str, select: &file::Select) -> Result<Selection, Problem> {
    let mut bytes: BTreeMap<u8, (u8, u8)> = BTreeMap::new();
    let mut put = |at: usize, value: &[u8], mask: &[u8]| -> Result<(), Problem> {
        for (place, (value, mask)) in (at..).zip(value.iter().zip(mask)) {
            let place = u8::try_from(place).ok().filter(|place| *place < 128);
            let Some(place) = place else {
                let what = "it looks beyond byte 127";
                return Err(Problem::new(key, what, "bytes 0 to 127 of the frame"));
            };
            if bytes.insert(place, (value & mask, *mask)).is_some() {
                let what = format!("byte {place} is there twice");
                return Err(Problem::new(key, what, "every byte once"));
            }
        }
        Ok(())
    };
    let ports = [(34, select.source_port), (36, select.destination_port)];
    let is_ipv4 = select.protocol.is_some() || ports.iter().any(|(_, port)| port.is_some());
    let ethertype = match select.ethertype {
        Some(ethertype) if is_ipv4 && ethertype != ETHERTYPE_IPV4 => {
            let what = format!("{ethertype:#06x} is not the EtherType of IPv4");
            return Err(Problem::new(format!("{key}.ethertype"), what, "0x0800 with these ports"));
        }
        other => other.or(is_ipv4.then_some(ETHERTYPE_IPV4)),
    };
    if let Some(ethertype) = ethertype {
        number(format!("{key}.ethertype"), ethertype.into(), 0x600, 0xffff)?;
        put(12, &ethertype.to_be_bytes(), &[0xff; 2])?;
    }
    if let Some(protocol) = select.protocol {
        let number = if protocol == file::Transport::Tcp { TCP } else { UDP };
        put(23, &[number], &[0xff])?;
    }
    for (at, port) in ports {
        if let Some(port) = port {
            put(at, &port.to_be_bytes(), &[0xff; 2])?;
        }
    }
    for (number, asked) in select.bytes.iter().enumerate() {
        let key = |rest: &str| format!("{key}.bytes[{number}].{rest}");
        let value = hex(key("value"), &asked.value)?;
        let mask = match &asked.mask {
            Some(mask) => hex(key("mask"), mask)?,
            None => vec![0xff; value.len()],
        };
        if mask.len() != value.len() {
            let what = format!("it has {} bytes and the value {}", mask.len(), value.len());
            return Err(Problem::new(key("mask"), what, "as many bytes as the value"));
        }
        put(asked.at.into(), &value, &mask)?;
    }
    if bytes.is_empty() {
        return Err(Problem::new(key, "it says nothing", "what the frames have in common"));
    }
    let bytes = bytes.into_iter().map(|(at, (value, mask))| (at, value, mask)).collect();
    Ok(Selection { bytes })
}

/// Parses bytes in hex.
fn hex(key: String, text: &str) -> Result<Vec<u8>, Problem> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let even = digits.filter(|digits| !digits.is_empty() && digits.len().is_multiple_of(2));
    let bytes = even.map(|digits| digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect());
    bytes.ok_or_else(|| Problem::new(key, format!("`{text}` is not hex"), "bytes such as 0800"))
}
