//! Forwarding database of a bridge: learned addresses and their ages.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{Change, Control, EntryName, MacKey, Register, Target};
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Ageing time (IEEE 802.1D-2004 table 7-5).
const AGEING: Span = Span::from_secs(300);
/// Interval between sweeps over all counters.
const SWEEP: Span = Span::from_secs(10);

/// A learned address and its last use.
#[derive(Clone, Copy, Debug)]
struct Known {
    port: PortNo,
    /// Time at which its entry was last found to be in use.
    used: Time,
    /// Number of frames that had matched its entry at that time.
    frames: u64,
}

/// Forwarding database of one switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Fdb {
    known: BTreeMap<MacAddr, Known>,
    sweep: Option<Time>,
    has_swept: bool,
}

impl Fdb {
    pub(super) fn start(&mut self, now: Time) {
        self.sweep = Some(now + SWEEP);
    }

    /// Learns an address at a port and returns whether it is new. If the table is full, the address
    /// gets no entry, and frames to it are flooded.
    pub(super) fn learn(
        &mut self,
        now: Time,
        mac: MacAddr,
        port: PortNo,
        target: Target,
        control: &mut dyn Control,
    ) -> bool {
        if self.known.get(&mac).is_some_and(|known| known.port == port) {
            return false;
        }
        let entered = control.commit(&[Change::Mac(key(mac), Some(target.into()))]).is_ok();
        if entered {
            self.known.insert(mac, Known { port, used: now, frames: 0 });
        }
        entered
    }

    /// Removes all addresses of a port.
    pub(super) fn flush(&mut self, port: PortNo, control: &mut dyn Control) {
        self.remove(|known| known.port == port, control);
    }

    /// Removes addresses whose entries were removed by an operator.
    pub(super) fn forget(&mut self, removed: &[EntryName]) {
        for name in removed {
            if let EntryName::Mac(MacKey { bridge: 0, mac }) = name {
                self.known.remove(mac);
            }
        }
    }

    /// Sweeps over the counters when a sweep is due.
    pub(super) fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        if self.sweep.is_none_or(|at| at > now) {
            return;
        }
        self.sweep = Some(now + SWEEP);
        self.has_swept = true;
        for (&mac, known) in &mut self.known {
            let counter = Register::EntryFrames(EntryName::Mac(key(mac)));
            let frames = control.read_register(counter).unwrap_or(known.frames);
            if core::mem::replace(&mut known.frames, frames) != frames {
                known.used = now;
            }
        }
        self.remove(|known| now.since(known.used) > AGEING, control);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.sweep
    }

    /// Returns whether the first sweep is complete. By then hosts should be connected.
    pub(super) fn has_swept(&self) -> bool {
        self.has_swept
    }

    /// Removes matching addresses and their table entries. Removals are never refused.
    fn remove(&mut self, is_to_go: impl Fn(&Known) -> bool, control: &mut dyn Control) {
        let gone = self.known.iter().filter(|(_, known)| is_to_go(known));
        let changes: Vec<Change> = gone.map(|(&mac, _)| Change::Mac(key(mac), None)).collect();
        if !changes.is_empty() && control.commit(&changes).is_ok() {
            self.known.retain(|_, known| !is_to_go(known));
        }
    }
}

fn key(mac: MacAddr) -> MacKey {
    MacKey { bridge: 0, mac }
}
