//! Configuration of Data Center Bridging in a switch; its state is in `dcb_state.rs`.

use crate::axon::layers::Layers;
use crate::congestion::notification::{CnConfig, EcnConfig, NotificationError};
pub use crate::ports::buffers::QueueOrder;
use crate::ports::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use crate::qos::schedule::{Algorithm, ScheduleConfig, ScheduleFault};
use crate::qos::targeted::{WatermarkFault, Watermarks};
use crate::qos::watchdog::WatchdogConfig;
use alloc::vec::Vec;
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, PrioritySet, TrafficClass};
use axon_wire::{Bytes, MacAddr, Rate};

/// Configuration of a switch with traffic classes and flow control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcbConfig {
    /// Memory limits, and the lossless priorities.
    pub memory: MemoryConfig,
    /// Traffic class of each priority (dcbnl: `prio_tc`), the same at every port until a port is
    /// set otherwise ([`Ports::set_classes`](crate::Ports::set_classes)).
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// Schedule of the classes, the same at every port until a port is set otherwise.
    pub schedule: ScheduleConfig,
    /// Layers: priorities that hosts see as one. Each needs its own class. They cannot be combined
    /// with watermarks or congestion notification.
    pub layers: Layers,
    /// Priorities with PFC: pauses received for others are ignored, and XOFF is sent for these
    /// only. The same at every port until one is set otherwise
    /// ([`Ports::set_pfc`](crate::Ports::set_pfc)).
    pub pfc: PrioritySet,
    /// True if peers are paused with PAUSE, which pauses all priorities (IEEE 802.3 annex 31B);
    /// only without PFC (IEEE 802.1Q clause 36.1.1).
    pub pause: bool,
    /// Duration of pauses that this switch requests, in quanta; repeated at half time.
    pub pfc_quanta: Quanta,
    /// Treatment of the reserved byte of received PFC frames.
    pub pfc_reserved: Reserved,
    /// Queue watermarks at which senders are paused, in addition to the memory's limits (paper 002
    /// chapter 7); without them the memory alone pauses senders.
    pub watermarks: Option<Watermarks>,
    /// Watchdog for peers that do not send XON for a queue; without it, nothing is done.
    pub watchdog: Option<WatchdogConfig>,
    /// Order of the frames in a queue.
    pub order: QueueOrder,
    /// Rate of each port, since quanta are bit times.
    pub rates: Vec<Rate>,
    /// Source address of PFC frames.
    pub mac: MacAddr,
    /// Congestion notification, if configured.
    pub cn: Option<CnConfig>,
    /// ECN marking by port and traffic class, where configured.
    pub ecn: Vec<[Option<EcnConfig>; PRIORITIES]>,
}

/// Errors in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DcbError {
    /// Invalid schedule of classes.
    #[error(transparent)]
    Schedule(#[from] ScheduleFault),
    /// Invalid congestion point or marker.
    #[error(transparent)]
    Notification(#[from] NotificationError),
    /// Invalid watermarks of queues.
    #[error(transparent)]
    Watermarks(#[from] WatermarkFault),
}

impl DcbConfig {
    /// Returns a configuration for ports of these rates: one strict class for each priority,
    /// nothing lossless, no flow control; 1 MiB for queued frames, of which a priority group or a
    /// queue may take as much as is free. The caller may change all of it.
    pub fn lossy(rates: Vec<Rate>, mac: MacAddr) -> DcbConfig {
        let share = Share::Dynamic { shift: 0 };
        let group = PriorityGroupLimits {
            reserved: Bytes(0),
            share,
            headroom: Bytes(0),
            xon_offset: Bytes(0),
        };
        DcbConfig {
            memory: MemoryConfig {
                lossless: PrioritySet::EMPTY,
                lossless_pool: Bytes(0),
                lossy_pool: Bytes(1 << 20),
                groups: alloc::vec![[group; PRIORITIES]; rates.len()],
                queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
            },
            prio_tc: TrafficClass::ALL,
            layers: Layers::NONE,
            schedule: ScheduleConfig::of([Algorithm::Strict; PRIORITIES]),
            pfc: PrioritySet::EMPTY,
            pause: false,
            pfc_quanta: Quanta::MAX,
            pfc_reserved: Reserved::default(),
            ecn: alloc::vec![[None; PRIORITIES]; rates.len()],
            watermarks: None,
            watchdog: None,
            order: QueueOrder::ByIngress,
            rates,
            mac,
            cn: None,
        }
    }
}
