//! Path of a frame: parse, look up, modify, send.

use crate::action::{Action as Entry, Interface, Mirror, Target};
use crate::change::{Change, ChangeError};
use crate::frame_type::Parsed;
use crate::modify::{self, Context};
use crate::register::{Register, RegisterError};
use crate::sizes::Sizes;
use crate::tables::Tables;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::{Action, Awaited, Drop, Input, Node, NodeKind, Punt, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::flow_hash::{choose, flow_hash};
use axon_plane::meter::Meter;
use axon_plane::ports::{FrameMeta, HeaderKind, Ports, copy};
use axon_plane::{PuntLimit, ethernet};
use axon_wire::header::HeaderFields;
use axon_wire::{Bytes, FrameBuf, HopWidth, MacAddr, PortNo, Priority, Time};

/// Size and limits of a pipeline.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// Number of ports, numbered 0 to `ports - 1`.
    pub ports: u16,
    /// The address of the switch.
    pub mac: MacAddr,
    /// Sizes of the tables.
    pub sizes: Sizes,
    /// Bits of a hop, for entries that change Axon headers.
    pub hop_width: HopWidth,
    /// The longest frame accepted, in bytes without FCS and tag, including headers prepended by
    /// other switches. Headers prepended here may make it longer.
    pub frame_bytes_max: usize,
    /// Buffer size in bytes; each output port has one buffer for each ingress port.
    pub queue_bytes_max: Bytes,
    /// Rate limit of each port to the control program: one for frames with that target, and another
    /// for copies.
    pub cpu: PuntLimit,
    /// Seed that varies the choice of [`Target::Spread`] and the collisions of hash tables between
    /// switches.
    pub seed: u64,
    /// Traffic classes, shared memory and flow control, if configured.
    pub dcb: Option<Box<DcbConfig>>,
    /// With traffic classes: the priority of the control program's frames.
    pub control_priority: Priority,
}

impl PipelineConfig {
    /// Returns the defaults for a switch with this many ports: the paper's table sizes, 8-bit hops,
    /// 1514-byte frames, 128 KiB per buffer, 10,000 frames per second and port to the control
    /// program with a burst of 256, and as many copies.
    pub fn with_ports(ports: u16, mac: MacAddr) -> PipelineConfig {
        PipelineConfig {
            ports,
            mac,
            sizes: Sizes::default(),
            hop_width: HopWidth::Eight,
            frame_bytes_max: 1514,
            queue_bytes_max: Bytes(128 * 1024),
            cpu: PuntLimit { frames_per_second: 10_000, burst: 256 },
            seed: 0,
            dcb: None,
            control_priority: Priority::ZERO,
        }
    }
}

/// Programmable data plane of one switch.
#[derive(Clone, Debug)]
pub struct Pipeline {
    config: PipelineConfig,
    tables: Tables,
    ports: Ports,
    /// Rate limits to the control program, by port.
    cpu: Vec<CpuLimit>,
}

/// Rate limits of one port to the control program. Copies have a separate meter: any host can cause
/// them, by unknown sources, and they must not displace frames that an entry traps, such as BPDUs
/// and hellos.
#[derive(Clone, Copy, Debug)]
struct CpuLimit {
    limit: PuntLimit,
    /// Limit of frames whose target is the control program.
    traps: Meter,
    /// Limit of copies, for learning of sources and by mirrors.
    copies: Meter,
}

impl CpuLimit {
    fn new(limit: PuntLimit) -> CpuLimit {
        CpuLimit { limit, traps: Meter::new(limit), copies: Meter::new(limit) }
    }
}

/// Reason for which a frame goes to the control program.
#[derive(Clone, Copy)]
enum Cause {
    Target,
    Copy,
}

impl Pipeline {
    /// Returns a pipeline with empty tables, whose ports are all without carrier.
    ///
    /// # Panics
    /// If DCB is configured for other ports, or is invalid.
    pub fn new(config: PipelineConfig) -> Pipeline {
        let mut ports = Ports::new(config.ports, config.queue_bytes_max);
        if let Some(dcb) = &config.dcb {
            let set = ports.set_dcb((**dcb).clone(), config.control_priority);
            set.expect("a configuration that was checked");
        }
        Pipeline {
            tables: Tables::new(config.sizes, config.hop_width, config.ports, config.seed),
            ports,
            cpu: alloc::vec![CpuLimit::new(config.cpu); usize::from(config.ports)],
            config,
        }
    }

    /// Receives a frame from a port; see [`Input::Frame`].
    #[inline]
    pub(crate) fn receive(&mut self, now: Time, mut meta: FrameMeta, out: &mut Vec<Action>) {
        if self.tables.options(meta.ingress).axon {
            meta.priority = self.axon_priority(meta.frame.bytes());
        }
        if let Err(reason) = self.ports.receive(now, &meta) {
            return self.ports.discard(meta, reason, out);
        }
        if let Some(reason) = ethernet::fault(meta.frame.bytes(), self.config.frame_bytes_max) {
            return self.ports.discard(meta, reason, out);
        }
        if meta.kind == HeaderKind::MacControl {
            return self.ports.mac_control(now, meta, out);
        }
        self.pass(now, meta, out);
    }

    /// Sends a frame of the control program out of `port`, bypassing the tables.
    pub fn send(&mut self, now: Time, port: PortNo, frame: &[u8], out: &mut Vec<Action>) {
        let frame = FrameBuf::with_headroom(FrameBuf::HEADROOM, frame);
        let mut meta = self.ports.originate(now, frame);
        meta.kind = HeaderKind::of_ethernet(meta.frame.bytes());
        match ethernet::fault(meta.frame.bytes(), self.config.frame_bytes_max) {
            Some(reason) => self.ports.discard(meta, reason, out),
            None => self.ports.deliver(now, meta, port, None, out),
        }
    }

    /// Forwards a frame of the control program by the tables, as if received on `port` or, without
    /// one, on the port of the control plane. It is not counted at that port.
    pub fn inject(&mut self, now: Time, port: Option<PortNo>, frame: &[u8], out: &mut Vec<Action>) {
        let frame = FrameBuf::with_headroom(FrameBuf::HEADROOM, frame);
        let meta = self.ports.originate(now, frame);
        match ethernet::fault(meta.frame.bytes(), self.config.frame_bytes_max) {
            Some(reason) => self.ports.discard(meta, reason, out),
            None => self.pass_as(now, meta, port.unwrap_or(PortNo::CONTROL), out),
        }
    }

    /// Returns the priority of a frame that begins with an Axon header; 0 if the header is invalid.
    pub(crate) fn axon_priority(&self, frame: &[u8]) -> Priority {
        let header = HeaderFields::parse(frame, self.config.hop_width);
        header.map_or(Priority::ZERO, |header| header.priority)
    }

    #[inline]
    fn pass(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        let ingress = meta.ingress;
        self.pass_as(now, meta, ingress, out);
    }

    /// Looks up a frame received on `ingress`, and applies the result.
    #[inline]
    fn pass_as(&mut self, now: Time, mut meta: FrameMeta, ingress: PortNo, out: &mut Vec<Action>) {
        let Pipeline { config, tables, ports, cpu } = self;
        let mut parsed = tables.parse(meta.frame.bytes(), ingress);
        let priority = meta.priority.value();
        let mut verdict = tables.lookup(meta.frame.bytes(), &parsed, ingress, priority);
        if verdict.learn {
            let copy = copy(ports, &meta);
            trap(ports, cpu, Cause::Copy, now, copy, out);
        }
        if let Some(Entry { target: Target::Tables, mirror, .. }) = verdict.action {
            if let Some(mirror) = *mirror {
                send_copy(ports, cpu, now, &meta, mirror, out);
            }
            verdict = tables.lookup_deciding(meta.frame.bytes(), &parsed, ingress, priority);
        }
        let Some(action) = verdict.action else {
            return ports.discard(meta, Drop::NoRoute, out);
        };
        let hash = match action.target {
            Target::Spread(_) => flow_hash(config.seed, meta.frame.bytes()),
            _ => 0,
        };
        if let Some(mirror) = action.mirror {
            send_copy(ports, cpu, now, &meta, mirror, out);
        }
        let objects = verdict.objects;
        let tunnel = |number| objects.tunnel(number);
        let context = Context { ingress, hop_width: config.hop_width, tunnel: &tunnel };
        for change in &action.modify {
            if let Err(reason) = modify::modify(&mut meta.frame, &mut parsed, change, context) {
                return ports.discard(meta, reason, out);
            }
        }
        match action.target {
            // A deciding entry never has the target `Tables`.
            Target::Drop | Target::Tables => ports.discard(meta, Drop::Denied, out),
            Target::Cpu => trap(ports, cpu, Cause::Target, now, meta, out),
            Target::Port(port) => ports.deliver(now, meta, port, None, out),
            Target::Interface(number) => match objects.interface(number) {
                Some(interface) => leave(ports, now, meta, parsed, interface, out),
                None => ports.discard(meta, Drop::Denied, out),
            },
            Target::Group(number) => {
                let members = objects.members(number).iter();
                let members = members.filter_map(|&one| objects.interface(one));
                let open = |one: &&Interface| one.port != ingress && ports.wires().is_up(one.port);
                let members: Vec<Interface> = members.filter(open).copied().collect();
                replicate(ports, now, (meta, parsed), &members, out);
            }
            Target::Spread(number) => {
                let interface = |number: u16| objects.interface(number);
                let is_up = |number: u16| {
                    interface(number).is_some_and(|one| ports.wires().is_up(one.port))
                };
                match choose(hash, objects.members(number), is_up).and_then(interface) {
                    Some(interface) => leave(ports, now, meta, parsed, interface, out),
                    None => ports.discard(meta, Drop::PortDown, out),
                }
            }
        }
    }

    /// Makes all changes of the tables, or none.
    ///
    /// # Errors
    /// The first change that cannot be made, and the reason.
    pub fn commit(&mut self, changes: &[Change]) -> Result<(), ChangeError> {
        self.tables.commit(changes)
    }

    /// Reads a register.
    ///
    /// # Errors
    /// No such port, or no such entry.
    pub fn read_register(&self, register: Register) -> Result<u64, RegisterError> {
        let of = |port: PortNo| {
            let known = port.index() < usize::from(self.config.ports);
            if known { Ok(port) } else { Err(RegisterError::NoSuchPort(port)) }
        };
        let counters = |port| of(port).map(|port| self.ports.counters().port(port));
        let entry = |name| self.tables.counters(name).ok_or(RegisterError::NoSuchEntry(name));
        Ok(match register {
            Register::QueueBytes(port) => self.ports.queues().bytes(of(port)?).0,
            Register::QueueFrames(port) => self.ports.queues().frames(of(port)?),
            Register::RxFrames(port) => counters(port)?.rx_frames,
            Register::RxBytes(port) => counters(port)?.rx_bytes,
            Register::TxFrames(port) => counters(port)?.tx_frames,
            Register::TxBytes(port) => counters(port)?.tx_bytes,
            Register::Dropped(port) => {
                let counters = counters(port)?;
                let reasons = Drop::ALL.iter().filter(|reason| !reason.is_ordinary());
                reasons.map(|&reason| counters.dropped(reason)).sum()
            }
            Register::PortUp(port) => u64::from(self.ports.wires().is_up(of(port)?)),
            Register::EntryFrames(name) => entry(name)?.0,
            Register::EntryBytes(name) => entry(name)?.1,
            Register::CpuRate(port) => {
                u64::from(self.cpu[of(port)?.index()].limit.frames_per_second)
            }
        })
    }

    /// Writes a register.
    ///
    /// # Errors
    /// No such port, a value out of range, or a register that can only be read.
    pub fn write_register(&mut self, register: Register, value: u64) -> Result<(), RegisterError> {
        let Register::CpuRate(port) = register else {
            return Err(RegisterError::ReadOnly(register));
        };
        let max = u64::from(u32::MAX);
        let rate = u32::try_from(value).map_err(|_| RegisterError::Range { value, max })?;
        let place = self.cpu.get_mut(port.index()).ok_or(RegisterError::NoSuchPort(port))?;
        *place = CpuLimit::new(PuntLimit { frames_per_second: rate, ..place.limit });
        Ok(())
    }

    /// Returns the tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the ports, for carrier, `TxDone` and time.
    pub fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// Returns the initial configuration.
    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }
}

impl Interface {
    /// Returns an interface of `port` that changes no address.
    pub const fn of(port: PortNo) -> Interface {
        Interface { port, destination: None, source: None }
    }
}

impl Entry {
    /// Returns an entry that sends frames to the control program.
    pub fn cpu() -> Entry {
        Entry::from(Target::Cpu)
    }
}

/// Sends a copy of a received frame to a mirror.
fn send_copy(
    ports: &mut Ports,
    cpu: &mut [CpuLimit],
    now: Time,
    meta: &FrameMeta,
    mirror: Mirror,
    out: &mut Vec<Action>,
) {
    let copy = copy(ports, meta);
    match mirror {
        Mirror::Cpu => trap(ports, cpu, Cause::Copy, now, copy, out),
        Mirror::Port(port) => ports.deliver(now, copy, port, None, out),
    }
}

/// Sends a frame to the control program, within the rate limit of its port.
fn trap(
    ports: &mut Ports,
    cpu: &mut [CpuLimit],
    cause: Cause,
    now: Time,
    meta: FrameMeta,
    out: &mut Vec<Action>,
) {
    let limit = cpu.get_mut(meta.ingress.index());
    let meter = limit.map(|limit| match cause {
        Cause::Target => &mut limit.traps,
        Cause::Copy => &mut limit.copies,
    });
    if meter.is_some_and(|meter| !meter.admit(now)) {
        return ports.discard(meta, Drop::PuntLimit, out);
    }
    ports.punt(now, meta, Punt::Trap, out);
}

/// Sends a frame out of an interface.
#[inline]
fn leave(
    ports: &mut Ports,
    now: Time,
    mut meta: FrameMeta,
    mut parsed: Parsed,
    interface: &Interface,
    out: &mut Vec<Action>,
) {
    match modify::rewrite(&mut meta.frame, &mut parsed, interface) {
        Ok(()) => ports.deliver(now, meta, interface.port, None, out),
        Err(reason) => ports.discard(meta, reason, out),
    }
}

/// Sends a copy to each member of a group, and the frame itself to the last.
fn replicate(
    ports: &mut Ports,
    now: Time,
    (meta, parsed): (FrameMeta, Parsed),
    members: &[Interface],
    out: &mut Vec<Action>,
) {
    let Some((last, others)) = members.split_last() else {
        return ports.discard(meta, Drop::Filtered, out);
    };
    for interface in others {
        let copy = copy(ports, &meta);
        leave(ports, now, copy, parsed, interface, out);
    }
    leave(ports, now, meta, parsed, last, out);
}

impl Node for Pipeline {
    #[inline]
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.receive(now, FrameMeta::ethernet(frame, port, complete_at, intact), out);
            }
            Input::TxDone { port } => self.ports.tx_done(now, port, out),
            Input::Link { port, up } => self.ports.link(now, port, up, out),
            Input::Timeout => self.ports.timeout(now, out),
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Switch)));
            }
        }
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        self.ports.deadline()
    }
}

impl Shortcuts for Pipeline {
    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.ports.awaited()
    }
}
