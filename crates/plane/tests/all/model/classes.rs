//! Configurations with traffic classes and little memory, so that rare events occur soon.

use super::PORTS;
use axon_plane::dcb::{DcbConfig, QueueOrder};
use axon_plane::schedule::{Algorithm, ScheduleConfig};
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_plane::targeted::{Choice, Targeting, Watermarks};
use axon_plane::watchdog::{StormAction, WatchdogConfig};
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{PRIORITIES, PrioritySet};
use axon_wire::{Bytes, MacAddr, Rate, Span};

/// Options of a configuration besides its classes; any number is valid.
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    /// No watermarks of queues, or one of the ways to choose senders.
    pub watermarks: u8,
    /// No watchdog, one that drops, or one that forwards.
    pub watchdog: u8,
    /// PAUSE instead of PFC.
    pub pause: bool,
    /// One FIFO for each class.
    pub arrival: bool,
}

/// Eight classes, of which two are strict; priorities 3 and 4 are lossless, with PAUSE all.
pub fn config(kinds: Kinds) -> DcbConfig {
    let share = Share::Static(Bytes(1_500));
    let group = PriorityGroupLimits {
        reserved: Bytes(300),
        share,
        headroom: Bytes(600),
        xon_offset: Bytes(400),
    };
    let lossless = if kinds.pause { PrioritySet::ALL } else { PrioritySet::from_bits(0b11000) };
    let mut classes = [Algorithm::Ets { percent: 20 }; PRIORITIES];
    (classes[0], classes[6], classes[7]) =
        (Algorithm::Ets { percent: 0 }, Algorithm::Strict, Algorithm::Strict);
    let order = if kinds.arrival { QueueOrder::Arrival } else { QueueOrder::ByIngress };
    DcbConfig {
        memory: MemoryConfig {
            lossless,
            lossless_pool: Bytes(4_000),
            lossy_pool: Bytes(4_000),
            groups: vec![[group; PRIORITIES]; usize::from(PORTS)],
            queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
        },
        schedule: ScheduleConfig::of(classes),
        pfc: if kinds.pause { PrioritySet::EMPTY } else { lossless },
        pause: kinds.pause,
        pfc_quanta: Quanta(500),
        watermarks: watermarks(kinds.watermarks),
        watchdog: watchdog(kinds.watchdog),
        order,
        ..DcbConfig::lossy(vec![Rate::gbps(1); usize::from(PORTS)], MacAddr([2, 0, 0, 0, 0, 1]))
    }
}

fn watermarks(kind: u8) -> Option<Watermarks> {
    let choice = match kind % 5 {
        0 => return None,
        1 => Choice::Sampled { seed: 1, interval: Bytes(0) },
        2 => Choice::Sampled { seed: 1, interval: Bytes(600) },
        3 => Choice::FairBandwidth,
        _ => Choice::MaxMin,
    };
    Some(Watermarks {
        low: (kind < 128).then_some(Bytes(500)),
        targeting: Some(Targeting { target: Bytes(800), choice }),
        high: Bytes(1_500),
        bytes_max: Bytes(3_000),
    })
}

fn watchdog(kind: u8) -> Option<WatchdogConfig> {
    let action = match kind % 3 {
        0 => return None,
        1 => StormAction::Drop,
        _ => StormAction::Forward,
    };
    let (detection, restoration) = (Span::from_micros(200), Span::from_micros(100));
    let paused_percent = if kind < 128 { 100 } else { 90 };
    Some(WatchdogConfig { detection, paused_percent, action, restoration })
}
