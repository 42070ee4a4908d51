//! Reserved and well-known addresses.

pub use super::link_local::{LINK_LOCAL_COUNT, LINK_LOCAL_PREFIX};
use crate::addr::MacAddr;

/// Nearest customer bridge, 01-80-C2-00-00-00: BPDUs, and LLDP that passes provider bridges.
pub const NEAREST_CUSTOMER: MacAddr = link_local(0x00);
/// MAC control, 01-80-C2-00-00-01 (IEEE 802.3 annex 31B): PAUSE and PFC.
pub const MAC_CONTROL: MacAddr = link_local(0x01);
/// Slow protocols, 01-80-C2-00-00-02 (IEEE 802.3 annex 57A): LACP.
pub const SLOW_PROTOCOLS: MacAddr = link_local(0x02);
/// Nearest non-TPMR bridge, 01-80-C2-00-00-03.
pub const NEAREST_NON_TPMR: MacAddr = link_local(0x03);
/// Nearest bridge, 01-80-C2-00-00-0E: LLDP (IEEE 802.1AB table 7-1) and Axon's link frames.
pub const NEAREST_BRIDGE: MacAddr = link_local(0x0e);
/// First byte of both addresses of an ether probe, which marks a locally administered address of a
/// single station (IEEE 802 clause 8.2.2).
pub const ETHER_PROBE_FIRST_BYTE: u8 = 0x0a;

const fn link_local(last: u8) -> MacAddr {
    let [a, b, c, d, e] = LINK_LOCAL_PREFIX;
    MacAddr([a, b, c, d, e, last])
}
