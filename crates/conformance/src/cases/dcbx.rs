//! LLDP, IEEE 802.1AB, and DCBX, IEEE 802.1Q annex D: formats and general rules.
//!
//! The cases for configuration that is taken over from the peer are in `dcbx_takes.rs`.

use super::dcbx_takes::OWN;
use super::lldp::{IEEE, announce, last_said, latest, receive};
use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::rig::Halt;
use crate::setup::{Dcbx, Form, Setup};
use axon_wire::Span;
use axon_wire::priority::{PRIORITIES, PrioritySet};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "dcbx/lldp-not-forwarded",
        clause: "802.1Q 8.6.3, table 8-1; 002 3.2.4",
        says: "LLDP to the nearest bridge ends in the device that receives it.",
        run: not_forwarded,
    },
    Case {
        name: "dcbx/lldp-format",
        clause: "802.1AB 8.2, 8.5",
        says: "An LLDPDU begins with chassis, port and time to live, once each, and is untagged.",
        run: lldp_format,
    },
    Case {
        name: "dcbx/ets-configuration-format",
        clause: "802.1Q D.2.8",
        says: "The ETS configuration TLV is 25 octets and advertises what is in force.",
        run: ets_format,
    },
    Case {
        name: "dcbx/pfc-format",
        clause: "802.1Q D.2.10",
        says: "The PFC configuration TLV is 6 octets and advertises what is in force.",
        run: pfc_format,
    },
    Case {
        name: "dcbx/application-format",
        clause: "802.1Q D.2.11",
        says: "Entries of the application priority TLV are 3 octets with a known selector.",
        run: application_format,
    },
    Case {
        name: "dcbx/congestion-notification-format",
        clause: "802.1Q D.2.7",
        says: "The congestion notification TLV is 6 octets, advertises which priorities have it, \
                and marks no other as ready.",
        run: cn_format,
    },
    Case {
        name: "dcbx/no-tlv-twice",
        clause: "802.1Q D.2; 802.1AB 8.2",
        says: "No kind of DCBX TLV comes more than once in an LLDPDU.",
        run: no_tlv_twice,
    },
];

/// Sets up a device with DCBX that is not willing and has other shares and PFC than its peer.
fn speaking(bench: &mut Bench<'_>) -> Result<Setup, Halt> {
    let own = Setup {
        pfc: PrioritySet::from_bits(OWN),
        dcbx: Some(Dcbx::default()),
        ..Setup::with_shares(&[20, 30, 50])
    };
    let setup = bench.given().cloned().unwrap_or(own);
    if setup.dcbx.is_none() {
        return Err(Halt::NotApplicable("the device does not speak DCBX (--dcbx)".into()));
    }
    bench.set_up(&setup)?;
    Ok(setup)
}

/// Like [`speaking`], with IEEE TLVs.
fn speaking_by_standard(bench: &mut Bench<'_>) -> Result<Setup, Halt> {
    let setup = speaking(bench)?;
    by_standard(&setup)?;
    Ok(setup)
}

/// Ends the case as not applicable unless the device uses the IEEE form, because the older form has
/// different formats.
fn by_standard(setup: &Setup) -> Result<(), Halt> {
    match setup.dcbx {
        Some(Dcbx { form: Form::Ieee, .. }) => Ok(()),
        _ => Err(Halt::NotApplicable("the device does not speak the standard's DCBX".into())),
    }
}

fn not_forwarded(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(2, "a port to be forwarded to")?;
    let setup = bench.given().cloned().unwrap_or_default();
    bench.set_up(&setup)?;
    let from = bench.now();
    for others in [vec![], vec![frames::tlv_of(IEEE, 11, &[0x88, 0x08])]] {
        announce(bench, 120, &others)?;
        bench.pass(Span::from_millis(100) + bench.slack())?;
    }
    bench.did("LLDP frames, without and with DCBX");
    for port in 0..bench.ports() {
        let own = |frame: &[u8]| {
            let lldp = frames::word(frame, 12) == Some(frames::LLDP_TYPE);
            lldp && frame[6..12] == frames::mac(0).0
        };
        let out = bench.log().heard(port, from).any(|seen| own(&seen.frame));
        bench.expect(!out, || format!("the tester's LLDP came out at port {port}"))?;
    }
    announce(bench, 0, &[])
}

fn lldp_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    speaking(bench)?;
    let frame = receive(bench)?;
    let tlvs = frames::tlvs_of(&frame).unwrap_or_default();
    bench.saw(format!("{} TLVs in {} octets", tlvs.len(), frame.len()));
    let kinds: Vec<u8> = tlvs.iter().map(|&(kind, _)| kind).collect();
    let checks = [
        (frame[..6] == frames::NEAREST_BRIDGE, "it does not go to the nearest bridge"),
        (frame[6] & 1 == 0, "its source is a group"),
        (kinds.starts_with(&[1, 2, 3]), "it does not begin with chassis, port, time to live"),
        (kinds[kinds.len().min(3)..].iter().all(|kind| *kind > 3), "one of the first comes again"),
        (tlvs.iter().take(2).all(|(_, value)| value.len() >= 2), "an identity is empty"),
        (tlvs.get(2).is_some_and(|(_, value)| value.len() == 2), "the time to live is no 2 octets"),
        (frame.len() <= 1_514, "it is longer than a frame may be"),
    ];
    let wrong = checks.into_iter().find(|(good, _)| !good);
    bench.expect(wrong.is_none(), || wrong.map_or(String::new(), |(_, what)| what.into()))
}

fn ets_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = speaking_by_standard(bench)?;
    let said = last_said(bench, 9)?;
    bench.saw(format!("ETS configuration {said:02x?}"));
    bench
        .expect(said.len() == 21, || format!("{} octets after the subtype, not 21", said.len()))?;
    bench.expect(said[0] & 0b0011_1000 == 0, || "reserved bits are set".into())?;
    let class = |n: usize| said[1 + n / 2] >> (4 - 4 * (n % 2)) & 0xf;
    for priority in 0..PRIORITIES {
        let wanted = setup.prio_tc[priority].value();
        bench.expect(class(priority) == wanted, || {
            format!("priority {priority} is in class {}, not {wanted}", class(priority))
        })?;
    }
    for (index, share) in setup.shares.into_iter().enumerate() {
        let (percent, algorithm) = (said[5 + index], said[13 + index]);
        let wanted = share.map_or((0, 0), |percent| (percent, 2));
        bench.expect((percent, algorithm) == wanted, || {
            format!("class {index} says {percent} % by algorithm {algorithm}, not {wanted:?}")
        })?;
    }
    let willing = setup.dcbx.is_some_and(|dcbx| dcbx.ets_willing);
    bench.expect((said[0] & 0x80 != 0) == willing, || "the willing bit is wrong".into())
}

fn pfc_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = speaking_by_standard(bench)?;
    let said = last_said(bench, 11)?;
    bench.saw(format!("PFC configuration {said:02x?}"));
    bench.expect(said.len() == 2, || format!("{} octets after the subtype, not 2", said.len()))?;
    bench.expect(said[0] & 0b0011_0000 == 0, || "reserved bits are set".into())?;
    bench.expect(said[1] == setup.pfc.bits(), || {
        format!("PFC for {:#010b}, and it is on for {:#010b}", said[1], setup.pfc.bits())
    })?;
    let willing = setup.dcbx.is_some_and(|dcbx| dcbx.pfc_willing);
    bench.expect((said[0] & 0x80 != 0) == willing, || "the willing bit is wrong".into())
}

fn application_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    speaking_by_standard(bench)?;
    let frame = receive(bench)?;
    let Some(said) = frames::said_by(&frame, IEEE, 12).first().map(|said| said.to_vec()) else {
        return Err(Halt::NotApplicable("the device says no application priorities".into()));
    };
    bench.saw(format!("application priorities {said:02x?}"));
    let (reserved, entries) = said.split_first().map_or((0, &[][..]), |(r, e)| (*r, e));
    let good = reserved == 0 && entries.len() % 3 == 0;
    bench.expect(good, || "its length is not one octet and threes".into())?;
    for entry in entries.chunks(3) {
        let (selector, reserved) = (entry[0] & 7, entry[0] & 0b0001_1000);
        let known = (1..=5).contains(&selector) && reserved == 0;
        bench.expect(known, || format!("entry {entry:02x?} has no known selector"))?;
    }
    Ok(())
}

fn cn_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let own = Setup {
        congestion: PrioritySet::from_bits(0b0001_1000),
        dcbx: Some(Dcbx::default()),
        ..Setup::default()
    };
    let setup = bench.given().cloned().unwrap_or(own);
    if setup.dcbx.is_none() || setup.congestion.is_empty() {
        let why = "a device that speaks DCBX and has congestion notification (--dcbx, --cn)";
        return Err(Halt::NotApplicable(why.into()));
    }
    by_standard(&setup)?;
    bench.set_up(&setup)?;
    let said = last_said(bench, 8)?;
    bench.saw(format!("congestion notification {said:02x?}"));
    bench.expect(said.len() == 2, || format!("{} octets after the subtype, not 2", said.len()))?;
    let wanted = setup.congestion.bits();
    bench.expect(said[0] == wanted, || {
        format!("congestion notification for {:#010b}, and it is on for {wanted:#010b}", said[0])
    })?;
    bench.expect(said[1] & !said[0] == 0, || "a priority without it is said to be ready".into())
}

fn no_tlv_twice(bench: &mut Bench<'_>) -> Result<(), Halt> {
    speaking(bench)?;
    // A new neighbour and a change each trigger a few transmissions.
    announce(bench, 120, &[frames::tlv_of(IEEE, 11, &[0x08, 0x08])])?;
    bench.pass(Span::from_secs(3))?;
    for frame in latest(bench) {
        for subtype in [8, 9, 10, 11, 12] {
            let count = frames::said_by(&frame, IEEE, subtype).len();
            bench.expect(count <= 1, || format!("subtype {subtype} comes {count} times"))?;
        }
    }
    announce(bench, 0, &[])
}
