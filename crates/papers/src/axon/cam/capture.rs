//! Destination addresses out of a pcap or pcapng file.

use anyhow::{Context, Result, bail, ensure};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the older one that some switches still use for the outer tag.
const ETHERTYPES_OF_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// What our own captures call links between switches (LINKTYPE_USER0).
const LINKTYPE_AXON: u32 = 147;
/// First bytes of a pcapng file: the type of its section header block.
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Where a packet goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// At layer 2, where the capture has Ethernet headers.
    pub mac: Option<[u8; 6]>,
    /// At layer 3, where it is an IP packet.
    pub ip: Option<IpAddr>,
}

/// How a capture came to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Packets in it.
    pub packets: u64,
    /// Axon packets, which carry routes and not destinations; no one is called for them.
    pub axon_packets: u64,
    /// Packets of a link type that is neither Ethernet nor plain IP.
    pub unknown_links: u64,
    /// Why it was read no further, if the file breaks off: a capture that was killed does.
    pub broken_off: Option<String>,
}

/// Calls `each` with the destination of every packet of a pcap or pcapng file, in order.
///
/// # Errors
/// The file cannot be read or is neither.
pub fn read(path: &Path, each: impl FnMut(Destination)) -> Result<Ending> {
    let name = || path.display().to_string();
    let mut file = File::open(path).with_context(name)?;
    let mut magic = [0; 4];
    let read = file.read(&mut magic).with_context(name)?;
    ensure!(read == 4, "{}: expected a pcap or pcapng file, got {read} bytes", name());
    file.seek(SeekFrom::Start(0)).with_context(|| format!("{}: not a file to seek in", name()))?;
    let file = BufReader::new(file);
    if magic == PCAPNG_MAGIC { pcapng(file, each) } else { pcap(file, each) }.with_context(name)
}

fn pcap(file: BufReader<File>, mut each: impl FnMut(Destination)) -> Result<Ending> {
    let mut reader = match PcapReader::new(file) {
        Ok(reader) => reader,
        Err(error) => bail!("expected a pcap or pcapng file: {error}"),
    };
    let link = reader.header().datalink;
    let mut read = Ending::default();
    while let Some(packet) = reader.next_packet() {
        match packet {
            Ok(packet) => read.packet(link, &packet.data, &mut each),
            Err(error) => {
                read.broken_off = Some(broken(&error));
                break;
            }
        }
    }
    Ok(read)
}

fn pcapng(file: BufReader<File>, mut each: impl FnMut(Destination)) -> Result<Ending> {
    let mut reader = PcapNgReader::new(file).context("expected a pcap or pcapng file")?;
    let mut read = Ending::default();
    // Interfaces are counted from zero in each section anew.
    let mut links: Vec<DataLink> = Vec::new();
    while let Some(block) = reader.next_block() {
        let block = match block {
            Ok(block) => block,
            Err(error) => {
                read.broken_off = Some(broken(&error));
                break;
            }
        };
        let link = |interface: u32| links.get(interface as usize).copied();
        match block {
            Block::SectionHeader(_) => links.clear(),
            Block::InterfaceDescription(interface) => links.push(interface.linktype),
            Block::EnhancedPacket(packet) => {
                read.packet_on(link(packet.interface_id), &packet.data, &mut each);
            }
            Block::SimplePacket(packet) => read.packet_on(link(0), &packet.data, &mut each),
            Block::Packet(packet) => {
                read.packet_on(link(packet.interface_id.into()), &packet.data, &mut each);
            }
            _ => {}
        }
    }
    Ok(read)
}

fn broken(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "the last packet is not whole".to_owned(),
        error => error.to_string(),
    }
}

impl Ending {
    fn packet_on(
        &mut self,
        link: Option<DataLink>,
        bytes: &[u8],
        each: &mut impl FnMut(Destination),
    ) {
        match link {
            Some(link) => self.packet(link, bytes, each),
            None => {
                self.packets += 1;
                self.unknown_links += 1;
            }
        }
    }

    fn packet(&mut self, link: DataLink, bytes: &[u8], each: &mut impl FnMut(Destination)) {
        self.packets += 1;
        match link {
            DataLink::ETHERNET if is_axon(bytes) => self.axon_packets += 1,
            link if u32::from(link) == LINKTYPE_AXON => self.axon_packets += 1,
            DataLink::ETHERNET => each(of_ethernet(bytes)),
            DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => {
                each(Destination { mac: None, ip: of_ip(bytes) });
            }
            _ => self.unknown_links += 1,
        }
    }
}

/// Whether an Ethernet frame is the cover of an Axon packet.
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
        let carries_ip = [ETHERTYPE_IPV4, ETHERTYPE_IPV6].contains(&ethertype);
        let ip = if carries_ip { of_ip(frame.get(at..).unwrap_or(&[])) } else { None };
        return Destination { mac, ip };
    }
    Destination { mac, ip: None }
}

/// The destination in an IP header (RFC 791 §3.1, RFC 8200 §3).
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
