//! Linux runtime, in which one thread runs one node on real ports.
//!
//! Every round consists of these steps, in this order: the wait, carrier changes, wires that have
//! become free, all received frames, commands, the node's own timers, and transmission. Frames come
//! before timers, so that a process that did not run for a while first receives the heartbeats that
//! its neighbours have sent in the meantime. Frames from neighbours come before those from hosts,
//! and a round takes only a few host frames from each port. Therefore, heartbeats wait for at most
//! one round, however many hosts send.
//!
//! All inputs enter the node, and all its actions leave it, in `Runtime::feed`.

mod feed;
mod links;
mod wait;

use crate::choice::DataplaneChoice;
use crate::clock::Clock;
use crate::inspect::Inspect;
use crate::kernel::NodeQueue;
use crate::kernel::ports::KernelPorts;
use crate::link_watch::LinkWatch;
use crate::moderation::Moderation;
use crate::notes::NoteLog;
use crate::port::Pool;
use crate::port_capture::PortCapture;
use crate::record::{RecordSetup, Recording};
use crate::request::RequestServer;
use crate::slot::{OfKernel, PortSetup, Slot};
use crate::status::{LoopCounters, PortStatus, Status, StatusServer};
use crate::store::Store;
use crate::wake_latency::WakeLatency;
use anyhow::Context;
use axon_capture::pcap::{CaptureOptions, Direction, LinkType};
use axon_node::{Action, Input, PortKind, Reply};
use axon_wire::{FrameBuf, PortNo, Span, Time};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Time grid for checking free wires, so that at full load one wake-up serves several frames. It is
/// less than the pacer's slack, so it adds latency under load but does not reduce rates.
const PACING_GRID: Span = Span::from_micros(200);
/// Delay above which a wake-up counts as late.
const LATE: Span = Span::from_millis(1);
/// Interval between attempts to open a port that has carrier and could not be opened. The kernel
/// may have been short of memory, and it does not report the end of that.
const RETRY: Span = Span::from_secs(1);
/// Time for which a node that stops waits for a store on a slow disk.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Options for a runtime.
#[derive(Default)]
pub struct RunOptions {
    /// Name of the node, such as `s1`.
    pub name: String,
    /// Ports, in order.
    pub ports: Vec<PortSetup>,
    /// Status socket. The command socket is next to it.
    pub status_socket: Option<PathBuf>,
    /// Capture of the frames at the ports.
    pub capture: Option<CaptureOptions>,
    /// Recording of the node.
    pub record: Option<RecordSetup>,
    /// Kernel ports, if the kernel carries the frames. The node then uses their
    /// [plane](KernelPorts::plane).
    pub kernel: Option<KernelPorts>,
}

/// Node on real ports.
pub struct Runtime<N> {
    node: N,
    name: String,
    clock: Clock,
    slots: Vec<Slot>,
    pool: Pool,
    watch: LinkWatch,
    signals: SignalFd,
    status: Option<StatusServer>,
    requests: Option<RequestServer>,
    capture: PortCapture,
    recording: Recording,
    /// Store of a controller, which its next incarnation reads.
    store: Option<Store>,
    /// Data plane of a switch.
    dataplane: Option<DataplaneChoice>,
    /// Devices and queues of a kernel data plane.
    kernel: Option<Rc<RefCell<KernelPorts>>>,
    retried: Time,
    counters: LoopCounters,
    notes: NoteLog,
    /// Scratch vectors, kept for their allocations.
    actions: Vec<Action>,
    received: Vec<FrameBuf>,
    queued: Vec<(PortNo, FrameBuf)>,
    /// Ports with a frame on their wire, and some that have lost carrier in the meantime.
    busy: Vec<usize>,
    /// Replies of the node to the last command.
    replies: Vec<Reply>,
    /// True if a port had more than one round's worth of frames.
    more: bool,
    moderation: Moderation,
    wake_latency: WakeLatency,
    /// Time of the next check of events other than frames.
    look_at: Time,
}

impl<N: Inspect> Runtime<N> {
    /// Opens the ports in the calling thread's network namespace, and blocks SIGTERM and SIGINT for
    /// this thread, because they end the loop. A port without a device is down.
    ///
    /// # Errors
    /// The interface for a host's programs, the netlink socket, the status socket or the capture
    /// file cannot be opened.
    pub fn open(node: N, clock: Clock, options: RunOptions) -> anyhow::Result<Runtime<N>> {
        let kernel = options.kernel.map(|mut kernel| {
            options.capture.iter().for_each(|_| kernel.watch());
            Rc::new(RefCell::new(kernel))
        });
        let of_kernel =
            |number| kernel.clone().map(|ports| OfKernel { ports, number: PortNo(number) });
        let slots = (0..).zip(options.ports);
        let mut slots: Vec<Slot> =
            slots.map(|(number, setup)| Slot::new(setup, of_kernel(number))).collect();
        slots.iter_mut().try_for_each(Slot::open_own)?;
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGTERM);
        mask.add(Signal::SIGINT);
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        // The default slack of 50 us on every timer is almost half a frame at 100 Mb/s.
        nix::sys::prctl::set_timerslack(1)?;
        let capture = PortCapture::open(options.capture.as_ref())?;
        let socket = options.status_socket.as_deref();
        let cannot = || format!("cannot listen on {}", socket.unwrap_or(Path::new("")).display());
        let status = socket.map(StatusServer::open).transpose().with_context(cannot)?;
        let requests = socket.map(RequestServer::open).transpose().with_context(cannot)?;
        if let Some(kernel) = &kernel {
            let rated = slots
                .iter()
                .filter_map(|slot| Some((slot.setup.device.as_str(), slot.setup.rate?)));
            kernel.borrow_mut().shape(rated)?;
        }
        let mut runtime = Runtime {
            node,
            name: options.name,
            clock,
            slots,
            pool: Pool::default(),
            watch: LinkWatch::open()?,
            signals,
            status,
            requests,
            capture,
            recording: Recording::open(options.record.as_ref())?,
            store: None,
            dataplane: None,
            retried: Time::ZERO,
            counters: LoopCounters::default(),
            notes: NoteLog::default(),
            actions: Vec::new(),
            received: Vec::new(),
            queued: Vec::new(),
            busy: Vec::new(),
            kernel,
            replies: Vec::new(),
            more: false,
            moderation: Moderation::default(),
            wake_latency: WakeLatency::default(),
            look_at: Time::ZERO,
        };
        runtime.look_at_all_links();
        runtime.flush();
        Ok(runtime)
    }

    /// From now on, stores the node's state changes in this store.
    pub fn keep_in(&mut self, store: Store) {
        self.store = Some(store);
    }

    /// From now on, reports this data plane in the status.
    pub fn report(&mut self, dataplane: DataplaneChoice) {
        self.dataplane = Some(dataplane);
    }

    /// Runs until SIGTERM or SIGINT.
    ///
    /// # Errors
    /// Waiting failed, which is not expected. Or a kernel queue of the node was deleted.
    pub fn run(&mut self) -> io::Result<()> {
        while self.round(Time::MAX)? {}
        Ok(())
    }

    /// Runs one round, and waits in it until `until` at most. Returns false after SIGTERM or
    /// SIGINT. The node's output is then in its store and its files, unless their disks are too
    /// slow.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn round(&mut self, until: Time) -> io::Result<bool> {
        let ready = self.wait(until)?;
        if ready.stop {
            // Close the store first, because the process that stops the node may not wait for all
            // of these.
            self.store.take().map(|store| store.close(STOP_WAIT));
            self.recording.finish();
            self.capture_kernel();
            self.capture.finish(&self.name);
            return Ok(false);
        }
        if ready.links {
            self.follow_links();
        }
        self.retry_ports();
        self.free_wires(self.clock.now());
        self.receive(ready.ports)?;
        self.follow_agents();
        if ready.requests {
            self.serve_requests();
        }
        let now = self.clock.now();
        self.free_wires(now);
        if self.node.deadline().is_some_and(|deadline| deadline <= now) {
            self.feed(now, Input::Timeout);
            self.free_wires(now);
        }
        self.flush();
        if ready.status {
            let status = self.read_status();
            self.status.as_ref().inspect(|server| server.answer(&status));
        }
        self.capture_kernel();
        self.capture.round(&self.name, now);
        self.recording.round(now);
        self.store.iter_mut().for_each(|store| store.round(now));
        self.notes.round(now, &self.name);
        Ok(true)
    }

    /// Returns the node.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// Returns the counters of the loop.
    pub fn counters(&self) -> LoopCounters {
        self.counters
    }

    /// Feeds the received commands to the node, and sends each reply to its client.
    fn serve_requests(&mut self) {
        let requests = self.requests.as_mut().map(RequestServer::take).unwrap_or_default();
        for asked in requests {
            let now = self.clock.now();
            self.free_wires(now);
            self.feed(now, Input::Command(asked.command.clone()));
            // A node replies to a command before `feed` returns.
            let reply = self.replies.drain(..).find(|reply| reply.id == asked.command.id);
            if let Some(reply) = reply {
                asked.answer(&reply);
            }
        }
    }

    fn receive(&mut self, mut ports: Vec<usize>) -> io::Result<()> {
        self.more = false;
        let mut count = self.receive_queue(NodeQueue::Fabric)?;
        count += self.receive_queue(NodeQueue::Links)?;
        ports.sort_by_key(|&index| self.node.port_kind(PortNo(index as u16)) == PortKind::Host);
        for index in ports {
            let mut frames = std::mem::take(&mut self.received);
            let Some(port) = &mut self.slots[index].port else {
                continue;
            };
            let result = port.receive(&mut self.pool, &mut frames);
            self.more |= matches!(result, Ok(true));
            count += frames.len();
            frames.drain(..).for_each(|frame| self.arrived(index, frame));
            self.received = frames;
            if result.is_err() {
                self.set_link(index, false);
                self.slots[index].lose_tap();
            }
        }
        count += self.receive_queue(NodeQueue::Hosts)?;
        let now = self.clock.now();
        self.moderation.round(now, count);
        if self.kernel.is_none() {
            self.wake_latency.round(now, count);
        }
        Ok(())
    }

    /// Receives packets for the node from one of its kernel queues. Returns the number of frames.
    fn receive_queue(&mut self, queue: NodeQueue) -> io::Result<usize> {
        let Some(kernel) = &self.kernel else { return Ok(0) };
        let mut frames = std::mem::take(&mut self.queued);
        if let Some(queues) = kernel.borrow_mut().queues_mut() {
            self.more |= queues.receive(queue, &mut self.pool, &mut frames)?;
        }
        let count = frames.len();
        for (port, frame) in frames.drain(..) {
            if self.slots.get(port.index()).is_some_and(|slot| slot.up) {
                self.arrived(port.index(), frame);
            }
        }
        self.queued = frames;
        Ok(count)
    }

    fn flush(&mut self) {
        let slots = self.slots.len();
        for index in 0..slots {
            let number = PortNo(index as u16);
            let slot = &mut self.slots[index];
            slot.set_kind(self.node.port_kind(number));
            if let Some(rules) = self.node.rules(number) {
                slot.set_rules(self.clock.now(), rules);
            }
            if slot.shows_queues() {
                let ports = 0..slots;
                let node = &self.node;
                slot.show_queues(&mut ports.map(|port| node.queue_bytes(PortNo(port as u16))));
            }
            if slot.flush(&mut self.pool).is_err() {
                self.set_link(index, false);
            }
        }
    }

    /// Captures a frame that this process carries. If the kernel carries frames, its sniffers also
    /// capture those of the process.
    fn record(&mut self, now: Time, index: usize, direction: Direction, frame: &FrameBuf) {
        if self.capture.is_on() && self.kernel.is_none() {
            let nanos = self.clock.unix_nanos(now);
            self.capture_bytes(index, direction, nanos, frame.bytes());
        }
    }

    fn capture_bytes(&mut self, index: usize, direction: Direction, nanos: u64, bytes: &[u8]) {
        let Some(slot) = self.slots.get(index) else {
            return;
        };
        let link_type = match self.node.port_kind(PortNo(index as u16)) {
            PortKind::Axon => LinkType::between_switches(bytes),
            _ => LinkType::ETHERNET,
        };
        let port = (index, slot.setup.device.as_str());
        self.capture.record(&self.name, port, (link_type, direction), nanos, bytes);
    }

    /// Captures the frames that the kernel has carried since the last round, in order of time.
    fn capture_kernel(&mut self) {
        let Some(kernel) = self.kernel.as_ref().filter(|_| self.capture.is_on()) else { return };
        let mut all = Vec::new();
        for (port, sniffer) in kernel.borrow_mut().sniffers() {
            sniffer.take(port, &mut all);
            self.slots[port.index()].missed(sniffer.missed());
        }
        all.sort_by_key(|(_, seen)| seen.unix_nanos);
        for (port, seen) in all {
            self.capture_bytes(port.index(), seen.direction, seen.unix_nanos, &seen.bytes);
        }
    }

    fn read_status(&mut self) -> Status {
        let now = self.clock.now();
        let node = &self.node;
        let ports = self.slots.iter_mut().enumerate().map(|(index, slot)| PortStatus {
            name: slot.setup.device.clone(),
            up: slot.up,
            kind: node.port_kind(PortNo(index as u16)),
            rate_bps: slot.setup.rate.map(|rate| rate.bits_per_second()),
            mtu_bytes: slot.mtu().map(|bytes| bytes as u64),
            mtu_needed_bytes: slot.mtu_needed().map(|bytes| bytes as u64),
            counters: slot.counters(),
            agent: slot.agent_status(),
        });
        Status {
            name: self.name.clone(),
            uptime_us: now.as_micros(),
            run_loop: self.counters,
            ports: ports.collect(),
            store: self.store.as_ref().map(Store::status),
            dataplane: self.dataplane.clone(),
            node: self.node.telemetry(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{host, slow};
    use axon_node::telemetry::NodeTelemetry;
    use axon_node::{Node, Shortcuts, StoreChange};

    /// Node that stores a host at its first deadline.
    struct Keeper {
        is_done: bool,
    }

    impl Node for Keeper {
        fn handle(&mut self, _: Time, _: Input, out: &mut Vec<Action>) {
            self.is_done = true;
            out.push(Action::Store(Box::new(StoreChange::Put(host(2, 2)))));
        }

        fn deadline(&self) -> Option<Time> {
            (!self.is_done).then_some(Time::ZERO)
        }
    }

    impl Shortcuts for Keeper {}

    impl Inspect for Keeper {
        fn port_kind(&self, _: PortNo) -> PortKind {
            PortKind::Host
        }

        fn telemetry(&self, _: Time) -> NodeTelemetry {
            unreachable!("nobody reads its status")
        }
    }

    #[test]
    fn a_controller_that_is_stopped_waits_for_its_store() {
        let folder = std::env::temp_dir().join(format!("axon-stopped-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (path, clock) = (folder.join("store"), Clock::start());
        let node = Keeper { is_done: false };
        let mut runtime = Runtime::open(node, clock, RunOptions::default()).unwrap();
        // This is longer than a round waits for the store.
        runtime.keep_in(slow(&path, Duration::from_millis(300), &Default::default()));
        assert!(runtime.round(Time::MAX).unwrap());
        // Sent to this thread, which blocks the signal.
        nix::sys::signal::raise(Signal::SIGTERM).unwrap();
        assert!(!runtime.round(Time::MAX).unwrap());
        assert_eq!(Store::open(&path, "ring", &clock).unwrap().1, [host(1, 1), host(2, 2)]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
