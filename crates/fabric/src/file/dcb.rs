//! The `dcb` section: Data Center Bridging.

use super::congestion::{CongestionNotification, Ecn};
use super::dcbx::Dcbx;
use super::pauses::{Watchdog, Watermarks};
use crate::dcb::{Buffers, FlowControl};
use crate::units::{BytesText, SpanText};
use schemars::JsonSchema;
use serde::Deserialize;

/// Traffic classes, lossless priorities and flow control. Without this section a switch has one
/// queue for each ingress port, and drops frames that do not fit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dcb {
    /// The traffic classes, class 0 first; one to eight. Each priority is in one of them.
    pub classes: Vec<DcbClass>,
    /// Priorities that hosts see as one, such as `[[3, 4]]`: hosts send with the first, and their
    /// frames use the others on further layers of routes, each of which `router: layered` keeps
    /// free of deadlock. Each is lossless and has a class of its own. No layers by default.
    #[serde(default)]
    pub layers: Vec<Vec<u8>>,
    /// Flow control of lossless classes; pfc by default.
    #[serde(default)]
    pub flow_control: FlowControl,
    /// Duration of a pause that is not refreshed, 2 to 65535 quanta of 512 bit times; 65535 by
    /// default. Pauses are refreshed at half time.
    #[serde(default = "quanta_max")]
    #[schemars(range(min = 2))]
    pub quanta: u16,
    /// Handling of PFC frames with bits set in the reserved octet of their enable vector; ignored
    /// by default.
    #[serde(default)]
    pub pfc_reserved: Reserved,
    /// Memory of each switch.
    #[serde(default)]
    pub buffers: Buffers,
    /// Lengths of queues at which senders are paused, in addition to the thresholds of the buffers;
    /// none by default.
    #[serde(default)]
    pub watermarks: Option<Watermarks>,
    /// PFC watchdog: detects queues that a peer keeps paused; none by default.
    #[serde(default)]
    pub watchdog: Option<Watchdog>,
    /// Charge of a frame in scheduling, and whether weights follow the traffic.
    #[serde(default, alias = "turns")]
    pub scheduling: Scheduling,
    /// Priorities of hosts' frames by application, such as `udp:4791=3`, `tcp:3260=4`,
    /// `port:2049=4`, `dscp:46=5`, `ethertype:0x8915=3`, `default=1`. In a lab, hosts then have an
    /// agent at their edge, which tags their frames accordingly and honours flow control for them.
    #[serde(default)]
    pub applications: Vec<String>,
    /// Priority of control messages; 7 by default. Its class must not be lossless.
    #[serde(default = "seven")]
    #[schemars(range(max = 7))]
    pub control_priority: u8,
    /// True if hosts honour flow control, and pause their switch when they read too slowly; true by
    /// default where a class is lossless. Simulated hosts only: in a lab the kernel decides.
    #[serde(default)]
    pub hosts: Option<bool>,
    /// DCBX: the settings of this section that switches advertise to their neighbours, and those
    /// that they adopt from them.
    pub dcbx: Option<Dcbx>,
    /// Congestion notification: sources of frames that fill a queue are notified and slow down. Off
    /// by default.
    #[serde(default)]
    pub congestion_notification: Option<CongestionNotification>,
}

fn quanta_max() -> u16 {
    u16::MAX
}

fn seven() -> u8 {
    7
}

/// One traffic class; strict if it has no share.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Class")]
pub struct DcbClass {
    /// Priorities in the class, 0 to 7.
    pub priorities: Vec<u8>,
    /// Share, in percent, of the bandwidth left by strict classes (enhanced transmission
    /// selection); those of all classes add up to 100.
    #[schemars(range(max = 100))]
    pub ets: Option<u8>,
    /// Quantum of deficit round robin, 1B to 16MiB: bytes that it may send in a round.
    pub drr: Option<BytesText>,
    /// Weight in weighted fair queueing, relative to the sum of all weights.
    pub wfq: Option<u32>,
    /// True if it is lossless: senders are paused before its buffers are full.
    pub lossless: bool,
    /// Marking of IP packets by its queues when they grow long; none by default.
    pub ecn: Option<Ecn>,
}

/// Handling of PFC frames that set reserved bits, where standards are ambiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reserved {
    /// The frames are honoured as if those bits were clear.
    #[default]
    Ignored,
    /// The frames are dropped as malformed.
    Refused,
}

/// Charge of a frame in scheduling, and whether weights follow the traffic.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduling {
    /// Charge of a frame against its class's share; wire by default.
    pub charge: Charge,
    /// Size in bytes of the cells that a frame is charged in; 1 by default.
    pub cell: u16,
    /// Weights of classes: fixed (default) or adapted to the traffic.
    pub weights: Weights,
    /// Measuring interval before weights are set anew; 1min for awc and 10ms for byte_fair by
    /// default.
    pub window: Option<SpanText>,
}

/// Charge of a frame in scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// Its time on the wire: FCS, preamble and gap included.
    #[default]
    Wire,
    /// The bytes of the frame, FCS included.
    Frame,
}

/// Weights of classes: fixed, or adapted to the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weights {
    /// The shares stay as configured.
    #[default]
    Fixed,
    /// Adaptive weights by frame size (paper 002 section 6.3).
    Awc,
    /// Bytes are shared exactly as configured.
    ByteFair,
}

impl Default for Scheduling {
    fn default() -> Scheduling {
        Scheduling { charge: Charge::Wire, cell: 1, weights: Weights::Fixed, window: None }
    }
}
