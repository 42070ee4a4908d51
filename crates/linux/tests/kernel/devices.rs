//! Devices.
pub fn node() {}
pub fn xdp() {}
