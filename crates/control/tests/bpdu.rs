//! Our BPDUs as Wireshark's dissector reads them. Skipped, aloud, where `tshark` is missing.

use axon_control::rstp::bpdu::SentRole;
use axon_control::rstp::{Bpdu, BridgeId, PortId, Times, Vector};
use axon_wire::MacAddr;
use std::process::Command;

/// A capture file (libpcap's classic format, little-endian, link type Ethernet).
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1_u32] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(frame);
    }
    file
}

fn bpdu(flags: u8) -> Bpdu {
    let set = |bit: u8| flags & 1 << bit != 0;
    let mac = |last| MacAddr([2, 0x73, 0, 0, 0, last]);
    Bpdu {
        vector: Vector {
            root: BridgeId { priority: 0x8000, mac: mac(1) },
            cost: 22_000,
            bridge: BridgeId { priority: 0x9000, mac: mac(2) },
            port: PortId::from_index(6),
        },
        times: Times::default(),
        role: [
            SentRole::Unknown,
            SentRole::AlternateOrBackup,
            SentRole::Root,
            SentRole::Designated,
        ][usize::from(flags >> 2 & 3)],
        topology_change: set(0),
        proposal: set(1),
        learning: set(4),
        forwarding: set(5),
        agreement: set(6),
        acknowledgment: set(7),
    }
}

#[test]
fn wireshark_reads_every_flag_as_it_was_meant_and_finds_no_fault() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: no tshark here");
        return;
    }
    let frames: Vec<Vec<u8>> =
        (0..=255).map(|flags| bpdu(flags).emit(MacAddr([2, 0x73, 0, 0, 0, 2]))).collect();
    let file = std::env::temp_dir().join(format!("axon-bpdu-{}.pcap", std::process::id()));
    std::fs::write(&file, pcap(&frames)).unwrap();
    let fields = [
        "eth.dst",
        "stp.version",
        "stp.type",
        "stp.flags",
        "stp.root.prio",
        "stp.root.hw",
        "stp.root.cost",
        "stp.bridge.prio",
        "stp.bridge.hw",
        "stp.port",
        "stp.msg_age",
        "stp.max_age",
        "stp.hello",
        "stp.forward",
        "_ws.expert",
        "_ws.malformed",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-T", "fields", "-E", "separator=,"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 256);
    for (flags, line) in lines.iter().enumerate() {
        let expected = format!(
            "01:80:c2:00:00:00,2,0x02,0x{flags:02x},32768,02:73:00:00:00:01,22000,36864,\
             02:73:00:00:00:02,0x8007,0,20,2,15,,"
        );
        assert_eq!(*line, expected, "flags {flags:08b}");
    }
}
