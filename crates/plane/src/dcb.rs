//! Data Center Bridging in a switch: what it is told, and what it knows of each port.
//!
//! The parts have files of their own: how much memory a frame may use (`memory.rs`), what a
//! port hears and tells (`flow_control.rs`), what its queues tell the sources of frames
//! (`notice.rs`). How they work together is in `bank/lossless.rs` and `bank/watch.rs`.

use crate::flow_control::{Requests, Stops};
use crate::memory::{GroupLimits, Memory, MemoryConfig, QueueLimits, Share};
use crate::notice::{CnConfig, EcnConfig, NoticeError, UNDEFENDED, Watch};
use crate::qcn::Treatment;
use crate::schedule::{Algorithm, ClassSet, Schedule, ScheduleConfig, ScheduleFault};
use alloc::vec::Vec;
use axon_wire::header::{self, HeaderView};
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, HopWidth, MacAddr, PortNo, Rate, Time, vlan};

/// What a switch with traffic classes and flow control is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcbConfig {
    /// Who may use how much of its memory, and which priorities are lossless.
    pub memory: MemoryConfig,
    /// The traffic class of each priority (dcbnl: `prio_tc`), the same at every port until a port
    /// is told otherwise ([`PortBank::set_classes`](crate::PortBank::set_classes)).
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// How classes take turns, likewise.
    pub schedule: ScheduleConfig,
    /// Priorities with PFC: what is heard for others is ignored, and only these are asked to
    /// stop. The same at every port until one is told otherwise
    /// ([`PortBank::set_pfc`](crate::PortBank::set_pfc)).
    pub pfc: PrioritySet,
    /// Whether peers are stopped with PAUSE, which stops all priorities (IEEE 802.3 annex 31B);
    /// only without PFC (IEEE 802.1Q clause 36.1.1).
    pub pause: bool,
    /// How long a stop that this switch asks for lasts; it is told again at half time.
    pub pfc_quanta: Quanta,
    /// The rate of each port: quanta are bit times.
    pub rates: Vec<Rate>,
    /// Source address of PFC frames.
    pub mac: MacAddr,
    /// Congestion notification, if there is any.
    pub cn: Option<CnConfig>,
    /// By port and traffic class, how its queue marks, if it does.
    pub ecn: Vec<[Option<EcnConfig>; PRIORITIES]>,
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DcbError {
    /// The turns of classes.
    #[error(transparent)]
    Schedule(#[from] ScheduleFault),
    /// What watches queues.
    #[error(transparent)]
    Notice(#[from] NoticeError),
}

impl DcbConfig {
    /// For ports of these rates: one strict class for each priority, nothing lossless, no
    /// flow control; 1 MiB for frames that wait, of which a group or a queue may take as much
    /// as is free. The rest is for the caller to change.
    pub fn lossy(rates: Vec<Rate>, mac: MacAddr) -> DcbConfig {
        let share = Share::Dynamic { shift: 0 };
        let group =
            GroupLimits { reserved: Bytes(0), share, headroom: Bytes(0), xon_offset: Bytes(0) };
        DcbConfig {
            memory: MemoryConfig {
                lossless: PrioritySet::EMPTY,
                lossless_pool: Bytes(0),
                lossy_pool: Bytes(1 << 20),
                groups: alloc::vec![[group; PRIORITIES]; rates.len()],
                queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
            },
            prio_tc: TrafficClass::ALL,
            schedule: ScheduleConfig::of([Algorithm::Strict; PRIORITIES]),
            pfc: PrioritySet::EMPTY,
            pause: false,
            pfc_quanta: Quanta::MAX,
            ecn: alloc::vec![[None; PRIORITIES]; rates.len()],
            rates,
            mac,
            cn: None,
        }
    }
}

/// What is known of one port.
#[derive(Clone, Debug)]
pub(crate) struct DcbPort {
    pub(crate) stops: Stops,
    pub(crate) requests: Requests,
    pub(crate) schedule: Schedule,
    pub(crate) watch: Watch,
    /// How the domain is defended against its hosts.
    pub(crate) treatments: [Treatment; PRIORITIES],
    pub(crate) rate: Rate,
    pub(crate) prio_tc: [TrafficClass; PRIORITIES],
    pub(crate) pfc: PrioritySet,
    /// [`DcbConfig::pause`].
    pub(crate) pause: bool,
}

impl DcbPort {
    /// Whether its peer is stopped with PAUSE.
    pub(crate) const fn tells_pause(&self) -> bool {
        self.pause && self.pfc.is_empty()
    }

    /// The priorities whose sender is to be told to stop.
    pub(crate) const fn can_stop(&self) -> PrioritySet {
        if self.tells_pause() { PrioritySet::ALL } else { self.pfc }
    }

    pub(crate) const fn class_of(&self, priority: Priority) -> TrafficClass {
        self.prio_tc[priority.index()]
    }
}

/// All of a switch with traffic classes.
#[derive(Clone, Debug)]
pub(crate) struct Dcb {
    pub(crate) config: DcbConfig,
    pub(crate) memory: Memory,
    pub(crate) ports: Vec<DcbPort>,
    /// When a stop ends or a request is to be told again, at the earliest.
    pub(crate) next: Option<Time>,
}

impl Dcb {
    pub(crate) fn new(config: DcbConfig) -> Result<Dcb, DcbError> {
        config.schedule.serves(&config.prio_tc)?;
        let schedule = Schedule::new(&config.schedule)?;
        if let Some(cn) = &config.cn {
            cn.check()?;
        }
        let mut ports = Vec::with_capacity(config.rates.len());
        for (index, &rate) in config.rates.iter().enumerate() {
            let place = (config.mac, PortNo(index as u16));
            let (cn, ecn) = (config.cn.as_ref(), &config.ecn[index]);
            ports.push(DcbPort {
                stops: Stops::default(),
                requests: Requests::default(),
                schedule: schedule.clone(),
                watch: Watch::new(cn, ecn, place, &config.prio_tc)?,
                treatments: cn.map_or([UNDEFENDED; PRIORITIES], |cn| cn.treatments[index]),
                rate,
                prio_tc: config.prio_tc,
                pfc: config.pfc,
                pause: config.pause,
            });
        }
        Ok(Dcb { memory: Memory::new(config.memory.clone()), ports, next: None, config })
    }

    /// The classes of `port` that may not begin a frame: pausing one of the priorities that
    /// share a class stops the class.
    pub(crate) fn stopped_classes(&self, port: PortNo, now: Time) -> ClassSet {
        let mut classes = ClassSet::EMPTY;
        let port = &self.ports[port.index()];
        let stopped = port.stops.stopped(now);
        stopped.iter().for_each(|priority| classes.insert(port.class_of(priority)));
        classes
    }

    /// Finds out anew when something is due.
    pub(crate) fn plan(&mut self, now: Time) {
        let due = |port: &DcbPort| {
            [port.stops.next_end(now), port.requests.next(), port.schedule.deadline()]
        };
        self.next = self.ports.iter().flat_map(due).flatten().min();
    }
}

/// How the priority of a frame is found as it leaves: in the Axon header, where hops leave room
/// for it, or in the tag of an Ethernet frame.
pub(crate) fn priority_of(width: HopWidth) -> fn(&[u8]) -> Priority {
    fn in_header(frame: &[u8], width: HopWidth) -> Priority {
        if !header::is_axon(frame) {
            return vlan::priority_of(frame);
        }
        HeaderView::parse(frame, width).map_or(Priority::ZERO, |view| view.priority())
    }
    match width {
        HopWidth::Four => |frame| in_header(frame, HopWidth::Four),
        HopWidth::Eight => |frame| in_header(frame, HopWidth::Eight),
        HopWidth::Sixteen => |frame| in_header(frame, HopWidth::Sixteen),
    }
}
