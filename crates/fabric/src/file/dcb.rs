//! Data Center Bridging as it is written: `dcb:` and what is in it.

use super::congestion::{CongestionNotification, Ecn};
use super::dcbx::Dcbx;
use super::pauses::{Watchdog, Watermarks};
use super::text::ShareText;
use crate::units::{BytesText, SpanText};
use axon_plane::memory::Share;
use schemars::JsonSchema;
use serde::Deserialize;

/// Traffic classes, lossless priorities, and how switches keep them so. Without this section a
/// switch has one queue for each ingress port, and drops what does not fit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dcb {
    /// The traffic classes, class 0 first; one to eight. Each priority is in one of them.
    pub classes: Vec<Class>,
    /// Priorities that hosts see as one, such as `[[3, 4]]`: hosts send with the first, and their
    /// frames have the others on further layers of routes, which `router: layered` keeps free of
    /// deadlock each. Each is lossless and has a class of its own. No layers by default.
    #[serde(default)]
    pub layers: Vec<Vec<u8>>,
    /// How the senders of a lossless class are paused; pfc by default.
    #[serde(default)]
    pub flow_control: FlowControl,
    /// How long a pause lasts that is not refreshed, 2 to 65535 quanta of 512 bit times; 65535 by
    /// default. It is refreshed at half time.
    #[serde(default = "quanta_max")]
    #[schemars(range(min = 2))]
    pub quanta: u16,
    /// How PFC frames with bits in the reserved octet of their enable vector are handled; ignored
    /// by default.
    #[serde(default)]
    pub pfc_reserved: Reserved,
    /// The memory of each switch.
    #[serde(default)]
    pub buffers: Buffers,
    /// Lengths of queues at which senders are paused, in addition to the thresholds of the buffers;
    /// none by default.
    #[serde(default)]
    pub watermarks: Option<Watermarks>,
    /// PFC watchdog: what happens with a queue that its peer keeps paused; no watchdog by default.
    #[serde(default)]
    pub watchdog: Option<Watchdog>,
    /// What scheduling charges a frame for, and whether weights follow the traffic.
    #[serde(default, alias = "turns")]
    pub scheduling: Scheduling,
    /// Which frames of hosts have which priority, such as `udp:4791=3`, `tcp:3260=4`,
    /// `port:2049=4`, `dscp:46=5`, `ethertype:0x8915=3`, `default=1`. In a lab, hosts then have
    /// an agent at their edge, which tags their frames so and honours flow control for them.
    #[serde(default)]
    pub applications: Vec<String>,
    /// The priority of control messages; 7 by default. Its class must not be lossless.
    #[serde(default = "seven")]
    #[schemars(range(max = 7))]
    pub control_priority: u8,
    /// Whether hosts honour flow control, and pause their switch when they read too slowly; true by
    /// default where a class is lossless. Simulated hosts only: hosts of a lab do as their kernel
    /// does.
    #[serde(default)]
    pub hosts: Option<bool>,
    /// What switches advertise of this section to their neighbours, Axons and others, and what they
    /// adopt of theirs.
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

/// One traffic class: strict, if it has no share.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Class {
    /// The priorities in it, 0 to 7.
    pub priorities: Vec<u8>,
    /// Its part, in percent, of what strict classes leave (enhanced transmission selection);
    /// those of all classes add up to 100.
    #[schemars(range(max = 100))]
    pub ets: Option<u8>,
    /// Its quantum of deficit round robin, 1B to 16MiB: what it may send in a round.
    pub drr: Option<BytesText>,
    /// Its part in weighted fair queueing, relative to the sum of all.
    pub wfq: Option<u32>,
    /// Whether it is lossless: senders are paused before its buffers are full.
    pub lossless: bool,
    /// How its queues mark IP packets when they grow long; not at all by default.
    pub ecn: Option<Ecn>,
}

/// How senders are paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowControl {
    /// By priority (IEEE 802.1Qbb).
    #[default]
    Pfc,
    /// All of a link at once (IEEE 802.3 annex 31B): every class is lossless then.
    Pause,
    /// Not at all: no class is lossless.
    None,
}

/// What becomes of PFC frames that set reserved bits; sources are not sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reserved {
    /// They are honoured as if those bits were clear.
    #[default]
    Ignored,
    /// They are dropped as malformed.
    Refused,
}

/// How the memory of a switch is divided among priority groups.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Buffers {
    /// What lossless priority groups (an ingress port and a priority) share; 1MiB by default.
    pub lossless_pool: BytesText,
    /// What lossy priority groups share; 1MiB by default.
    pub lossy_pool: BytesText,
    /// What each priority group has for itself; nothing by default.
    pub reserved: BytesText,
    /// What a lossless priority group may take of its pool: a part of what is free (alpha), or so
    /// many bytes; 1/2 by default.
    pub lossless_share: ShareText,
    /// The same for a lossy priority group; 1 by default.
    pub lossy_share: ShareText,
    /// What lossy frames for one port in one class may take of the lossy pool; 1 by default.
    pub queue_share: ShareText,
    /// Headroom of a lossless priority group: room for what arrives after XOFF was sent. By
    /// default what rate, cable, frame size, interface_delay and reaction need.
    pub headroom: Option<BytesText>,
    /// For the default headroom: what the MAC and PHY of one end take to send and to receive, both
    /// together; by default that of the device of this file.
    pub interface_delay: Option<SpanText>,
    /// For the default headroom: the time from the receipt of XOFF until no new frame begins. By
    /// default the longest that the standards allow: 614.4ns with pfc, and with pause what
    /// IEEE 802.3 says for the rate (60 quanta at 10Gbps, 3.072us; other sources say 67 and 74).
    /// In a lab on Linux, some milliseconds.
    pub reaction: Option<SpanText>,
    /// How far below its share a lossless priority group must be before XON is sent; two frames by
    /// default.
    pub xon_offset: Option<BytesText>,
}

/// How frames are charged, and whether weights follow the traffic.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduling {
    /// What a frame takes off its class's share; wire by default.
    pub charge: Charge,
    /// Bytes of the cells that a frame is charged in; 1 by default.
    pub cell: u16,
    /// Whether the shares of classes follow the traffic; fixed by default.
    pub weights: Weights,
    /// How long frames are counted before weights are set anew; 1min for awc and 10ms for
    /// byte_fair by default.
    pub window: Option<SpanText>,
}

/// What a frame is charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// Its time on the wire: FCS, preamble and gap count.
    #[default]
    Wire,
    /// The bytes of the frame with its FCS.
    Frame,
}

/// Whether the shares of classes follow the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weights {
    /// They stay as configured.
    #[default]
    Fixed,
    /// Adaptive weights by frame size (paper 002 section 6.3).
    Awc,
    /// Bytes are shared exactly.
    ByteFair,
}

impl Default for Buffers {
    fn default() -> Buffers {
        let bytes = |bytes| BytesText(axon_wire::Bytes(bytes));
        Buffers {
            lossless_pool: bytes(1 << 20),
            lossy_pool: bytes(1 << 20),
            reserved: bytes(0),
            lossless_share: ShareText(Share::Dynamic { shift: -1 }),
            lossy_share: ShareText(Share::Dynamic { shift: 0 }),
            queue_share: ShareText(Share::Dynamic { shift: 0 }),
            headroom: None,
            interface_delay: None,
            reaction: None,
            xon_offset: None,
        }
    }
}

impl Default for Scheduling {
    fn default() -> Scheduling {
        Scheduling { charge: Charge::Wire, cell: 1, weights: Weights::Fixed, window: None }
    }
}
