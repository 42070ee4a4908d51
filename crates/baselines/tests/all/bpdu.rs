//! Our BPDUs as decoded by Wireshark's dissector.

use crate::tshark::dissect;
use axon_baselines::rstp::bpdu::SentRole;
use axon_baselines::rstp::{Bpdu, BridgeId, PortId, Times, Vector};
use axon_wire::MacAddr;

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
    let frames: Vec<Vec<u8>> =
        (0..=255).map(|flags| bpdu(flags).emit(MacAddr([2, 0x73, 0, 0, 0, 2]))).collect();
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
    let Some(lines) = dissect("bpdu", &frames, &fields) else { return };
    for (flags, line) in lines.iter().enumerate() {
        let expected = format!(
            "01:80:c2:00:00:00|2|0x02|0x{flags:02x}|32768|02:73:00:00:00:01|22000|36864|\
             02:73:00:00:00:02|0x8007|0|20|2|15||"
        );
        assert_eq!(*line, expected, "flags {flags:08b}");
    }
}
