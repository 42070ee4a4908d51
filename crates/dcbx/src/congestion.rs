//! The congestion notification TLV of LLDP as neighbours advertise it (IEEE 802.1Q annex D.2.7).
//!
//! It is independent of DCBX and read whichever form of DCBX is in use.
//! [`Defences`](axon_plane::qcn::Defences) decides what follows from it.

use super::DcbxNote;
use crate::lldp::Neighbour;
use alloc::vec::Vec;
use axon_wire::dcbx::OUI_IEEE;
use axon_wire::dcbx::ieee::{CongestionNotification, SUBTYPE_CONGESTION as SUBTYPE};

/// Returns the priorities that each neighbour advertises, in order: none if it sends no such TLV,
/// more than one, or one that cannot be parsed.
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
