//! Faults injected into our own switch, to check that the cases find them.
//!
//! The switch's code is unchanged. Some faults are a wrong configuration. The others modify the
//! frames that enter or leave the switch, so that from the outside it behaves like a switch with
//! that fault.

use crate::cases::dcbx_takes::OWN;
use crate::frames;
use crate::setup::Dcbx;
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::InputPriority;
use axon_plane::schedule::Algorithm;
use axon_wire::priority::PRIORITIES;
use axon_wire::{Bytes, FrameBuf, PortNo, Rate, Time};
use std::collections::{BTreeMap, BTreeSet};

/// EtherType that disguises forwarded MAC control frames inside the switch: local experimental
/// EtherType 2 of IEEE 802.
const DISGUISE: u16 = 0x88b6;
/// Offset of the opcode in a MAC control frame.
const OPCODE_AT: usize = 14;
/// Offsets of the enable vector and of the first time in a PFC frame.
const VECTOR_AT: usize = 16;
const TIMES_AT: usize = 18;

macro_rules! plants {
    ($($(#[$doc:meta])* $plant:ident = $name:literal, $found_by:literal;)*) => {
        /// Fault injected into the switch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Plant { $($(#[$doc])* $plant,)* }

        impl Plant {
            /// All faults.
            pub const ALL: &'static [Plant] = &[$(Plant::$plant,)*];

            /// Returns the command-line name of the fault.
            pub const fn name(self) -> &'static str {
                match self { $(Plant::$plant => $name,)* }
            }

            /// Returns the case that finds the fault.
            pub const fn found_by(self) -> &'static str {
                match self { $(Plant::$plant => $found_by,)* }
            }
        }
    };
}

plants! {
    /// Assumes links four times as fast, so that quanta last a quarter of their time.
    WrongQuanta = "wrong-quanta", "pfc/timer-length";
    /// Queues priorities 3 and 4 together, though they are configured for two queues.
    SharedQueue = "shared-queue", "pfc/each-priority-alone";
    /// Forwards LLDP.
    ForwardedLldp = "forwarded-lldp", "dcbx/lldp-not-forwarded";
    /// Forwards MAC control.
    ForwardedMacControl = "forwarded-mac-control", "pfc/not-forwarded";
    /// Has no headroom for frames that arrive after XOFF.
    NoHeadroom = "no-headroom", "pfc/no-loss-with-headroom";
    /// Never sends XON.
    NoXon = "no-xon", "pfc/xon-is-sent";
    /// Sends XOFF once, without a refresh before the pause expires.
    NoRefresh = "no-refresh", "pfc/xoff-is-refreshed";
    /// Adds a new time to the remaining one.
    TimerAdds = "timer-adds", "pfc/new-time-replaces";
    /// Honours a time whose bit is clear.
    ClearBitHonoured = "clear-bit-honoured", "pfc/clear-bit-with-time";
    /// Reads the reserved octet of the enable vector instead of the low one.
    HighOctetHonoured = "high-octet-honoured", "pfc/high-octet-ignored";
    /// Honours a MAC control frame that is too short.
    ShortFrameHonoured = "short-frame-honoured", "pause/short-frame-ignored";
    /// Honours a PAUSE that is addressed to another station.
    OtherAddressHonoured = "other-address-honoured", "pause/other-address-ignored";
    /// Sends PAUSE with an unassigned opcode.
    PauseWrongOpcode = "pause-wrong-opcode", "pause/sent-before-loss";
    /// Gives all classes equal shares, regardless of the configuration.
    EqualShares = "equal-shares", "ets/two-classes";
    /// Includes the strict class in the shares.
    StrictShares = "strict-shares", "ets/strict-goes-first";
    /// Sends all CNMs with the least feedback.
    ConstantFeedback = "constant-feedback", "qcn/feedback-grows-with-queue";
    /// Leaves frames from outside the congestion notification domain in its priorities.
    EdgeOpen = "edge-open", "qcn/defence-edge";
    /// Sends CN-TAGs to stations that do not take them.
    CnTagKept = "cn-tag-kept", "qcn/defence-interior";
    /// Advertises the peer's PFC as taken over, but honours only its own priorities.
    TakenInWords = "taken-in-words", "dcbx/taken-pfc-is-honoured";
    /// Parses a truncated LLDPDU up to the cut.
    CutLldpRead = "cut-lldp-read", "dcbx/lldp-cut-tlv-dropped";
    /// Takes the PFC of the wrong one of two willing ports.
    WrongTie = "wrong-tie", "dcbx/tie-lower-address-keeps";
    /// Is always willing, regardless of the configuration.
    AlwaysWilling = "always-willing", "dcbx/unwilling-keeps-pfc";
    /// Keeps configuration that a peer has withdrawn.
    ShutdownIgnored = "shutdown-ignored", "dcbx/time-to-live-zero-deletes";
}

impl Plant {
    /// Returns the fault with this name.
    pub fn named(name: &str) -> Option<Plant> {
        Plant::ALL.iter().copied().find(|plant| plant.name() == name)
    }

    /// Applies the fault to a DCB configuration, if it is a wrong configuration.
    pub(crate) fn configure(self, dcb: &mut DcbConfig) {
        match self {
            Plant::WrongQuanta => dcb.rates.iter_mut().for_each(|rate| *rate = four_times(*rate)),
            Plant::SharedQueue => dcb.prio_tc[4] = dcb.prio_tc[3],
            Plant::NoHeadroom => {
                dcb.memory.groups.iter_mut().flatten().for_each(|group| group.headroom = Bytes(0));
            }
            Plant::EqualShares => {
                let classes = dcb.schedule.classes.iter_mut();
                let percents = classes.filter_map(|class| match class {
                    Algorithm::Ets { percent } if *percent > 0 => Some(percent),
                    _ => None,
                });
                let mut percents: Vec<&mut u8> = percents.collect();
                let (count, mut left) = (percents.len() as u8, 100);
                for (index, percent) in percents.iter_mut().enumerate() {
                    **percent = left / (count - index as u8);
                    left -= **percent;
                }
            }
            Plant::EdgeOpen | Plant::CnTagKept => {
                let treatments = dcb.cn.iter_mut().flat_map(|cn| &mut cn.treatments).flatten();
                treatments.for_each(|treatment| match self {
                    Plant::EdgeOpen => treatment.input = InputPriority::Kept,
                    _ => treatment.strip_tag = false,
                });
            }
            Plant::StrictShares => dcb.prio_tc[7] = dcb.prio_tc[0],
            _ => {}
        }
    }
}

impl Plant {
    /// Applies the fault to a DCBX configuration, if it affects DCBX.
    pub(crate) fn take_part(self, dcbx: Dcbx) -> Dcbx {
        match self {
            Plant::WrongTie => Dcbx { higher_keeps: !dcbx.higher_keeps, ..dcbx },
            Plant::AlwaysWilling => Dcbx { ets_willing: true, pfc_willing: true, ..dcbx },
            _ => dcbx,
        }
    }
}

fn four_times(rate: Rate) -> Rate {
    Rate::from_bits_per_second(rate.bits_per_second() * 4).unwrap_or(rate)
}

/// Fault that is active, with its state.
#[derive(Debug)]
pub(super) struct Planted {
    plant: Plant,
    rate: Rate,
    /// Ends of the received pauses, by port and priority.
    ends: BTreeMap<(PortNo, usize), Time>,
    /// Paused priorities, by port.
    stopped: BTreeSet<(PortNo, usize)>,
}

impl Planted {
    pub(super) fn new(plant: Plant, rate: Rate) -> Planted {
        Planted { plant, rate, ends: BTreeMap::new(), stopped: BTreeSet::new() }
    }

    /// Modifies a frame that enters the switch.
    pub(super) fn comes(&mut self, now: Time, port: PortNo, mut frame: FrameBuf) -> FrameBuf {
        let kind = frames::word(frame.bytes(), 12);
        let is_pfc = frames::pfc_of(frame.bytes()).is_some();
        match self.plant {
            Plant::ForwardedLldp if kind == Some(frames::LLDP_TYPE) => readdress(&mut frame),
            // Disguises the frame with an unknown EtherType, so that the switch ignores it.
            Plant::ShutdownIgnored if is_shutdown(frame.bytes()) => put(&mut frame, 12, DISGUISE),
            Plant::ForwardedMacControl if kind == Some(frames::MAC_CONTROL_TYPE) => {
                readdress(&mut frame);
                put(&mut frame, 12, DISGUISE);
            }
            Plant::ShortFrameHonoured if kind == Some(frames::MAC_CONTROL_TYPE) => {
                let mut padded = frame.bytes().to_vec();
                padded.resize(padded.len().max(frames::SHORTEST), 0);
                return FrameBuf::new(&padded);
            }
            Plant::OtherAddressHonoured if kind == Some(frames::MAC_CONTROL_TYPE) => {
                frame.bytes_mut()[..6].copy_from_slice(&frames::MAC_CONTROL_GROUP);
            }
            Plant::TimerAdds if is_pfc => self.add(now, port, &mut frame),
            Plant::TakenInWords if is_pfc => {
                let vector = frames::word(frame.bytes(), VECTOR_AT).unwrap_or(0);
                put(&mut frame, VECTOR_AT, vector & u16::from(OWN));
            }
            Plant::CutLldpRead if kind == Some(frames::LLDP_TYPE) => {
                let whole = frames::tlvs_of(frame.bytes()).is_some();
                return if whole { frame } else { mended(&frame) };
            }
            Plant::ClearBitHonoured if is_pfc => {
                let timed = |priority: &usize| time(&frame, *priority) != 0;
                let bits = (0..PRIORITIES).filter(timed).fold(0, |bits, n| bits | 1 << n);
                let vector = frames::word(frame.bytes(), VECTOR_AT).unwrap_or(0);
                put(&mut frame, VECTOR_AT, vector | bits);
            }
            Plant::HighOctetHonoured if is_pfc => {
                let bytes = frame.bytes_mut();
                bytes[VECTOR_AT + 1] |= bytes[VECTOR_AT];
            }
            _ => {}
        }
        frame
    }

    /// Modifies a frame that leaves the switch.
    pub(super) fn goes(&mut self, port: PortNo, frame: &mut FrameBuf) {
        let kind = frames::word(frame.bytes(), 12);
        let to_tester = frame.bytes().first() == Some(&0x02);
        match (self.plant, kind) {
            (Plant::ForwardedLldp, Some(frames::LLDP_TYPE)) if to_tester => {
                frame.bytes_mut()[..6].copy_from_slice(&frames::NEAREST_BRIDGE);
            }
            (Plant::ForwardedMacControl, Some(DISGUISE)) => {
                frame.bytes_mut()[..6].copy_from_slice(&frames::MAC_CONTROL_GROUP);
                put(frame, 12, frames::MAC_CONTROL_TYPE);
            }
            (Plant::ConstantFeedback, Some(frames::TAG_TYPE)) if is_cnm(frame.bytes()) => {
                put(frame, 22, 1);
            }
            (Plant::PauseWrongOpcode, Some(frames::MAC_CONTROL_TYPE)) => {
                put(frame, OPCODE_AT, 0x0008)
            }
            (Plant::NoXon | Plant::NoRefresh, Some(frames::MAC_CONTROL_TYPE)) => {
                self.hush(port, frame);
            }
            _ => {}
        }
    }

    /// Extends each new time by the remainder of the last one.
    fn add(&mut self, now: Time, port: PortNo, frame: &mut FrameBuf) {
        let Some((vector, times)) = frames::pfc_of(frame.bytes()) else { return };
        for (priority, quanta) in times.into_iter().enumerate() {
            if vector & 1 << priority == 0 {
                continue;
            }
            let end = self.ends.get(&(port, priority)).copied().filter(|&end| end > now);
            let quantum = crate::station::quanta(1, self.rate);
            let left = end.map_or(0, |end| end.since(now).ticks() / quantum.ticks());
            let sum = if quanta == 0 { 0 } else { quanta.saturating_add(left as u16) };
            put(frame, TIMES_AT + 2 * priority, sum);
            self.ends.insert((port, priority), now + quantum * u64::from(sum));
        }
    }

    /// Removes from a PFC frame the priorities that the fault suppresses.
    fn hush(&mut self, port: PortNo, frame: &mut FrameBuf) {
        let Some((mut vector, times)) = frames::pfc_of(frame.bytes()) else { return };
        for (priority, quanta) in times.into_iter().enumerate() {
            let named = vector & 1 << priority != 0;
            let unsaid = match self.plant {
                Plant::NoXon => quanta == 0,
                _ if named && quanta == 0 => {
                    self.stopped.remove(&(port, priority));
                    false
                }
                _ => named && !self.stopped.insert((port, priority)),
            };
            if unsaid {
                vector &= !(1 << priority);
            }
        }
        put(frame, VECTOR_AT, vector.into());
    }
}

/// Returns an LLDP frame that was cut within a TLV, without that TLV.
fn mended(frame: &FrameBuf) -> FrameBuf {
    let bytes = frame.bytes();
    let mut end = 14;
    while let Some(head) = frames::word(bytes, end).filter(|head| *head != 0) {
        let next = end + 2 + usize::from(head & 0x1ff);
        if next > bytes.len() {
            break;
        }
        end = next;
    }
    let mut whole = bytes[..end].to_vec();
    whole.resize(whole.len().max(frames::SHORTEST - 2) + 2, 0);
    FrameBuf::new(&whole)
}

/// Returns whether a frame is an LLDP shutdown.
fn is_shutdown(frame: &[u8]) -> bool {
    frames::tlvs_of(frame).is_some_and(|tlvs| tlvs.contains(&(3, &[0, 0])))
}

/// Returns whether a frame is a CNM behind a VLAN tag and a CN-TAG.
fn is_cnm(frame: &[u8]) -> bool {
    frames::word(frame, 20) == Some(frames::CNM_TYPE)
}

fn time(frame: &FrameBuf, priority: usize) -> u16 {
    frames::word(frame.bytes(), TIMES_AT + 2 * priority).unwrap_or(0)
}

fn put(frame: &mut FrameBuf, at: usize, value: u16) {
    frame.bytes_mut()[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Readdresses a frame between the tester's ports. Frames from port 0 go to port 1, and all others
/// go to port 0.
fn readdress(frame: &mut FrameBuf) {
    let bytes = frame.bytes_mut();
    let to = usize::from(bytes[6..12] == frames::mac(0).0);
    bytes[..6].copy_from_slice(&frames::mac(to).0);
}
