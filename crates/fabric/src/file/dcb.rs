//! Data Center Bridging as it is written: `dcb:` and what is in it.

use super::dcbx::Dcbx;
use super::notice::{CongestionNotification, Ecn};
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
    /// Which priorities hosts know as one, such as `[[3, 4]]`: they send with the first, and their
    /// frames have the others on further layers of routes, which `router: layered` keeps free of
    /// deadlock each. Each is lossless and has a class of its own. Without layers if not said.
    #[serde(default)]
    pub layers: Vec<Vec<u8>>,
    /// How a lossless class makes its senders stop; pfc if not said.
    #[serde(default)]
    pub flow_control: FlowControl,
    /// How long a stop lasts that is not told again, in quanta of 512 bit times; 65535 if not
    /// said. It is told again at half time.
    #[serde(default = "quanta_max")]
    #[schemars(range(min = 2))]
    pub quanta: u16,
    /// What becomes of PFC frames that set bits in the reserved octet of their enable vector;
    /// ignored if not said.
    #[serde(default)]
    pub pfc_reserved: Reserved,
    /// The memory of each switch.
    #[serde(default)]
    pub buffers: Buffers,
    /// Lengths of queues at which senders are stopped, beside what the memory says; the memory
    /// alone has the say if not said.
    #[serde(default)]
    pub watermarks: Option<Watermarks>,
    /// What is done about a peer that does not let a queue go on; nothing if not said.
    #[serde(default)]
    pub watchdog: Option<Watchdog>,
    /// What scheduling charges a frame for, and whether weights follow the traffic.
    #[serde(default, alias = "turns")]
    pub scheduling: Scheduling,
    /// Which frames of hosts have which priority, such as `udp:4791=3`, `tcp:3260=4`,
    /// `port:2049=4`, `dscp:46=5`, `ethertype:0x8915=3`, `default=1`. In a lab, hosts then have
    /// an agent at their edge, which tags their frames so and obeys flow control for them.
    #[serde(default)]
    pub applications: Vec<String>,
    /// The priority of control messages; 7 if not said. Its class must not be lossless.
    #[serde(default = "seven")]
    #[schemars(range(max = 7))]
    pub control_priority: u8,
    /// Whether hosts stop when they are told to, and tell their switch to stop when they read
    /// too slowly; they do if not said, where a class is lossless. Only simulated hosts: those of a
    /// lab do as their kernel does.
    #[serde(default)]
    pub hosts: Option<bool>,
    /// What switches say of all this to their neighbours, and do as those say; Axon and other
    /// equipment.
    pub dcbx: Option<Dcbx>,
    /// Sources of frames that fill a queue are told to slow down; nobody if not said.
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
    /// What it may send in a turn of deficit round robin.
    pub drr: Option<BytesText>,
    /// Its part in weighted fair queueing, relative to the sum of all.
    pub wfq: Option<u32>,
    /// Whether its frames are never to be lost: senders are told to stop before there is no
    /// room.
    pub lossless: bool,
    /// How its queues mark IP packets when they grow long; not at all if not said.
    pub ecn: Option<Ecn>,
}

/// How senders are made to stop.
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
    /// They are obeyed as if those bits were clear.
    #[default]
    Ignored,
    /// They are dropped as malformed.
    Refused,
}

/// Who may use how much of a switch's memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Buffers {
    /// What lossless groups (an ingress port and a priority) share; 1MiB if not said.
    pub lossless_pool: BytesText,
    /// What lossy groups share; 1MiB if not said.
    pub lossy_pool: BytesText,
    /// What each group has for itself; nothing if not said.
    pub reserved: BytesText,
    /// What a lossless group may take of its pool: a part of what is free (alpha), or so many
    /// bytes; 1/2 if not said.
    pub lossless_share: ShareText,
    /// The same for a lossy group; 1 if not said.
    pub lossy_share: ShareText,
    /// What lossy frames for one port in one class may take of the lossy pool; 1 if not said.
    pub queue_share: ShareText,
    /// What a lossless group has for what comes after its sender was told to stop. If not
    /// said, what is needed by rate, cable, frame size, interface_delay and reaction.
    pub headroom: Option<BytesText>,
    /// For the headroom that is not said: what the MAC and PHY of one end take to send and to
    /// receive, both together; what the device of this file takes, if not said.
    pub interface_delay: Option<SpanText>,
    /// For the headroom that is not said: from the receipt of a stop until nothing more begins.
    /// If not said, the longest that the standards allow: 614.4ns with pfc, and with pause what
    /// IEEE 802.3 says for the rate (60 quanta at 10Gbps, 3.072us; other sources say 67 and 74).
    /// In a lab on Linux, some milliseconds.
    pub reaction: Option<SpanText>,
    /// So far below its share a lossless group must be before its sender may go on; two frames
    /// if not said.
    pub xon_offset: Option<BytesText>,
}

/// How frames are charged, and whether weights follow the traffic.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduling {
    /// What a frame takes off its class's share; wire if not said.
    pub charge: Charge,
    /// Bytes of the cells that a frame is charged in; 1 if not said.
    pub cell: u16,
    /// Whether the shares of classes follow the traffic; fixed if not said.
    pub weights: Weights,
    /// How long frames are counted before weights are set anew; 1min for awc and 10ms for
    /// byte_fair if not said.
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
