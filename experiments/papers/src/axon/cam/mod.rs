//! Required size of a port's CAM, from the reuse of destination addresses in a trace (thesis §4.5
//! and figure 4.9, paper 001 §5.3 and figure 5). The tool behind `axon cam`.

pub mod capture;
pub mod distance;
pub mod traces;

use crate::reproduce::{Figure, Table};
use anyhow::{Result, bail, ensure};
use axon_plot::{Axis, Plot, Series};
use capture::Ending;
use distance::{Curve, Distances, Reading};
use serde::Serialize;
use std::net::IpAddr;
use std::path::Path;

/// Entries that the paper finds sufficient at every port.
pub(crate) const PAPER_ENTRIES: u64 = 4000;
/// Sizes within a factor of ten at which curves are drawn.
const STEPS: [u64; 10] = [10, 13, 16, 20, 25, 32, 40, 50, 63, 80];
/// Thousandths of the repeated lookups that the fewest entries are stated for.
const PER_MILLE: [u64; 4] = [900, 990, 999, 1000];

/// CAM analysis of a capture.
#[derive(Clone, Debug)]
pub struct Report {
    /// End of the file.
    pub ending: Ending,
    /// Curve of destination IP addresses.
    pub ip: Curve,
    /// Curve of destination MAC addresses, which Axon's CAM looks up. Group addresses, which go to
    /// the control plane, are left out.
    pub mac: Curve,
}

/// Analyses a pcap or pcapng file.
///
/// # Errors
/// The file cannot be read, has neither format, or has no packet with a destination.
pub fn analyse(path: &Path) -> Result<Report> {
    let (mut ips, mut macs) = (Distances::<IpAddr>::default(), Distances::<[u8; 6]>::default());
    let ending = capture::read(path, |to| {
        to.ip.into_iter().for_each(|ip| ips.packet(ip));
        let one = to.mac.filter(|mac| mac[0] & 1 == 0);
        one.into_iter().for_each(|mac| macs.packet(mac));
    })?;
    let report = Report { ending, ip: ips.curve(), mac: macs.curve() };
    let found = report.ip.packets + report.mac.packets;
    let Ending { packets, axon_packets, .. } = report.ending;
    let name = path.display();
    ensure!(
        found > 0 || axon_packets == 0,
        "{name}: expected a capture at a host's port, found {axon_packets} Axon packets among \
         {packets} packets: those between switches are looked up nowhere"
    );
    if let (0, Some(error)) = (found, &report.ending.broken_off) {
        bail!("{name}: expected Ethernet or IP packets, found none: {error}");
    }
    ensure!(
        found > 0,
        "{name}: expected Ethernet or IP packets, found none among {packets} packets"
    );
    Ok(report)
}

/// Returns the sizes at which a curve is drawn, up to the first that holds all.
pub(crate) fn sizes(most: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = (1..10).collect();
    let mut decade = 1;
    while sizes.last().is_some_and(|&last| last < most) {
        sizes.extend(STEPS.map(|step| step * decade));
        decade *= 10;
    }
    let end = sizes.partition_point(|&size| size < most) + 1;
    sizes.truncate(end);
    sizes
}

impl Report {
    /// Returns the available curves by name.
    fn curves(&self) -> impl Iterator<Item = (&'static str, &Curve)> {
        [("IP", &self.ip), ("MAC", &self.mac)].into_iter().filter(|(_, curve)| curve.packets > 0)
    }

    /// Returns the report as text for a terminal.
    pub fn text(&self) -> String {
        let Ending { packets, axon_packets, unknown_links, broken_off } = &self.ending;
        let mut text = format!("{packets} packets\n");
        if *axon_packets > 0 {
            text.push_str(&format!(
                "{axon_packets} of them are Axon packets between switches, which are looked up \
                 nowhere: left out\n"
            ));
        }
        if *unknown_links > 0 {
            text.push_str(&format!("{unknown_links} of a link type that is not read\n"));
        }
        if let Some(reason) = broken_off {
            text.push_str(&format!("the file breaks off: {reason}\n"));
        }
        for (name, curve) in self.curves() {
            let Curve { packets, addresses, .. } = curve;
            text.push_str(&format!("\n{packets} to {addresses} {name} addresses\n"));
            text.push_str(&format!(
                "{:<36}{:>12}{:>12}\n",
                "entries that suffice for", "LRU", "packets"
            ));
            for per_mille in PER_MILLE {
                let of = |reading| Figure::from(curve.entries_for(reading, per_mille)).to_string();
                let (least, most) = (of(Reading::Entries), of(Reading::Packets));
                let share = format!("{:>6.1} % of repeated", per_mille as f64 / 10.0);
                text.push_str(&format!("{share:<36}{least:>12}{most:>12}\n"));
            }
            let of = |reading| 100.0 * curve.hit_rate(reading, PAPER_ENTRIES);
            let (least, most) = (of(Reading::Entries), of(Reading::Packets));
            let what = format!("hits of all with {PAPER_ENTRIES} entries, %");
            text.push_str(&format!("{what:<36}{least:>12.3}{most:>12.3}\n"));
        }
        text
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> ReportJson<'_> {
        let Ending { packets, axon_packets, unknown_links, broken_off } = &self.ending;
        let of = |curve: &Curve| (curve.packets > 0).then(|| CurveJson::of(curve));
        ReportJson {
            packets: *packets,
            axon_packets: *axon_packets,
            unknown_links: *unknown_links,
            broken_off: broken_off.as_deref(),
            ip: of(&self.ip),
            mac: of(&self.mac),
        }
    }

    /// Returns the curves as a table and as a plot.
    pub fn drawn(&self, title: &str) -> (Table, Plot) {
        let named: Vec<(&str, &Curve)> = self.curves().collect();
        drawn(title, &named)
    }
}

/// Output of `axon cam --json`.
#[derive(Debug, Serialize)]
pub struct ReportJson<'a> {
    /// Packets in the capture.
    packets: u64,
    /// Number of Axon packets between switches, which are not looked up and left out.
    axon_packets: u64,
    /// Number of packets of an unsupported link type, left out.
    unknown_links: u64,
    /// Place and reason of a truncation; null if the file is complete.
    broken_off: Option<&'a str>,
    /// Lookups of destination IP addresses; omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<CurveJson>,
    /// Lookups of destination MAC addresses, without group addresses; omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<CurveJson>,
}

/// Required entries for the lookups of one kind of address.
#[derive(Debug, Serialize)]
struct CurveJson {
    /// Number of lookups, one for each packet.
    packets: u64,
    /// Number of different addresses.
    addresses: u64,
    /// Fewest entries for shares of the repeated lookups.
    fewest: Vec<FewestJson>,
    /// Hit rate against entries.
    curve: Vec<PointJson>,
}

/// Fewest entries for a share of the repeated lookups.
#[derive(Debug, Serialize)]
struct FewestJson {
    /// Share of the lookups of an address that was looked up before: 0 to 1.
    share_of_repeated: f64,
    /// Sufficient entries if the least recently used one is replaced.
    entries_lru: Option<u64>,
    /// Sufficient entries if all packets in between were to different addresses.
    entries_packets: Option<u64>,
}

/// Point of the curve.
#[derive(Debug, Serialize)]
struct PointJson {
    /// Entries of the CAM.
    entries: u64,
    /// Hit rate of all lookups if the least recently used entry is replaced: 0 to 1.
    hit_rate_lru: f64,
    /// Hit rate of all lookups if all packets in between were to different addresses: 0 to 1.
    hit_rate_packets: f64,
}

impl CurveJson {
    fn of(curve: &Curve) -> CurveJson {
        let fewest = PER_MILLE.map(|per_mille| FewestJson {
            share_of_repeated: per_mille as f64 / 1000.0,
            entries_lru: curve.entries_for(Reading::Entries, per_mille),
            entries_packets: curve.entries_for(Reading::Packets, per_mille),
        });
        let point = |entries| PointJson {
            entries,
            hit_rate_lru: curve.hit_rate(Reading::Entries, entries),
            hit_rate_packets: curve.hit_rate(Reading::Packets, entries),
        };
        CurveJson {
            packets: curve.packets,
            addresses: curve.addresses,
            fewest: fewest.into(),
            curve: sizes(curve.distance_max(Reading::Packets)).into_iter().map(point).collect(),
        }
    }
}

/// Returns hit rates against entries for some curves, in both interpretations.
pub(crate) fn drawn(title: &str, curves: &[(&str, &Curve)]) -> (Table, Plot) {
    let columns = ["addresses", "entries", "hit rate, LRU", "hit rate, packets in between"];
    let mut table = Table::new("cam", &columns);
    let mut series = Vec::new();
    for (name, curve) in curves {
        let sizes = sizes(curve.distance_max(Reading::Packets));
        for &entries in &sizes {
            let of = |reading| curve.hit_rate(reading, entries).into();
            let (lru, packets) = (of(Reading::Entries), of(Reading::Packets));
            table.push(vec![(*name).into(), entries.into(), lru, packets]);
        }
        for (reading, what) in [(Reading::Packets, "packets"), (Reading::Entries, "LRU")] {
            let point = |&entries: &u64| (entries as f64, 100.0 * curve.hit_rate(reading, entries));
            let points = sizes.iter().map(point).collect();
            let theirs = reading == Reading::Packets;
            series.push(Series { name: format!("{name}, {what}"), theirs, points });
        }
    }
    let axes = (Axis::log("entries", ""), Axis::linear("hits", "% of all lookups"));
    (table, Plot::lines("cam", title, axes.0, axes.1, series))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// An Ethernet frame with tags, for `ip`.
    fn frame(mac: [u8; 6], tags: &[u16], ip: [u8; 4]) -> Vec<u8> {
        let mut frame = [mac, [2; 6]].concat();
        for tag in tags {
            frame.extend_from_slice(&tag.to_be_bytes());
            frame.extend_from_slice(&[0, 7]);
        }
        frame.extend_from_slice(&[0x08, 0x00, 0x45]);
        frame.extend_from_slice(&[0; 15]);
        frame.extend_from_slice(&ip);
        frame
    }

    fn four() -> Vec<Vec<u8>> {
        let (a, b) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        vec![
            frame(a, &[], [10, 0, 0, 1]),
            frame(b, &[0x8100], [10, 0, 0, 2]),
            frame(a, &[0x88a8, 0x8100], [10, 0, 0, 1]),
            frame([1, 0, 0x5e, 0, 0, 1], &[], [224, 0, 0, 1]),
        ]
    }

    /// A pcap file of some endianness and resolution (magic number).
    fn pcap(big: bool, magic: u32, packets: &[Vec<u8>]) -> Vec<u8> {
        let u32_ = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let u16_ = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut file = [u32_(magic).to_vec(), u16_(2).to_vec(), u16_(4).to_vec()].concat();
        [0, 0, 65_535, 1].iter().for_each(|&value| file.extend(u32_(value)));
        for packet in packets {
            let length = packet.len() as u32;
            [1, 2, length, length].iter().for_each(|&value| file.extend(u32_(value)));
            file.extend_from_slice(packet);
        }
        file
    }

    fn pcapng(packets: &[Vec<u8>]) -> Vec<u8> {
        let block = |kind: u32, body: &[u8]| {
            let length = (12 + body.len()) as u32;
            [&kind.to_le_bytes(), &length.to_le_bytes(), body, &length.to_le_bytes()].concat()
        };
        let words = |values: &[u32]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        let mut file = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
        // An interface with an unsupported link type, then Ethernet.
        file.extend(block(1, &words(&[148, 0])));
        file.extend(block(1, &words(&[1, 0])));
        for packet in packets {
            let length = packet.len() as u32;
            let mut body = words(&[1, 0, 0, length, length]);
            body.extend_from_slice(packet);
            body.resize(body.len().next_multiple_of(4), 0);
            file.extend(block(6, &body));
        }
        file.extend(block(6, &words(&[0, 0, 0, 0, 0])));
        file
    }

    fn file(name: &str, bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("axon-cam-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn analysed(name: &str, bytes: &[u8]) -> Result<Report> {
        let path = file(name, bytes);
        let report = analyse(&path);
        std::fs::remove_file(path).unwrap();
        report
    }

    #[test]
    fn captures_of_every_kind_say_the_same() {
        let kinds = [
            pcap(false, 0xa1b2_c3d4, &four()),
            pcap(true, 0xa1b2_c3d4, &four()),
            pcap(false, 0xa1b2_3c4d, &four()),
            pcapng(&four()),
        ];
        for (number, bytes) in kinds.iter().enumerate() {
            let report = analysed(&format!("kind{number}"), bytes).unwrap();
            assert_eq!((report.ip.packets, report.ip.addresses), (4, 3), "{number}");
            // The group address is no entry in a CAM.
            assert_eq!((report.mac.packets, report.mac.addresses), (3, 2), "{number}");
            assert_eq!(report.mac.hits(Reading::Entries, 2), 1, "{number}");
            assert_eq!(report.ending.unknown_links, u64::from(number == 3));
            assert_eq!(report.ending.broken_off, None, "{number}");
        }
    }

    #[test]
    fn a_capture_that_breaks_off_is_read_as_far_as_it_goes() {
        let mut bytes = pcap(false, 0xa1b2_c3d4, &four());
        bytes.truncate(bytes.len() - 5);
        let report = analysed("broken", &bytes).unwrap();
        assert_eq!(report.ip.packets, 3);
        assert!(report.ending.broken_off.is_some());
        assert!(report.text().contains("breaks off"), "{}", report.text());
        let mut bytes = pcapng(&four());
        bytes.truncate(bytes.len() - 40);
        assert!(analysed("broken-ng", &bytes).unwrap().ending.broken_off.is_some());
    }

    #[test]
    fn what_is_no_capture_is_refused_with_what_was_expected() {
        for (name, bytes) in [("text", &b"not a capture, surely not"[..]), ("short", b"ab")] {
            let error = format!("{:#}", analysed(name, bytes).unwrap_err());
            assert!(error.contains("expected a pcap or pcapng file"), "{error}");
        }
        let empty = format!("{:#}", analysed("empty", &pcap(false, 0xa1b2_c3d4, &[])).unwrap_err());
        assert!(empty.contains("found none among 0 packets"), "{empty}");
        let cut = &pcap(false, 0xa1b2_c3d4, &four())[..50];
        let error = format!("{:#}", analysed("cut", cut).unwrap_err());
        assert!(
            error.contains("found none: the file ends within the record at byte 24"),
            "{error}"
        );
    }

    #[test]
    fn axon_packets_and_frames_of_hosts_differ() {
        let axon = [&[2; 12][..], &[0x88, 0xb5], &[0; 50]].concat();
        let alone = pcap(false, 0xa1b2_c3d4, &[axon.clone(), axon.clone()]);
        let error = format!("{:#}", analysed("axon", &alone).unwrap_err());
        assert!(error.contains("a host's port, found 2 Axon packets among 2"), "{error}");
        // A switch captures all of its ports into one file.
        let mixed = analysed("mixed", &pcapng(&[four(), vec![axon]].concat())).unwrap();
        assert_eq!((mixed.ending.axon_packets, mixed.mac.packets), (1, 3));
        assert!(mixed.text().contains("1 of them are Axon packets"), "{}", mixed.text());
    }

    #[test]
    fn sizes_go_on_until_everything_fits() {
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(9).last(), Some(&9));
        assert_eq!(sizes(11).last(), Some(&13));
        let many = sizes(4000);
        assert_eq!(many.last(), Some(&4000));
        assert!(many.is_sorted_by(|a, b| a < b));
    }
}
