//! MTU of a port's device, with an alarm if it is too small.

use crate::sys;

/// MTU of a device.
#[derive(Default)]
pub(super) struct Mtu {
    /// MTU when it was last read, in bytes. `None` before there was a device.
    bytes: Option<usize>,
    /// Actual and required MTU in the last alarm, in bytes.
    alarmed: Option<(usize, usize)>,
}

impl Mtu {
    /// Returns the MTU when it was last read, in bytes, or `None` before there was a device.
    pub(super) const fn bytes(&self) -> Option<usize> {
        self.bytes
    }

    /// Reads the MTU of `device` and [checks](Mtu::check) it.
    pub(super) fn read(&mut self, device: &str, needed: Option<usize>) {
        self.bytes = sys::device_mtu(device).ok();
        self.check(device, needed);
    }

    /// Returns whether the MTU of `device` has changed. If so, [checks](Mtu::check) it.
    pub(super) fn follow(&mut self, device: &str, needed: Option<usize>) -> bool {
        let bytes = sys::device_mtu(device).ok();
        let has_changed = bytes.is_some() && bytes != self.bytes;
        if has_changed {
            self.bytes = bytes;
            self.check(device, needed);
        }
        has_changed
    }

    /// Raises an alarm, once, if the MTU is less than the longest frame needs.
    pub(super) fn check(&mut self, port: &str, needed: Option<usize>) {
        let pair = self.bytes.zip(needed);
        if let Some((mtu, needed)) = pair.filter(|(mtu, needed)| mtu < needed)
            && self.alarmed != pair
        {
            self.alarmed = pair;
            tracing::error!(port, mtu, needed, "ALARM: MTU too small: longer frames are lost");
        }
    }
}
