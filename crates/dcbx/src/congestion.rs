//! What neighbours say of congestion notification in LLDP (IEEE 802.1Q annex D.2.7).
//!
//! It has nothing to do with DCBX but the place where it is said: whichever form of that is
//! spoken, and whether or not it is. What follows is for [`Defences`](axon_plane::qcn::Defences)
//! to say.

use super::DcbxNote;
use crate::lldp::Neighbour;
use alloc::vec::Vec;
use axon_wire::dcbx::OUI_IEEE;
use axon_wire::dcbx::ieee::{CongestionNotification, SUBTYPE_CONGESTION as SUBTYPE};

/// By neighbour, what it says: no priority, if it sends no such TLV, or two of them, or one that
/// cannot be read.
pub fn advertised(
    neighbours: &[Neighbour],
    notes: &mut Vec<DcbxNote>,
) -> Vec<CongestionNotification> {
    let one = |neighbour: &Neighbour| {
        let mut told = neighbour.optional.iter().filter_map(|tlv| match tlv.organisation() {
            Some((OUI_IEEE, SUBTYPE, info)) => Some(CongestionNotification::parse(info)),
            _ => None,
        });
        let note = match (told.next(), told.next()) {
            (None, _) => return CongestionNotification::default(),
            (Some(Ok(said)), None) => return said,
            (Some(Err(error)), None) => DcbxNote::Unreadable { subtype: SUBTYPE, error },
            (Some(_), Some(_)) => DcbxNote::Repeated { subtype: SUBTYPE },
        };
        notes.push(note);
        CongestionNotification::default()
    };
    neighbours.iter().map(one).collect()
}
