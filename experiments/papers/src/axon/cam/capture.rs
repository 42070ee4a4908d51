//! Destination addresses of a pcap or pcapng file.

use anyhow::{Context, Result};
use axon_capture::pcap::{Frame, LinkType, ReadError, Reader};
use axon_wire::constants::ethertype;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// 802.1Q, 802.1ad, and the older one that some switches still use for the outer tag.
const ETHERTYPES_OF_TAGS: [u16; 3] = [ethertype::CUSTOMER_TAG, ethertype::SERVICE_TAG, 0x9100];

/// Destination of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// MAC address, where the capture has Ethernet headers.
    pub mac: Option<[u8; 6]>,
    /// IP address, if it is an IP packet.
    pub ip: Option<IpAddr>,
}

/// End of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Number of packets in the capture.
    pub packets: u64,
    /// Number of Axon packets, which carry routes and not destinations; they are skipped.
    pub axon_packets: u64,
    /// Number of packets of a link type that is neither Ethernet nor plain IP.
    pub unknown_links: u64,
    /// Error, if the file is truncated, as that of a killed capture.
    pub broken_off: Option<String>,
}

/// Calls `each` with the destination of every packet of a pcap or pcapng file, in order.
///
/// # Errors
/// The file cannot be read or is neither.
pub(crate) fn read(path: &Path, mut each: impl FnMut(Destination)) -> Result<Ending> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    let reader = Reader::new(file);
    let expected = || format!("{}: expected a pcap or pcapng file", name());
    let mut reader = reader.with_context(expected)?;
    let mut ending = Ending::default();
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => ending.packet(&frame, &mut each),
            Ok(None) => return Ok(ending),
            Err(error @ ReadError::Io { .. }) => return Err(error).with_context(name),
            Err(error) => {
                ending.broken_off = Some(error.to_string());
                return Ok(ending);
            }
        }
    }
}

impl Ending {
    fn packet(&mut self, frame: &Frame<'_>, each: &mut impl FnMut(Destination)) {
        self.packets += 1;
        match frame.link_type {
            LinkType::ETHERNET if is_axon(frame.bytes) => self.axon_packets += 1,
            LinkType::AXON => self.axon_packets += 1,
            LinkType::ETHERNET => each(of_ethernet(frame.bytes)),
            LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => {
                each(Destination { mac: None, ip: of_ip(frame.bytes) });
            }
            _ => self.unknown_links += 1,
        }
    }
}

/// Returns whether an Ethernet frame contains an Axon packet.
fn is_axon(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&axon_wire::link::ETHERTYPE.to_be_bytes())
}

fn of_ethernet(frame: &[u8]) -> Destination {
    let mac = frame.first_chunk::<6>().copied();
    let mut at = 12;
    while let Some(&[a, b]) = frame.get(at..at + 2).and_then(|bytes| bytes.first_chunk()) {
        let ethertype = u16::from_be_bytes([a, b]);
        at += 2;
        if ETHERTYPES_OF_TAGS.contains(&ethertype) {
            at += 2;
            continue;
        }
        let carries_ip = [ethertype::IPV4, ethertype::IPV6].contains(&ethertype);
        let ip = if carries_ip { of_ip(frame.get(at..).unwrap_or(&[])) } else { None };
        return Destination { mac, ip };
    }
    Destination { mac, ip: None }
}

/// Returns the destination of an IP header (RFC 791 §3.1, RFC 8200 §3).
fn of_ip(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => {
            let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        }
        6 => {
            let octets: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}
