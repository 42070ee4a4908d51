//! Any bytes as each format of Data Center Bridging: no panic, memory in proportion to the input,
//! and what is read is written back so that it reads the same.

use axon_wire::cn::{CnTag, CnmFormat, CnmFrame, ETHERTYPE_CNM, Tagged};
use axon_wire::dcbx::cee::Cee;
use axon_wire::dcbx::ieee::{
    self, CongestionNotification, EtsConfiguration, EtsRecommendation, PfcConfiguration,
};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::lldp::{LLDPDU_BYTES_MAX, LldpFrame, Lldpdu, NEAREST_BRIDGE, Tlv};
use axon_wire::mac_control::MacControl;
use axon_wire::vlan::{self, TAG_BYTES, VlanTag};
use axon_wire::{HeaderView, HopWidth, MacAddr, Priority, header};

const PORT: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

/// Runs one input.
pub fn run(bytes: &[u8]) {
    mac_control(bytes);
    tags(bytes);
    lldp(bytes);
    tlv(bytes);
    priority(bytes);
}

fn mac_control(bytes: &[u8]) {
    let mut frame = MacControl::Pause(Default::default()).emit(PORT);
    let length = bytes.len().min(frame.len() - ETHERNET_BYTES);
    frame[ETHERNET_BYTES..ETHERNET_BYTES + length].copy_from_slice(&bytes[..length]);
    for frame in [bytes, &frame] {
        if let Ok(control) = MacControl::parse(frame, PORT) {
            assert_eq!(MacControl::parse(&control.emit(PORT), PORT), Ok(control));
        }
    }
}

fn tags(bytes: &[u8]) {
    if let Some(tag) = VlanTag::parse(bytes) {
        assert_eq!(tag.emit(), bytes[..TAG_BYTES]);
    }
    if let Some(tag) = CnTag::parse(bytes) {
        assert_eq!(tag.emit(), bytes[..TAG_BYTES]);
    }
    if let Some((_, at)) = vlan::ethertype_of(bytes) {
        assert!(at + 2 <= bytes.len());
    }
    for strict in [false, true] {
        let format = CnmFormat { strict, ..CnmFormat::default() };
        let headed = [&[2; 12], &ETHERTYPE_CNM.to_be_bytes()[..], bytes].concat();
        for frame in [bytes, &headed] {
            if let Ok(cnm) = CnmFrame::parse(frame, &format) {
                let written = CnmFrame::parse(&cnm.emit(&format), &format);
                // Of two VLAN tags the outer one is kept.
                assert_eq!(written, Ok(cnm));
            }
        }
        if let Some(tagged) = Tagged::parse(bytes) {
            let answer =
                CnmFrame::answer(&tagged, PORT, Priority::MAX, Default::default(), 64, &format);
            assert!(answer.emit(&format).len() <= 112);
        }
    }
}

fn lldp(bytes: &[u8]) {
    let _ = Lldpdu::parse_frame(bytes);
    // The three that come first, then whatever there is.
    let headed = [&[2, 2, 7, 1, 4, 2, 7, 1, 6, 2, 0, 120][..], bytes].concat();
    for bytes in [bytes, &headed] {
        let Ok(lldpdu) = Lldpdu::parse(bytes) else { continue };
        lldpdu.optional.iter().for_each(dcbx);
        if bytes.len() + 2 > LLDPDU_BYTES_MAX {
            continue;
        }
        let frame = LldpFrame { destination: NEAREST_BRIDGE, source: PORT, lldpdu };
        let written = frame.emit().expect("what was read is no longer when it is written");
        assert_eq!(Lldpdu::parse_frame(&written), Ok(frame));
    }
}

/// The bytes as what an organisation's TLV holds.
fn tlv(bytes: &[u8]) {
    let Some((&subtype, info)) = bytes.split_first() else { return };
    let info = &info[..info.len().min(507)];
    for oui in [axon_wire::dcbx::OUI_IEEE, axon_wire::dcbx::OUI_BEFORE] {
        dcbx(&Tlv::of_organisation(oui, subtype % 16, info));
    }
}

fn dcbx(tlv: &Tlv) {
    let Some((_, _, info)) = tlv.organisation() else { return };
    let again = |tlv: &Tlv| tlv.organisation().expect("an organisation's").2.to_vec();
    if let Ok(ets) = EtsConfiguration::parse(info) {
        assert_eq!(EtsConfiguration::parse(&again(&ets.emit())), Ok(ets));
        let _ = ets.ets.check(ets.classes_max, ets.credit_based);
    }
    if let Ok(ets) = EtsRecommendation::parse(info) {
        assert_eq!(EtsRecommendation::parse(&again(&ets.emit())), Ok(ets));
    }
    if let Ok(pfc) = PfcConfiguration::parse(info) {
        assert_eq!(PfcConfiguration::parse(&again(&pfc.emit())), Ok(pfc));
    }
    if let Ok(list) = ieee::parse_applications(info) {
        assert_eq!(ieee::parse_applications(&again(&ieee::emit_applications(&list))), Ok(list));
    }
    if let Ok(cn) = CongestionNotification::parse(info) {
        assert_eq!(CongestionNotification::parse(&again(&cn.emit())), Ok(cn));
    }
    if let Ok(cee) = Cee::parse(info) {
        let tlv = cee.emit().expect("what was read is no longer when it is written");
        assert_eq!(Cee::parse(&again(&tlv)), Ok(cee));
    }
}

/// The header's priority can be set and changes nothing else.
fn priority(bytes: &[u8]) {
    for width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
        let Ok(view) = HeaderView::parse(bytes, width) else { continue };
        let mut other = bytes.to_vec();
        header::set_priority(&mut other, width, Priority::MAX);
        let read = HeaderView::parse(&other, width).expect("a header stays a header");
        assert_eq!(read.priority() == Priority::MAX, width != HopWidth::Four);
        assert_eq!((read.forward(), read.reverse()), (view.forward(), view.reverse()));
        header::set_priority(&mut other, width, view.priority());
        assert_eq!(other, bytes);
    }
}
