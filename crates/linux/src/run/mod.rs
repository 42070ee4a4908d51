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

mod events;
mod feed;
mod links;
mod load;
mod ports;
mod wait;

use crate::clock::Clock;
use crate::dataplane_choice::DataplaneChoice;
use crate::device_port::{DevicePort, PortSetup};
use crate::inspect::Inspect;
use crate::kernel::NodeQueue;
use crate::kernel::ports::KernelPorts;
use crate::notes::NoteLog;
use crate::port_capture::PortCapture;
use crate::record::{RecordSetup, Recording};
use crate::status::{LoopCounters, Status};
use crate::store::Store;
use axon_capture::pcap::{CaptureOptions, Direction, LinkType};
use axon_node::{Action, Input, PortKind, Reply};
use axon_wire::{FrameBuf, PortNo, Time};
use events::Events;
use load::Load;
use ports::Ports;
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

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
    /// plane.
    pub kernel: Option<KernelPorts>,
}

/// Node on real ports.
pub struct Runtime<N> {
    node: N,
    name: String,
    clock: Clock,
    ports: Ports,
    /// Devices and queues of a kernel data plane.
    kernel: Option<Rc<RefCell<KernelPorts>>>,
    events: Events,
    load: Load,
    capture: PortCapture,
    recording: Recording,
    /// Store of a controller, which its next incarnation reads.
    store: Option<Store>,
    /// Data plane of a switch.
    dataplane: Option<DataplaneChoice>,
    notes: NoteLog,
    /// Scratch vectors, kept for their allocations.
    actions: Vec<Action>,
    received: Vec<FrameBuf>,
    queued: Vec<(PortNo, FrameBuf)>,
    /// Replies of the node to the last command.
    replies: Vec<Reply>,
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
        let ports = Ports::new(options.ports, kernel.as_ref())?;
        let events = Events::open(options.status_socket.as_deref())?;
        let capture = PortCapture::open(options.capture.as_ref())?;
        if let Some(kernel) = &kernel {
            kernel.borrow_mut().shape(ports.all().iter().filter_map(DevicePort::rated))?;
        }
        let mut runtime = Runtime {
            node,
            name: options.name,
            clock,
            ports,
            events,
            load: Load::new(kernel.is_none()),
            kernel,
            capture,
            recording: Recording::open(options.record.as_ref())?,
            store: None,
            dataplane: None,
            notes: NoteLog::default(),
            actions: Vec::new(),
            received: Vec::new(),
            queued: Vec::new(),
            replies: Vec::new(),
        };
        runtime.look_at_all_links();
        runtime.flush();
        Ok(runtime)
    }

    /// From now on, stores the node's state changes in this store.
    pub(crate) fn keep_in(&mut self, store: Store) {
        self.store = Some(store);
    }

    /// From now on, reports this data plane in the status.
    pub(crate) fn report(&mut self, dataplane: DataplaneChoice) {
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
            self.events.answer(&status);
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
        self.load.counters()
    }

    /// Feeds the received commands to the node, and sends each reply to its client.
    fn serve_requests(&mut self) {
        for asked in self.events.requests() {
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
        let (mut count, mut more) = (0, false);
        count += self.receive_queue(NodeQueue::Fabric, &mut more)?;
        count += self.receive_queue(NodeQueue::Links, &mut more)?;
        ports.sort_by_key(|&index| self.node.port_kind(PortNo(index as u16)) == PortKind::Host);
        for index in ports {
            let mut frames = std::mem::take(&mut self.received);
            let result = self.ports.receive(index, &mut frames);
            more |= matches!(result, Ok(true));
            count += frames.len();
            frames.drain(..).for_each(|frame| self.arrived(index, frame));
            self.received = frames;
            if result.is_err() {
                self.set_link(index, false);
                self.ports.device_mut(index).lose_tap();
            }
        }
        count += self.receive_queue(NodeQueue::Hosts, &mut more)?;
        self.load.round(self.clock.now(), count, more);
        Ok(())
    }

    /// Receives packets for the node from one of its kernel queues. Returns the number of frames;
    /// sets `more` if there may be more.
    fn receive_queue(&mut self, queue: NodeQueue, more: &mut bool) -> io::Result<usize> {
        let Some(kernel) = &self.kernel else { return Ok(0) };
        let mut frames = std::mem::take(&mut self.queued);
        if let Some(queues) = kernel.borrow_mut().queues_mut() {
            *more |= queues.receive(queue, self.ports.pool(), &mut frames)?;
        }
        let count = frames.len();
        for (port, frame) in frames.drain(..) {
            if self.ports.get(port.index()).is_some_and(DevicePort::is_up) {
                self.arrived(port.index(), frame);
            }
        }
        self.queued = frames;
        Ok(count)
    }

    fn flush(&mut self) {
        let ports = self.ports.count();
        for index in 0..ports {
            let number = PortNo(index as u16);
            let device = self.ports.device_mut(index);
            device.set_kind(self.node.port_kind(number));
            if let Some(rules) = self.node.rules(number) {
                device.set_rules(self.clock.now(), rules);
            }
            if device.shows_queues() {
                let node = &self.node;
                device
                    .show_queues(&mut (0..ports).map(|port| node.queue_bytes(PortNo(port as u16))));
            }
            if self.ports.flush(index).is_err() {
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
        let Some(device) = self.ports.get(index) else {
            return;
        };
        let link_type = match self.node.port_kind(PortNo(index as u16)) {
            PortKind::Axon => LinkType::between_switches(bytes),
            _ => LinkType::ETHERNET,
        };
        let port = (index, device.device());
        self.capture.record(&self.name, port, (link_type, direction), nanos, bytes);
    }

    /// Captures the frames that the kernel has carried since the last round, in order of time.
    fn capture_kernel(&mut self) {
        let Some(kernel) = self.kernel.as_ref().filter(|_| self.capture.is_on()) else { return };
        let mut all = Vec::new();
        for (port, sniffer) in kernel.borrow_mut().sniffers() {
            sniffer.take(port, &mut all);
            self.ports.device_mut(port.index()).missed(sniffer.missed());
        }
        all.sort_by_key(|(_, seen)| seen.unix_nanos);
        for (port, seen) in all {
            self.capture_bytes(port.index(), seen.direction, seen.unix_nanos, &seen.bytes);
        }
    }

    fn read_status(&mut self) -> Status {
        let (now, ports) = (self.clock.now(), self.ports.count());
        let status = |index: usize| {
            let kind = self.node.port_kind(PortNo(index as u16));
            self.ports.device_mut(index).status(kind)
        };
        let ports = (0..ports).map(status).collect();
        Status {
            name: self.name.clone(),
            uptime_us: now.as_micros(),
            run_loop: self.load.counters(),
            ports,
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
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).unwrap();
        assert!(!runtime.round(Time::MAX).unwrap());
        assert_eq!(Store::open(&path, "ring", &clock).unwrap().1, [host(1, 1), host(2, 2)]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
