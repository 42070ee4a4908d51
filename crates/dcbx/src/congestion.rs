//! The congestion notification TLV that neighbours advertise in LLDP (IEEE 802.1Q annex D.2.7).
//!
//! It is independent of DCBX, and is read for any form of DCBX.
//! [`Defences`](axon_plane::qcn::Defences) determines its effect.

use super::DcbxNote;
use crate::lldp::Neighbour;
use alloc::vec::Vec;
use axon_wire::dcbx::OUI_IEEE;
use axon_wire::dcbx::ieee::{CongestionNotification, SUBTYPE_CONGESTION as SUBTYPE};

/// Returns the priorities that each neighbour advertises, in the order of the neighbours. A
/// neighbour has none if it sends no such TLV, more than one, or one that cannot be parsed.
pub fn advertised(
    neighbours: &[Neighbour],
    notes: &mut Vec<DcbxNote>,
) -> Vec<CongestionNotification> {
    let one = |neighbour: &Neighbour| {
        let mut tlvs = neighbour.optional.iter().filter_map(|tlv| match tlv.organisation() {
            Some((OUI_IEEE, SUBTYPE, info)) => Some(CongestionNotification::parse(info)),
            _ => None,
        });
        let note = match (tlvs.next(), tlvs.next()) {
            (None, _) => return CongestionNotification::default(),
            (Some(Ok(read)), None) => return read,
            (Some(Err(error)), None) => DcbxNote::Unreadable { subtype: SUBTYPE, error },
            (Some(_), Some(_)) => DcbxNote::Repeated { subtype: SUBTYPE },
        };
        notes.push(note);
        CongestionNotification::default()
    };
    neighbours.iter().map(one).collect()
}
