//! Checks on the captures from the hosts' ports: there is only plain Ethernet, and nothing is
//! malformed.
//!
//! There are two checks. Our own reads the first 14 bytes of each frame. The EtherType must be in a
//! short list, and one of the addresses must be the host's own or a group address. An Axon packet
//! fails both conditions, because it begins with its header, which has hops and counts in place of
//! addresses. The other check is tshark, which dissects every frame and verifies checksums.
//!
//! Where hosts have their offloads, a capture inside a host sees bulk data before a NIC has
//! segmented it and finished its checksums. In that case, [`checksum`] checks bulk data instead,
//! because tshark would report all checksums that are left to a NIC as wrong.

use super::capture::{Captured, Take};
use super::checksum::{self, Checksum};
use super::iperf;
use super::process::{Process, Stop};
use anyhow::{Context, Result, bail};
use axon_capture::pcap::{LinkType, Reader};
use axon_wire::MacAddr;
use axon_wire::constants::ethertype;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// EtherTypes that a host's port may carry: IPv4, IPv6 (the fabric queries group members by MLD as
/// well as by IGMP), ARP, our link frames, and MAC control.
const ETHERTYPES: [u16; 5] =
    [ethertype::IPV4, ethertype::IPV6, ethertype::ARP, ethertype::LINK, ethertype::MAC_CONTROL];
/// Length of the longest frame that is not several frames in one: 14 bytes, one tag of 4, and the
/// MTU.
const FRAME_BYTES_MAX: usize = 14 + 4 + iperf::MTU as usize;
/// Time limit for tshark. It dissects some 50,000 frames a second, and a demo has a few million at
/// most.
const TSHARK_LIMIT: Duration = Duration::from_secs(240);
/// Number of tshark processes that run at the same time.
const TSHARKS: usize = 2;

/// Results of checking a set of captures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Number of checked frames.
    pub frames: u64,
    /// Number of frames that dumpcap dropped, and that were not checked.
    pub missed: u64,
    /// Number of frames that are not plain Ethernet of that host.
    pub foreign: u64,
    /// Number of frames with a tshark error or a wrong checksum.
    pub malformed: u64,
    /// Number of frames longer than the MTU: super-packets of hosts with offloads.
    pub super_packets: u64,
    /// Number of checksums that a host has left to its NIC, as its offloads allow.
    pub left_to_nic: u64,
    /// Number of frames by EtherType in hexadecimal.
    pub ethertypes: BTreeMap<String, u64>,
    /// First few foreign and malformed frames, in words.
    pub examples: Vec<String>,
}

impl Findings {
    /// Adds the results from another capture.
    pub(crate) fn add(&mut self, other: Findings) {
        self.frames += other.frames;
        self.missed += other.missed;
        self.foreign += other.foreign;
        self.malformed += other.malformed;
        self.super_packets += other.super_packets;
        self.left_to_nic += other.left_to_nic;
        for (ethertype, count) in other.ethertypes {
            *self.ethertypes.entry(ethertype).or_default() += count;
        }
        self.examples.extend(other.examples);
        self.examples.truncate(10);
    }
}

/// Checks all captures. `mac` returns the address of a host. With `offloads`, hosts leave checksums
/// and segmentation to their NICs.
///
/// # Errors
/// A file cannot be read, tshark fails, or the user stops the run.
pub(crate) fn judge(
    captures: &[Captured],
    mac: impl Fn(&str) -> MacAddr,
    offloads: bool,
    logs: &Path,
    stop: &Stop,
) -> Result<Findings> {
    let mut findings = Findings::default();
    let mut running: Vec<(Process, &Captured)> = Vec::new();
    for capture in captures {
        stop.check()?;
        if running.len() >= TSHARKS {
            let (process, of) = running.remove(0);
            findings.add(complaints(process, of, stop)?);
        }
        let name = capture.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let sums = !(offloads && capture.take == Take::Bulk);
        let tshark = tshark(&capture.file, sums);
        let tshark = Process::start(tshark, logs, &format!("tshark-{}-{name}", running.len()))?;
        running.push((tshark, capture));
        let file =
            File::open(&capture.file).with_context(|| format!("no capture of {}", capture.host))?;
        let mut plain = plain_ethernet(file, &capture.host, mac(&capture.host), offloads)
            .with_context(|| format!("cannot read {}", capture.file.display()))?;
        plain.missed = capture.missed;
        findings.add(plain);
    }
    for (process, of) in running {
        findings.add(complaints(process, of, stop)?);
    }
    Ok(findings)
}

/// Returns the command that prints frames that are malformed or in error. Bulk data consists of
/// random bytes, so tshark is configured to treat it as data. With `sums`, checksums are verified.
fn tshark(file: &Path, sums: bool) -> Command {
    use super::{gap, iperf};
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(file);
    for option in ["ip.check_checksum", "tcp.check_checksum", "udp.check_checksum"] {
        command.args(["-o", &format!("{option}:{}", if sums { "TRUE" } else { "FALSE" })]);
    }
    for port in [iperf::PORT, gap::PORT] {
        command.args(["-d", &format!("udp.port=={port},data")]);
    }
    command.args(["-d", &format!("tcp.port=={},data", iperf::PORT)]);
    command.args(["-Y", "_ws.malformed || _ws.expert.severity == error"]);
    command
}

fn complaints(process: Process, of: &Captured, stop: &Stop) -> Result<Findings> {
    let output = process.succeed(TSHARK_LIMIT, stop)?;
    let malformed = output.lines().filter(|line| !line.trim().is_empty()).count() as u64;
    let examples = output.lines().take(3).map(|line| format!("{}: {}", of.host, line.trim()));
    Ok(Findings { malformed, examples: examples.collect(), ..Findings::default() })
}

/// Parses a capture of Ethernet frames, and checks each frame from the point of view of `host` with
/// the address `mac`.
fn plain_ethernet(file: impl Read, host: &str, mac: MacAddr, offloads: bool) -> Result<Findings> {
    let mut findings = Findings::default();
    let mut counts = BTreeMap::<u16, u64>::new();
    let mut reader = Reader::new(file)?;
    while let Some(frame) = reader.next_frame()? {
        let (number, link_type) = (frame.number, frame.link_type);
        if link_type != LinkType::ETHERNET {
            bail!("frame {number} is of link type {}, not Ethernet (1)", link_type.0);
        }
        findings.frames += 1;
        let ethertype = frame.bytes.get(12..14).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
        *counts.entry(ethertype).or_default() += 1;
        findings.super_packets += u64::from(frame.wire_bytes > FRAME_BYTES_MAX);
        let sum = checksum::judge(frame.bytes);
        findings.left_to_nic += u64::from(sum == Checksum::LeftToNic);
        let is_wrong = match sum {
            Checksum::Right | Checksum::Unknown => false,
            Checksum::LeftToNic => !offloads,
            Checksum::Wrong => true,
        };
        let is_foreign = !is_plain(frame.bytes, ethertype, mac);
        findings.malformed += u64::from(is_wrong);
        findings.foreign += u64::from(is_foreign);
        if (is_foreign || is_wrong) && findings.examples.len() < 3 {
            let head = &frame.bytes[..frame.bytes.len().min(if is_foreign { 20 } else { 96 })];
            findings.examples.push(format!("{host}: {head:02x?} ..."));
        }
    }
    let name = |(ethertype, count)| (format!("0x{ethertype:04x}"), count);
    findings.ethertypes = counts.into_iter().map(name).collect();
    Ok(findings)
}

fn is_plain(frame: &[u8], ethertype: u16, mac: MacAddr) -> bool {
    let (Some(destination), Some(source)) =
        (MacAddr::destination_of(frame), MacAddr::source_of(frame))
    else {
        return false;
    };
    let ours = source == mac || destination == mac || destination.is_multicast();
    ours && !source.is_multicast() && ETHERTYPES.contains(&ethertype)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        for frame in frames {
            for word in [0, 0, frame.len() as u32, frame.len() as u32] {
                file.extend_from_slice(&word.to_le_bytes());
            }
            file.extend_from_slice(frame);
        }
        file
    }

    fn ethernet(destination: MacAddr, source: MacAddr, ethertype: u16) -> Vec<u8> {
        let mut frame = [destination.0, source.0].concat();
        frame.extend_from_slice(&ethertype.to_be_bytes());
        frame.resize(60, 0);
        frame
    }

    #[test]
    fn frames_from_and_to_the_host_and_to_groups_are_plain() {
        let other = MacAddr([2, 0, 0, 0, 0, 2]);
        let file = pcap(&[
            ethernet(HOST, other, 0x0800),
            ethernet(other, HOST, 0x0806),
            ethernet(MacAddr::BROADCAST, HOST, 0x0806),
            ethernet(MacAddr([0x33, 0x33, 0, 0, 0, 1]), other, 0x86dd),
            axon_wire::link::emit(other, b"hello"),
        ]);
        let findings = plain_ethernet(&file[..], "h1", HOST, false).unwrap();
        assert_eq!((findings.frames, findings.foreign), (5, 0));
        assert_eq!(findings.ethertypes["0x0806"], 2);
    }

    #[test]
    fn an_axon_packet_on_a_host_port_is_found() {
        use axon_wire::header::{PacketType, emit};
        use axon_wire::{HopWidth, PortNo};
        let mut packet = vec![0; 16];
        let hops = [PortNo(1), PortNo(3)];
        let length =
            emit(&mut packet, HopWidth::Eight, PacketType::Ethernet, &hops, &[PortNo(0)]).unwrap();
        packet.truncate(length);
        packet.extend(ethernet(HOST, MacAddr([2, 0, 0, 0, 0, 2]), 0x0800));
        let findings = plain_ethernet(&pcap(&[packet])[..], "h1", HOST, false).unwrap();
        assert_eq!((findings.frames, findings.foreign), (1, 1));
        assert!(findings.examples[0].starts_with("h1: [10, 00, 90"), "{:?}", findings.examples);
    }

    #[test]
    fn a_foreign_address_or_type_is_found() {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 3]));
        let file = pcap(&[ethernet(a, b, 0x0800), ethernet(HOST, a, 0x1234), vec![2; 13]]);
        assert_eq!(plain_ethernet(&file[..], "h1", HOST, false).unwrap().foreign, 3);
    }

    #[test]
    fn a_file_that_is_no_pcap_or_cut_short_is_an_error() {
        let file = pcap(&[ethernet(HOST, HOST, 0x0800)]);
        assert!(plain_ethernet(&file[..20], "h1", HOST, false).is_err());
        assert!(plain_ethernet(&file[..60], "h1", HOST, false).is_err());
        assert!(plain_ethernet(&[0; 24][..], "h1", HOST, false).is_err());
    }

    #[test]
    fn a_checksum_that_is_left_to_a_nic_is_one_only_where_hosts_have_offloads() {
        let mut frame = ethernet(MacAddr([2, 0, 0, 0, 0, 2]), HOST, 0x0800);
        frame.truncate(14);
        // UDP without addresses or ports. The sum of its pseudo-header is 17 plus its length, 8.
        frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([0, 0, 0, 0, 0, 8, 0, 25]);
        let judged = |frame: &[u8], offloads| {
            let file = pcap(&[frame.to_vec()]);
            let findings = plain_ethernet(&file[..], "h1", HOST, offloads).unwrap();
            (findings.malformed, findings.left_to_nic)
        };
        assert_eq!(judged(&frame, true), (0, 1));
        assert_eq!(judged(&frame, false), (1, 1));
        frame[41] = 26;
        assert_eq!(judged(&frame, true), (1, 0));
    }
}
